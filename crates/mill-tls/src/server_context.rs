//! How a server answers handshakes.

use crate::certificate::Certified;
use crate::client_hello::ClientHello;
use rustls::crypto::aws_lc_rs;
use rustls::server::{NoServerSessionStorage, ProducesTickets};
use rustls::{ServerConfig, SupportedProtocolVersion, version};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The server for a ClientHello: chosen for each handshake, before rustls sees it.
pub trait ServerChoice: fmt::Debug {
    fn choose(&self, hello: &ClientHello) -> Choice;
}

/// How a handshake is answered.
#[derive(Clone, Debug)]
pub enum Choice {
    /// By this server's settings.
    Take(ServerContext),
    /// By the alert `unrecognized_name`.
    Reject,
}

/// A server's settings as rustls takes them; shared by all workers.
#[derive(Clone, Debug)]
pub struct ServerContext(pub(crate) Arc<ServerConfig>);

/// What a server is configured with.
#[derive(Debug)]
pub struct ServerSettings {
    /// Certificates with keys of different kinds; the first one that the client can check is sent.
    pub certified: Vec<Certified>,
    pub tls12: bool,
    pub tls13: bool,
    /// The server's order of ciphers counts, not the client's.
    pub prefers_own_order: bool,
    pub tickets: bool,
}

/// Keys of session tickets, for all servers of a process; made when first needed.
#[derive(Clone, Default)]
pub struct Sessions(Arc<OnceLock<Option<Arc<dyn ProducesTickets>>>>);

/// As nginx does: a client that offers protocols and none of these is refused.
fn alpn(http2: bool) -> Vec<Vec<u8>> {
    let newest = http2.then_some(&b"h2"[..]);
    let older = [&b"http/1.1"[..], b"http/1.0", b"http/0.9"];
    let all = newest.into_iter().chain(older);
    all.map(<[u8]>::to_vec).collect()
}

impl ServerContext {
    /// The same, where HTTP/2 is spoken too.
    pub fn with_http2(&self) -> Self {
        let mut config = ServerConfig::clone(&self.0);
        config.alpn_protocols = alpn(true);
        Self(Arc::new(config))
    }

    /// The error is rustls' own words for settings that exclude each other.
    pub fn new(settings: ServerSettings, sessions: &Sessions) -> Result<Self, String> {
        let config = server_config(settings, sessions).map_err(|error| error.to_string())?;
        Ok(Self(Arc::new(config)))
    }
}

fn server_config(
    settings: ServerSettings,
    sessions: &Sessions,
) -> Result<ServerConfig, rustls::Error> {
    let mut versions: Vec<&SupportedProtocolVersion> = Vec::new();
    versions.extend(settings.tls13.then_some(&version::TLS13));
    versions.extend(settings.tls12.then_some(&version::TLS12));
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)?
        .with_no_client_auth();
    let mut config = builder.with_cert_resolver(Arc::new(Certificates(settings.certified)));
    // The record layer is our own.
    config.enable_secret_extraction = true;
    config.ignore_client_order = settings.prefers_own_order;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.alpn_protocols = alpn(false);
    if settings.tickets
        && let Some(ticketer) = sessions.ticketer()
    {
        config.ticketer = ticketer;
    } else {
        config.send_tls13_tickets = 0;
    }
    Ok(config)
}

impl Sessions {
    /// Without randomness there are no tickets.
    fn ticketer(&self) -> Option<Arc<dyn ProducesTickets>> {
        self.0
            .get_or_init(|| aws_lc_rs::Ticketer::new().ok())
            .clone()
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Sessions")
    }
}

/// The certificates of one server.
#[derive(Debug)]
struct Certificates(Vec<Certified>);

impl rustls::server::ResolvesServerCert for Certificates {
    /// The first one whose key can make a signature that the client accepts; in TLS 1.2 the ciphers decide as well.
    fn resolve(
        &self,
        hello: rustls::server::ClientHello<'_>,
    ) -> Option<Arc<rustls::sign::CertifiedKey>> {
        let fits = |certified: &&Certified| {
            certified.fits(hello.signature_schemes(), hello.cipher_suites())
        };
        let found = self.0.iter().find(fits).or_else(|| self.0.first());
        found.map(Certified::key)
    }
}
