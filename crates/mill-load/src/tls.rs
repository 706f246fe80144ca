//! TLS on the connections of a run.

use mill_tls::client_context::{ClientContext, ClientSettings};

/// How connections are secured: as with wrk and ab, whatever certificate the server has.
#[derive(Clone, Debug)]
pub struct TlsPlan {
    pub(crate) context: ClientContext,
    /// The server's name, which it is told.
    pub(crate) name: Vec<u8>,
    /// The first request of a connection goes with the first flight, if the session allows it.
    pub(crate) early: bool,
}

/// Which handshakes there are, as far as the server allows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Handshakes {
    /// All are full ones.
    #[default]
    Full,
    /// Sessions are resumed.
    Resumed,
    /// Sessions are resumed, and safe requests (RFC 9110 9.2.1) sent with the first flight (0-RTT, RFC 8446 2.3).
    Early,
}

/// Which versions of TLS are offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsVersions {
    #[default]
    Both,
    Only12,
    Only13,
}

impl TlsPlan {
    /// For the host of a URL. The error is rustls' own words.
    pub fn new(host: &str, handshakes: Handshakes, versions: TlsVersions) -> Result<Self, String> {
        let settings = ClientSettings {
            tls12: versions != TlsVersions::Only13,
            tls13: versions != TlsVersions::Only12,
            ciphers: None,
            groups: None,
            trusted: None,
            certified: None,
            sends_name: true,
            resumes: handshakes != Handshakes::Full,
            keeps_many: true,
            early_data: handshakes == Handshakes::Early,
            key_log: None,
        };
        Self::of_settings(host.as_bytes(), settings)
    }

    /// For a host, with these settings.
    pub(crate) fn of_settings(host: &[u8], settings: ClientSettings<'_>) -> Result<Self, String> {
        let early = settings.early_data;
        Ok(Self {
            context: ClientContext::new(settings)?,
            name: host.to_vec(),
            early,
        })
    }
}

/// Each context has sessions of its own.
impl PartialEq for TlsPlan {
    fn eq(&self, other: &Self) -> bool {
        self.context.number() == other.context.number() && self.name == other.name
    }
}
