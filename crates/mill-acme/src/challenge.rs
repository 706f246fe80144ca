//! Proofs that a name is ours: http-01 (RFC 8555 8.3) and tls-alpn-01 (RFC 8737).

use crate::certificate_request::{KeyError, KeyKind, generate};
use crate::identifier::Identifier;
use aws_lc_rs::digest;
use rcgen::{CertificateParams, CustomExtension, DistinguishedName};

/// The protocol that tls-alpn-01 asks for in place of HTTP.
pub const ALPN_PROTOCOL: &[u8] = b"acme-tls/1";

/// Where answers of http-01 are asked for, before the token.
pub const PATH_PREFIX: &[u8] = b"/.well-known/acme-challenge/";

/// By what names are proved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChallengeKind {
    #[default]
    Http01,
    TlsAlpn01,
}

impl ChallengeKind {
    /// As the authority calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http01 => "http-01",
            Self::TlsAlpn01 => "tls-alpn-01",
        }
    }
}

/// With what the authority is answered when it comes to see, until the order has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    pub kind: ChallengeKind,
    pub identifier: Identifier,
    /// The end of the path that http-01 asks for.
    pub token: String,
    /// The token and the digest of the account's key (RFC 8555 8.1).
    pub key_authorization: String,
}

impl Offer {
    /// The certificate of tls-alpn-01 and its key, in PEM (RFC 8737 3).
    pub fn certificate(&self) -> Result<(String, String), KeyError> {
        let key = generate(KeyKind::Ecdsa256)?;
        let params = CertificateParams::new(vec![self.identifier.value.clone()]);
        let mut params = params.map_err(|error| KeyError::new(&error))?;
        params.distinguished_name = DistinguishedName::new();
        let digest = digest::digest(&digest::SHA256, self.key_authorization.as_bytes());
        let extension = CustomExtension::new_acme_identifier(digest.as_ref());
        params.custom_extensions = vec![extension];
        let certificate = params.self_signed(&key);
        let certificate = certificate.map_err(|error| KeyError::new(&error))?;
        Ok((certificate.pem(), key.serialize_pem()))
    }
}

#[cfg(test)]
mod tests {
    use super::{ChallengeKind, Offer};
    use crate::identifier::Identifier;
    use aws_lc_rs::digest;
    use x509_cert::Certificate;
    use x509_cert::der::DecodePem;

    #[test]
    fn the_certificate_of_tls_alpn_01_has_the_digest_in_a_critical_extension() {
        let offer = Offer {
            kind: ChallengeKind::TlsAlpn01,
            identifier: Identifier::new("a.example"),
            token: String::from("token"),
            key_authorization: String::from("token.digest"),
        };
        let (certificate, _) = offer.certificate().unwrap();
        let certificate = Certificate::from_pem(certificate).unwrap().tbs_certificate;
        let mut extensions = certificate.extensions.iter().flatten();
        let id = "1.3.6.1.5.5.7.1.31";
        let found = extensions
            .find(|one| one.extn_id.to_string() == id)
            .unwrap();
        let digest = digest::digest(&digest::SHA256, b"token.digest");
        let expected = [&[4, 32], digest.as_ref()].concat();
        assert!(found.critical);
        assert_eq!(found.extn_value.as_bytes(), expected);
    }
}
