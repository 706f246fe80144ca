//! Keys of certificates, and what is asked to be signed (PKCS #10, RFC 8555 7.4).

use crate::identifier::Identifier;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, RsaKeySize};
use std::fmt;

/// The kind of a key that is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    Ecdsa256,
    Ecdsa384,
    Ecdsa521,
    Rsa2048,
    Rsa3072,
    Rsa4096,
}

/// Why a key cannot be used, in words.
#[derive(Debug)]
pub struct KeyError(String);

impl KeyError {
    pub(crate) fn new(reason: &impl ToString) -> Self {
        Self(reason.to_string())
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A new key.
pub(crate) fn generate(kind: KeyKind) -> Result<KeyPair, KeyError> {
    let rsa = |size| KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, size);
    let key = match kind {
        KeyKind::Ecdsa256 => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256),
        KeyKind::Ecdsa384 => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384),
        KeyKind::Ecdsa521 => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P521_SHA512),
        KeyKind::Rsa2048 => rsa(RsaKeySize::_2048),
        KeyKind::Rsa3072 => rsa(RsaKeySize::_3072),
        KeyKind::Rsa4096 => rsa(RsaKeySize::_4096),
    };
    key.map_err(|error| KeyError::new(&error))
}

/// The request for these names, signed by their key (DER).
pub(crate) fn emit(
    identifiers: &[Identifier],
    has_common_name: bool,
    key: &KeyPair,
) -> Result<Vec<u8>, KeyError> {
    let names: Vec<String> = identifiers.iter().map(|one| one.value.clone()).collect();
    let is_host = |name: &&String| name.parse::<std::net::IpAddr>().is_err();
    let first = names.iter().find(is_host).or(names.first()).cloned();
    let params = CertificateParams::new(names);
    let mut params = params.map_err(|error| KeyError::new(&error))?;
    params.distinguished_name = DistinguishedName::new();
    if let Some(first) = first.filter(|_| has_common_name) {
        params.distinguished_name.push(DnType::CommonName, first);
    }
    let request = params.serialize_request(key);
    let request = request.map_err(|error| KeyError::new(&error))?;
    Ok(request.der().to_vec())
}

#[cfg(test)]
mod tests {
    use super::{KeyKind, emit, generate};
    use crate::identifier::Identifier;
    use x509_cert::der::Decode;
    use x509_cert::request::CertReq;

    #[test]
    fn a_request_names_its_subject_only_if_asked_to() {
        let names = ["192.0.2.1", "a.example", "b.example"].map(Identifier::new);
        let key = generate(KeyKind::Ecdsa256).unwrap();
        for (has_common_name, subject) in [(false, ""), (true, "CN=a.example")] {
            let der = emit(&names, has_common_name, &key).unwrap();
            let request = CertReq::from_der(&der).unwrap();
            assert_eq!(request.info.subject.to_string(), subject);
            // A host name, and an address of four bytes (RFC 5280 4.2.1.6).
            for name in [&b"\x82\x09b.example"[..], b"\x87\x04\xc0\x00\x02\x01"] {
                assert!(der.windows(name.len()).any(|bytes| bytes == name));
            }
        }
    }
}
