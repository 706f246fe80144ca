//! Certificates with their private keys, from PEM (RFC 7468).

use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{CipherSuite, InconsistentKeys, SignatureAlgorithm, SignatureScheme};
use std::fmt;
use std::sync::Arc;

/// A chain and its key.
#[derive(Clone, Debug)]
pub struct Certified(Arc<CertifiedKey>);

/// Why a certificate or a key cannot be used.
#[derive(Debug)]
pub enum CertificateError {
    /// No certificate stands in the text.
    NoCertificate,
    /// The text of the certificate is broken.
    Certificate(pem::Error),
    /// No private key stands in the text.
    NoKey,
    /// The key is encrypted.
    Encrypted,
    Key(pem::Error),
    /// A kind of key, or a length, that is not there.
    UnknownKey(rustls::Error),
    /// The key is another certificate's.
    Mismatch,
}

impl Certified {
    pub(crate) fn key(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.0)
    }

    /// Whether a client that accepts these signatures and ciphers can be answered with it.
    pub(crate) fn fits(&self, schemes: &[SignatureScheme], suites: &[CipherSuite]) -> bool {
        let algorithm = self.0.key.algorithm();
        let is_signed = self.0.key.choose_scheme(schemes).is_some();
        is_signed && suites.iter().any(|suite| authenticates(*suite, algorithm))
    }
}

/// Loads a chain, the server's own certificate first, and the key of that.
pub fn load(certificate: &[u8], key: &[u8]) -> Result<Certified, CertificateError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
    let chain = chain.map_err(CertificateError::Certificate)?;
    if chain.is_empty() {
        return Err(CertificateError::NoCertificate);
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
        pem::Error::NoItemsFound if is_encrypted(key) => CertificateError::Encrypted,
        pem::Error::NoItemsFound => CertificateError::NoKey,
        error => CertificateError::Key(error),
    })?;
    let key = any_supported_type(&key).map_err(CertificateError::UnknownKey)?;
    let certified = CertifiedKey::new(chain, key);
    match certified.keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => {
            Ok(Certified(Arc::new(certified)))
        }
        Err(rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
            Err(CertificateError::Mismatch)
        }
        Err(error) => Err(CertificateError::UnknownKey(error)),
    }
}

fn is_encrypted(key: &[u8]) -> bool {
    let text = String::from_utf8_lossy(key);
    text.contains("BEGIN ENCRYPTED PRIVATE KEY") || text.contains("Proc-Type: 4,ENCRYPTED")
}

/// Whether a suite goes with a certificate of this kind; those of TLS 1.3 go with any.
fn authenticates(suite: CipherSuite, algorithm: SignatureAlgorithm) -> bool {
    use CipherSuite as Suite;
    match suite {
        Suite::TLS13_AES_128_GCM_SHA256
        | Suite::TLS13_AES_256_GCM_SHA384
        | Suite::TLS13_CHACHA20_POLY1305_SHA256 => true,
        Suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
        | Suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
        | Suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 => {
            algorithm != SignatureAlgorithm::RSA
        }
        Suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
        | Suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384
        | Suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => {
            algorithm == SignatureAlgorithm::RSA
        }
        _ => false,
    }
}

impl CertificateError {
    /// Whether the key's file is at fault.
    pub fn is_of_key(&self) -> bool {
        !matches!(self, Self::NoCertificate | Self::Certificate(_))
    }
}

impl fmt::Display for CertificateError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCertificate => formatter.write_str("there is no certificate in it (PEM)"),
            Self::Certificate(error) | Self::Key(error) => write!(formatter, "{error}"),
            Self::NoKey => formatter.write_str("there is no private key in it (PEM)"),
            Self::Encrypted => formatter.write_str(
                "the key is encrypted, which is not there yet; decrypt it with openssl pkey",
            ),
            Self::UnknownKey(error) => write!(formatter, "{error}"),
            Self::Mismatch => formatter.write_str("key values mismatch"),
        }
    }
}
