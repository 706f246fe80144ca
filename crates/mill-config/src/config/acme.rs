//! Certificates from authorities (ACME): `acme_issuer` and `acme_certificate`.

use super::NameServers;
use super::settings::TlsFile;
use crate::Text;
use crate::diagnostic::SourcePosition;
use std::sync::Arc;
use std::time::Duration;

/// An `acme_issuer`: an authority, and how it is asked.
#[derive(Debug)]
pub struct AcmeIssuer {
    pub name: Text,
    /// `uri`: where its directory is.
    pub uri: String,
    /// `account_key`.
    pub account_key: AccountKey,
    /// `challenge`.
    pub challenge: AcmeChallenge,
    /// `common_name_in_csr`.
    pub common_name_in_csr: bool,
    /// `contact`: URLs.
    pub contacts: Vec<String>,
    /// `external_account_key`: its identifier, and the key in base64url.
    pub external_key: Option<(String, String)>,
    /// `preferred_chain`.
    pub preferred_chain: Option<String>,
    /// `profile`, and whether nothing is ordered without it.
    pub profile: Option<(String, bool)>,
    /// `ssl_trusted_certificate`, or the system's; `None` with `ssl_verify off`.
    pub trusted: Option<TlsFile>,
    /// `state_path`; `None`: `off`.
    pub state_path: Option<Text>,
    /// `accept_terms_of_service`.
    pub accepts_terms: bool,
    /// `resolver` of the http block.
    pub name_servers: Option<Arc<NameServers>>,
    /// `resolver_timeout` of the http block.
    pub resolver_timeout: Duration,
    /// What servers want of it, each once.
    pub orders: Vec<Arc<AcmeOrder>>,
    /// Where it stands.
    pub position: SourcePosition,
}

/// An `acme_certificate`: servers that want the same have the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcmeOrder {
    /// Name of the [`AcmeIssuer`].
    pub issuer: Text,
    /// Host names in lower case, and addresses.
    pub names: Vec<String>,
    /// `key=`.
    pub key: AcmeKey,
    /// Names the files in `state_path`: the first name, and a number for the others.
    pub id: String,
    /// What stands in these files: the certificate and its key, in PEM.
    pub saved: Option<(Text, Text)>,
}

/// The kind of a key that is made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AcmeKey {
    #[default]
    Ecdsa256,
    Ecdsa384,
    Ecdsa521,
    Rsa2048,
    Rsa3072,
    Rsa4096,
}

/// `account_key`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountKey {
    /// Made when it is missing.
    Kind(AcmeKey),
    File(TlsFile),
}

/// `challenge`: how names are proved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AcmeChallenge {
    #[default]
    Http01,
    TlsAlpn01,
}

impl AcmeKey {
    /// From its words; `None`: there is no such kind.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        Some(match text {
            b"ecdsa" | b"ecdsa:256" => Self::Ecdsa256,
            b"ecdsa:384" => Self::Ecdsa384,
            b"ecdsa:521" => Self::Ecdsa521,
            b"rsa" | b"rsa:2048" => Self::Rsa2048,
            b"rsa:3072" => Self::Rsa3072,
            b"rsa:4096" => Self::Rsa4096,
            _ => return None,
        })
    }
}

impl AcmeOrder {
    /// The file with the certificate.
    pub fn certificate_path(&self, state_path: &[u8]) -> Vec<u8> {
        [state_path, b"/", self.id.as_bytes(), b".crt"].concat()
    }

    /// The file with its key.
    pub fn key_path(&self, state_path: &[u8]) -> Vec<u8> {
        [state_path, b"/", self.id.as_bytes(), b".key"].concat()
    }

    /// The identifier of an order for these names: it stays the same over restarts and releases.
    pub(crate) fn id_of(names: &[String], key: AcmeKey) -> String {
        // FNV-1a: it only has to differ.
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        for byte in format!("{names:?}{key:?}").bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        let is_host = |name: &&String| name.parse::<std::net::IpAddr>().is_err();
        let first = names.iter().find(is_host).or(names.first());
        format!("{}-{hash:016x}", first.map_or("", String::as_str))
    }
}
