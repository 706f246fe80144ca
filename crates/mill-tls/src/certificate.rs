//! Certificates with their private keys, from PEM (RFC 7468).

use crate::encrypted_key;
use crate::signature::{self, NotingKey};
use crate::staple_slot::StapleSlot;
use rustls::client::verify_server_name;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{CipherSuite, InconsistentKeys, SignatureAlgorithm, SignatureScheme};
use std::fmt;
use std::sync::Arc;

/// A chain and its key.
#[derive(Clone, Debug)]
pub struct Certified {
    key: Arc<CertifiedKey>,
    /// In its place, what comes while the server runs.
    stapled: Option<StapleSlot>,
}

/// Why a certificate or a key cannot be used.
#[derive(Debug)]
pub enum CertificateError {
    /// No certificate stands in the text.
    NoCertificate,
    /// The text of the certificate is broken.
    Certificate(pem::Error),
    /// No private key stands in the text.
    NoKey,
    /// The key is encrypted, and no password opens it.
    Encrypted,
    /// The key is encrypted in the form before PKCS #8, by a cipher of this name, which is not there.
    UnknownCipher(String),
    /// The key is encrypted in the form before PKCS #8, and what it says of its cipher cannot be read.
    BrokenEncryption,
    Key(pem::Error),
    /// A kind of key, or a length, that is not there.
    UnknownKey(rustls::Error),
    /// The key is another certificate's.
    Mismatch,
}

impl Certified {
    pub(crate) fn key(&self) -> Arc<CertifiedKey> {
        let stapled = self.stapled.as_ref().and_then(StapleSlot::stapled);
        stapled.unwrap_or_else(|| Arc::clone(&self.key))
    }

    /// Whether it is for this server (RFC 6125 6.4). Costs a look through the certificate.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        let Some(Ok(certificate)) = self.key.cert.first().map(ParsedCertificate::try_from) else {
            return false;
        };
        let name = ServerName::try_from(name);
        name.is_ok_and(|name| verify_server_name(&certificate, &name).is_ok())
    }

    /// Whether a client that accepts these signatures and ciphers can be answered with it.
    pub(crate) fn fits(&self, schemes: &[SignatureScheme], suites: &[CipherSuite]) -> bool {
        let algorithm = self.key.key.algorithm();
        let is_signed = self.key.key.choose_scheme(schemes).is_some();
        // It was a question, and signed nothing.
        signature::take();
        is_signed && suites.iter().any(|suite| authenticates(*suite, algorithm))
    }
}

impl Certified {
    /// The same with an answer of OCSP (RFC 6960, DER), which is stapled to it.
    pub fn with_staple(&self, answer: &[u8]) -> Self {
        let mut certified = CertifiedKey::clone(&self.key);
        certified.ocsp = Some(answer.to_vec());
        Self::from(certified)
    }

    /// The same with answers that come while the server runs, and where they are put.
    pub fn with_staple_slot(&self) -> (Self, StapleSlot) {
        let slot = StapleSlot::new(&self.key);
        let certified = Self {
            key: Arc::clone(&self.key),
            stapled: Some(slot.clone()),
        };
        (certified, slot)
    }
}

/// A chain and its key that this program has made. They are not compared: what stands in the certificate may be critical
/// and unknown to all but its reader, as with ACME's (RFC 8737 3).
pub fn load_made(certificate: &[u8], key: &[u8]) -> Result<Certified, CertificateError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
    let chain = chain.map_err(CertificateError::Certificate)?;
    let key = any_supported_type(&private_key(key, [])?).map_err(CertificateError::UnknownKey)?;
    let key = Arc::new(NotingKey(key));
    Ok(Certified::from(CertifiedKey::new(chain, key)))
}

impl From<CertifiedKey> for Certified {
    fn from(key: CertifiedKey) -> Self {
        Self {
            key: Arc::new(key),
            stapled: None,
        }
    }
}

/// Loads a chain, the server's own certificate first, and the key of that, which may need one of these passwords.
pub fn load<'a>(
    certificate: &[u8],
    key: &[u8],
    passwords: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Certified, CertificateError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
    let chain = chain.map_err(CertificateError::Certificate)?;
    if chain.is_empty() {
        return Err(CertificateError::NoCertificate);
    }
    let key = private_key(key, passwords)?;
    let key = any_supported_type(&key).map_err(CertificateError::UnknownKey)?;
    let certified = CertifiedKey::new(chain, Arc::new(NotingKey(key)));
    match certified.keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => {
            Ok(Certified::from(certified))
        }
        Err(rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
            Err(CertificateError::Mismatch)
        }
        Err(error) => Err(CertificateError::UnknownKey(error)),
    }
}

fn private_key<'a>(
    pem: &[u8],
    passwords: impl IntoIterator<Item = &'a [u8]>,
) -> Result<PrivateKeyDer<'static>, CertificateError> {
    let text = String::from_utf8_lossy(pem);
    if let Some(opened) = encrypted_key::open(&text, passwords) {
        return opened;
    }
    PrivateKeyDer::from_pem_slice(pem).map_err(|error| match error {
        pem::Error::NoItemsFound => CertificateError::NoKey,
        error => CertificateError::Key(error),
    })
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
            Self::Encrypted => formatter
                .write_str("the key is encrypted, and no line of ssl_password_file opens it"),
            Self::UnknownCipher(cipher) => write!(
                formatter,
                "the key is encrypted by {cipher}, which is not there; \
                 convert it with openssl pkcs8 -topk8",
            ),
            Self::BrokenEncryption => {
                formatter.write_str("the key is encrypted, and its field DEK-Info is broken")
            }
            Self::UnknownKey(error) => write!(formatter, "{error}"),
            Self::Mismatch => formatter.write_str("key values mismatch"),
        }
    }
}
