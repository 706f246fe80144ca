//! The account's key: it signs what is asked, and its digest is in every proof.

use crate::base64url;
use crate::certificate_request::{KeyError, KeyKind, generate};
use aws_lc_rs::digest;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa;
use aws_lc_rs::signature::{self, EcdsaKeyPair, EcdsaSigningAlgorithm, KeyPair};
use std::fmt;

/// A key for requests: ES256, ES384, ES512 or RS256 (RFC 7518 3.1).
pub struct AccountKey {
    pem: String,
    signer: Signer,
}

enum Signer {
    Ecdsa(EcdsaKeyPair, &'static Curve),
    Rsa(Box<rsa::KeyPair>),
}

struct Curve {
    name: &'static str,
    algorithm: &'static str,
    signing: &'static EcdsaSigningAlgorithm,
}

const CURVES: [Curve; 3] = [
    Curve {
        name: "P-256",
        algorithm: "ES256",
        signing: &signature::ECDSA_P256_SHA256_FIXED_SIGNING,
    },
    Curve {
        name: "P-384",
        algorithm: "ES384",
        signing: &signature::ECDSA_P384_SHA384_FIXED_SIGNING,
    },
    Curve {
        name: "P-521",
        algorithm: "ES512",
        signing: &signature::ECDSA_P521_SHA512_FIXED_SIGNING,
    },
];

impl AccountKey {
    /// A new one.
    pub fn generate(kind: KeyKind) -> Result<Self, KeyError> {
        Self::of(&generate(kind)?)
    }

    /// From its text (PEM).
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        let key = rcgen::KeyPair::from_pem(pem).map_err(|error| KeyError::new(&error))?;
        Self::of(&key)
    }

    fn of(key: &rcgen::KeyPair) -> Result<Self, KeyError> {
        let der = key.serialize_der();
        let mut curves = CURVES.iter().filter_map(|curve| {
            let pair = EcdsaKeyPair::from_private_key_der(curve.signing, &der).ok()?;
            Some(Signer::Ecdsa(pair, curve))
        });
        let rsa = || rsa::KeyPair::from_pkcs8(&der).or_else(|_| rsa::KeyPair::from_der(&der));
        let signer = match curves.next() {
            Some(signer) => signer,
            None => {
                let pair =
                    rsa().map_err(|_| KeyError::new(&"it is neither of ECDSA nor of RSA"))?;
                Signer::Rsa(Box::new(pair))
            }
        };
        Ok(Self {
            pem: key.serialize_pem(),
            signer,
        })
    }

    /// Its text: secret.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// The digest of the public key (RFC 7638).
    pub fn thumbprint(&self) -> String {
        let digest = digest::digest(&digest::SHA256, self.jwk().as_bytes());
        base64url::emit(digest.as_ref())
    }

    /// The public key (RFC 7517), its members in the order that the digest wants.
    pub(crate) fn jwk(&self) -> String {
        match &self.signer {
            Signer::Ecdsa(pair, curve) => {
                // An uncompressed point: 4, x, y.
                let point = pair.public_key().as_ref().get(1..).unwrap_or_default();
                let (x, y) = point.split_at(point.len() / 2);
                let (x, y) = (base64url::emit(x), base64url::emit(y));
                let name = curve.name;
                format!(r#"{{"crv":"{name}","kty":"EC","x":"{x}","y":"{y}"}}"#)
            }
            Signer::Rsa(pair) => {
                let key = pair.public_key();
                let e = base64url::emit(key.exponent().big_endian_without_leading_zero());
                let n = base64url::emit(key.modulus().big_endian_without_leading_zero());
                format!(r#"{{"e":"{e}","kty":"RSA","n":"{n}"}}"#)
            }
        }
    }

    pub(crate) fn algorithm(&self) -> &'static str {
        match &self.signer {
            Signer::Ecdsa(_, curve) => curve.algorithm,
            Signer::Rsa(_) => "RS256",
        }
    }

    /// `None`: the library could not, for lack of memory.
    pub(crate) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match &self.signer {
            Signer::Ecdsa(pair, _) => {
                let signature = pair.sign(&random, message).ok()?;
                Some(signature.as_ref().to_vec())
            }
            Signer::Rsa(pair) => {
                let mut out = vec![0; pair.public_modulus_len()];
                let padding = &signature::RSA_PKCS1_SHA256;
                pair.sign(padding, &random, message, &mut out).ok()?;
                Some(out)
            }
        }
    }
}

impl fmt::Debug for AccountKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "AccountKey({})", self.algorithm())
    }
}

#[cfg(test)]
mod tests {
    use super::AccountKey;
    use crate::certificate_request::KeyKind;

    #[test]
    fn a_key_is_the_same_after_it_was_kept_as_text() {
        let kinds = [
            (KeyKind::Ecdsa256, "ES256", 64),
            (KeyKind::Ecdsa384, "ES384", 96),
            (KeyKind::Ecdsa521, "ES512", 132),
            (KeyKind::Rsa2048, "RS256", 256),
        ];
        for (kind, algorithm, signature_bytes) in kinds {
            let key = AccountKey::generate(kind).unwrap();
            let again = AccountKey::from_pem(key.pem()).unwrap();
            assert_eq!(key.thumbprint(), again.thumbprint());
            assert_eq!(key.algorithm(), algorithm);
            assert_eq!(again.sign(b"message").unwrap().len(), signature_bytes);
        }
    }

    #[test]
    fn text_that_is_no_key_is_refused() {
        assert!(AccountKey::from_pem("").is_err());
        let ed25519 = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        assert!(AccountKey::from_pem(&ed25519.serialize_pem()).is_err());
    }

    #[test]
    fn keys_of_openssl_are_read() {
        // openssl ecparam -genkey -name prime256v1 -noout
        let pem = "-----BEGIN EC PRIVATE KEY-----\n\
            MHcCAQEEIH4JzcCW4a/9VcOoqmd6q40Pcq6/+DNoZzGHhfaVxwupoAoGCCqGSM49\n\
            AwEHoUQDQgAEecvsGUxcZnlG0g2lfdd93g4328MiFxZQK+Fhe7xZjJbEsTeUpzmy\n\
            XSHU45gm+JEs9xzPGIIUPtOMr+01+Xwupg==\n\
            -----END EC PRIVATE KEY-----\n";
        let key = AccountKey::from_pem(pem);
        assert!(key.is_ok_and(|key| key.algorithm() == "ES256"));
    }
}
