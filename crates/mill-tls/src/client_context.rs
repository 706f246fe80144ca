//! How a client shakes hands: with what it checks the server, and what it shows of itself.

use crate::certificate::Certified;
use crate::client_tickets::ManyTickets;
use crate::key_log::KeyLog;
use crate::server_check::{ServerCheck, Trusted};
use crate::server_context::provider;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::SingleCertAndKey;
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, SignatureScheme, SupportedProtocolVersion, version,
};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A client's settings as rustls takes them, with the sessions that it may resume; shared by all workers.
#[derive(Clone, Debug)]
pub struct ClientContext {
    /// Distinguishes contexts: connections made by one are no other one's.
    number: u64,
    named: Arc<ClientConfig>,
    /// Without the server's name in the ClientHello.
    nameless: Arc<ClientConfig>,
    /// Both, where HTTP/2 is asked for (ALPN).
    named_http2: Arc<ClientConfig>,
    nameless_http2: Arc<ClientConfig>,
    sends_name: bool,
}

/// What a client is configured with.
#[derive(Debug)]
pub struct ClientSettings<'a> {
    pub tls12: bool,
    pub tls13: bool,
    /// Names of ciphers in OpenSSL's words, the best first; `None`: all that there are.
    pub ciphers: Option<&'a [&'static str]>,
    /// Names of groups in OpenSSL's words, the best first; `None`: all that there are.
    pub groups: Option<&'a [&'static str]>,
    /// With what the server's certificate is checked; `None`: it is not.
    pub trusted: Option<Trusted<'a>>,
    /// Our own certificate, for a server that asks for it.
    pub certified: Option<Certified>,
    /// The server's name is in the ClientHello (SNI).
    pub sends_name: bool,
    /// Sessions are resumed.
    pub resumes: bool,
    /// Of TLS 1.3, so many tickets are kept for each server that any number of connections at once can resume; otherwise
    /// eight.
    pub keeps_many: bool,
    /// Early data is offered with sessions that allow it ([`crate::transport::Transport::begin_tls_with`]).
    pub early_data: bool,
    /// The file to which secrets are logged.
    pub key_log: Option<Arc<[u8]>>,
}

impl ClientContext {
    /// The error says what is wrong with the settings.
    pub fn new(settings: ClientSettings<'_>) -> Result<Self, String> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let sends_name = settings.sends_name;
        let mut config = client_config(settings)?;
        config.enable_sni = false;
        let nameless = Arc::new(config.clone());
        let mut http2 = config.clone();
        http2.alpn_protocols = vec![b"h2".to_vec()];
        let nameless_http2 = Arc::new(http2.clone());
        http2.enable_sni = true;
        config.enable_sni = true;
        Ok(Self {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            named: Arc::new(config),
            nameless,
            named_http2: Arc::new(http2),
            nameless_http2,
            sends_name,
        })
    }

    pub const fn number(&self) -> u64 {
        self.number
    }

    /// The settings for a server of this name, and the name as rustls has it. One that is no name of a host or an address is
    /// not sent, and no certificate is valid for it.
    pub fn for_server(
        &self,
        name: &[u8],
        is_http2: bool,
    ) -> (Arc<ClientConfig>, ServerName<'static>) {
        let (named, nameless) = match is_http2 {
            true => (&self.named_http2, &self.nameless_http2),
            false => (&self.named, &self.nameless),
        };
        let parsed = std::str::from_utf8(name).ok();
        let parsed = parsed.and_then(|name| ServerName::try_from(name.to_owned()).ok());
        match parsed {
            Some(name) if self.sends_name => (Arc::clone(named), name),
            Some(name) => (Arc::clone(nameless), name),
            None => (Arc::clone(nameless), no_name()),
        }
    }
}

fn client_config(settings: ClientSettings<'_>) -> Result<ClientConfig, String> {
    let mut versions: Vec<&SupportedProtocolVersion> = Vec::new();
    versions.extend(settings.tls13.then_some(&version::TLS13));
    versions.extend(settings.tls12.then_some(&version::TLS12));
    let provider = Arc::new(provider(settings.ciphers, settings.groups));
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions)
        .map_err(|error| error.to_string())?;
    let builder = match settings.trusted {
        Some(trusted) => {
            let check = Arc::new(ServerCheck::new(&trusted, provider)?);
            builder.dangerous().with_custom_certificate_verifier(check)
        }
        None => {
            let algorithms = provider.signature_verification_algorithms;
            let verifier = Arc::new(Unverified(algorithms));
            builder
                .dangerous()
                .with_custom_certificate_verifier(verifier)
        }
    };
    let mut config = match settings.certified {
        None => builder.with_no_client_auth(),
        Some(certified) => {
            let own = SingleCertAndKey::from(certified.key());
            builder.with_client_cert_resolver(Arc::new(own))
        }
    };
    // The record layer is our own.
    config.enable_secret_extraction = true;
    if let Some(path) = settings.key_log {
        config.key_log = Arc::new(KeyLog(path));
    }
    config.enable_early_data = settings.early_data;
    config.resumption = match (settings.resumes, settings.keeps_many) {
        (true, true) => Resumption::store(Arc::new(ManyTickets::new(SESSIONS_MAX))),
        (true, false) => Resumption::in_memory_sessions(SESSIONS_MAX),
        (false, _) => Resumption::disabled(),
    };
    Ok(config)
}

/// Takes any certificate, but only from a server that has its key.
#[derive(Debug)]
struct Unverified(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signed, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signed, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

/// The unspecified address: no certificate is made for it.
fn no_name() -> ServerName<'static> {
    ServerName::from(Ipv4Addr::UNSPECIFIED)
}

/// Sessions that a context keeps, of all its servers.
const SESSIONS_MAX: usize = 1024;
