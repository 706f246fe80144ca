//! How a server answers handshakes.

use crate::certificate::Certified;
use crate::certificate_slot::{CertificateSlot, SlotFirst};
use crate::cipher_names::cipher_name;
use crate::client_check::{AnyCertificate, ClientCheck, Verified};
use crate::client_hello::ClientHello;
use crate::groups::group_name;
use crate::handshake::Absence;
use crate::key_log::KeyLog;
use crate::record::PLAIN_BYTES_MAX;
use crate::session_cache::{SessionCache, SessionZone};
use crate::tickets::{Key, TicketKeys, TicketSecret, Tickets};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::CertificateDer;
use rustls::server::NoServerSessionStorage;
use rustls::{ServerConfig, SupportedProtocolVersion, version};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

/// The server for a ClientHello: chosen for each handshake, before rustls sees it.
pub trait ServerChoice: fmt::Debug {
    /// Pending while a certificate is being loaded: the task that waits for the connection is woken then, and asks again
    /// with the same ClientHello.
    fn poll_choose(&self, hello: &ClientHello) -> Poll<Choice>;
}

/// How a handshake is answered.
#[derive(Clone, Debug)]
pub enum Choice {
    /// By this server's settings.
    Take(ServerContext),
    /// By the alert `unrecognized_name`.
    Reject,
    /// By the alert `internal_error`.
    NoCertificate(Absence),
}

/// A server's settings as rustls takes them; shared by all workers.
#[derive(Clone, Debug)]
pub struct ServerContext {
    pub(crate) config: Arc<ServerConfig>,
    client_check: Option<ClientCheck>,
    record_bytes_max: usize,
    pub(crate) has_tls13: bool,
}

/// What a server is configured with.
#[derive(Debug)]
pub struct ServerSettings<'a> {
    /// Certificates with keys of different kinds; the first one that the client can check is sent.
    pub certified: Vec<Certified>,
    pub tls12: bool,
    pub tls13: bool,
    /// Names of ciphers in OpenSSL's words, the best first; `None`: all that there are.
    pub ciphers: Option<&'a [&'static str]>,
    /// Names of groups for the exchange of keys, in OpenSSL's words; `None`: all that there are.
    pub groups: Option<&'a [&'static str]>,
    /// The server's order of ciphers counts, not the client's.
    pub prefers_own_order: bool,
    /// Clients keep their sessions.
    pub tickets: bool,
    /// Files with keys of tickets.
    pub ticket_keys: Vec<&'a [u8]>,
    /// What keys are made from that change by themselves, where other servers have it too; files go before it.
    pub ticket_secret: Option<&'a [u8]>,
    /// A zone of sessions that the server keeps, and its bytes.
    pub session_zone: Option<(&'a [u8], usize)>,
    /// Seconds for which a session is good.
    pub session_lifetime: u32,
    /// Requests may come with a resumed handshake of TLS 1.3. Then the server keeps all sessions, each for one use, and
    /// there are no tickets of other kinds.
    pub early_data: bool,
    /// Clients are asked for certificates.
    pub client_check: Option<ClientCheck>,
    /// The file to which secrets are logged.
    pub key_log: Option<Arc<[u8]>>,
    /// Bytes of plaintext in a record, at most; the protocol's own bound is 16 KiB.
    pub record_bytes_max: usize,
    /// Certificates are sent compressed to clients that can take it (RFC 8879).
    pub compresses_certificates: bool,
}

/// What sessions need for longer than a configuration: keys of tickets, and zones. For all servers of a process.
#[derive(Clone, Default)]
pub struct Sessions(Arc<Mutex<Lasting>>);

#[derive(Default)]
struct Lasting {
    /// What keys are made from; made when first needed if it was not given.
    secret: Option<TicketSecret>,
    /// By lifetime.
    keys: BTreeMap<u32, TicketKeys>,
    /// By name.
    zones: BTreeMap<Vec<u8>, SessionZone>,
}

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
        let mut config = ServerConfig::clone(&self.config);
        config.alpn_protocols = alpn(true);
        Self {
            config: Arc::new(config),
            ..self.clone()
        }
    }

    /// The same, where these protocols are agreed on by ALPN, the best first, and no others; none agrees on nothing.
    pub fn with_protocols(&self, protocols: impl Iterator<Item = Vec<u8>>) -> Self {
        let mut config = ServerConfig::clone(&self.config);
        config.alpn_protocols = protocols.collect();
        Self {
            config: Arc::new(config),
            ..self.clone()
        }
    }

    /// The same with these certificates and no others: those that were loaded for one handshake.
    pub fn with_certified(&self, certified: Vec<Certified>) -> Self {
        let mut config = ServerConfig::clone(&self.config);
        config.cert_resolver = Arc::new(Certificates(certified));
        Self {
            config: Arc::new(config),
            ..self.clone()
        }
    }

    /// The same with a certificate that comes while the server runs.
    pub fn with_slot(&self, slot: &CertificateSlot) -> Self {
        let mut config = ServerConfig::clone(&self.config);
        config.cert_resolver = Arc::new(SlotFirst {
            slot: slot.clone(),
            others: Arc::clone(&self.config.cert_resolver),
        });
        Self {
            config: Arc::new(config),
            ..self.clone()
        }
    }

    /// The error is rustls' own words for settings that exclude each other.
    pub fn new(settings: ServerSettings<'_>, sessions: &Sessions) -> Result<Self, String> {
        let client_check = settings.client_check.clone();
        let has_tls13 = settings.tls13;
        let record_bytes_max = settings.record_bytes_max.clamp(1, PLAIN_BYTES_MAX);
        let config = server_config(settings, sessions).map_err(|error| error.to_string())?;
        Ok(Self {
            config: Arc::new(config),
            client_check,
            record_bytes_max,
            has_tls13,
        })
    }

    pub(crate) fn record_bytes_max(&self) -> usize {
        self.record_bytes_max
    }

    /// Whether the certificates of a client are valid; they are its own one and those behind it.
    pub(crate) fn check_client(
        &self,
        chain: &[CertificateDer<'static>],
    ) -> (Verified, Box<[usize]>) {
        let check = self.client_check.as_ref();
        check.map_or_else(Default::default, |check| check.check(chain))
    }
}

/// The ciphers and groups of these names, in this order.
pub(crate) fn provider(
    ciphers: Option<&[&'static str]>,
    groups: Option<&[&'static str]>,
) -> CryptoProvider {
    let mut provider = aws_lc_rs::default_provider();
    if let Some(names) = ciphers {
        let all = std::mem::take(&mut provider.cipher_suites);
        let of_name = |name: &&str| {
            let is_it =
                |suite: &&_| cipher_name(rustls::SupportedCipherSuite::suite(suite)) == *name;
            all.iter().find(is_it).copied()
        };
        provider.cipher_suites = names.iter().filter_map(of_name).collect();
    }
    if let Some(names) = groups {
        let all = std::mem::take(&mut provider.kx_groups);
        let of_name = |name: &&str| {
            let is_it = |group: &&&'static dyn rustls::crypto::SupportedKxGroup| {
                group_name(u16::from(group.name())) == Some(*name)
            };
            all.iter().find(is_it).copied()
        };
        provider.kx_groups = names.iter().filter_map(of_name).collect();
    }
    provider
}

/// The names of all ciphers that there are: of TLS 1.2, and of TLS 1.3.
pub fn all_cipher_names() -> (Vec<&'static str>, Vec<&'static str>) {
    let suites = aws_lc_rs::default_provider().cipher_suites;
    let names = suites.iter().map(|suite| cipher_name(suite.suite()));
    names.partition(|name| !name.starts_with("TLS_"))
}

fn server_config(
    settings: ServerSettings<'_>,
    sessions: &Sessions,
) -> Result<ServerConfig, rustls::Error> {
    let mut versions: Vec<&SupportedProtocolVersion> = Vec::new();
    versions.extend(settings.tls13.then_some(&version::TLS13));
    versions.extend(settings.tls12.then_some(&version::TLS12));
    let provider = Arc::new(provider(settings.ciphers, settings.groups));
    let builder =
        ServerConfig::builder_with_provider(provider).with_protocol_versions(&versions)?;
    let builder = match &settings.client_check {
        Some(check) => builder.with_client_cert_verifier(Arc::new(AnyCertificate(check.clone()))),
        None => builder.with_no_client_auth(),
    };
    let lifetime = settings.session_lifetime;
    // rustls takes early data for sessions that it forgets with their first use alone (RFC 8446 8.1).
    let tickets =
        (settings.tickets && !settings.early_data).then(|| match settings.ticket_secret {
            Some(secret) if settings.ticket_keys.is_empty() => {
                TicketKeys::changing(&TicketSecret::of_text(secret), lifetime)
            }
            _ => sessions.tickets(&settings.ticket_keys, lifetime),
        });
    let is_for_early = settings.early_data && settings.tickets;
    let zone = settings
        .session_zone
        .or(is_for_early.then_some((EARLY_ZONE, EARLY_ZONE_BYTES)))
        .map(|(name, bytes)| sessions.zone(name, bytes));
    let mut config = builder.with_cert_resolver(Arc::new(Certificates(settings.certified)));
    // The record layer is our own.
    config.enable_secret_extraction = true;
    config.ignore_client_order = settings.prefers_own_order;
    config.alpn_protocols = alpn(false);
    if !settings.compresses_certificates {
        config.cert_compressors.clear();
    }
    if let Some(path) = settings.key_log {
        config.key_log = Arc::new(KeyLog(path));
    }
    if settings.early_data {
        config.max_early_data_size = EARLY_BYTES_MAX;
        config.send_half_rtt_data = true;
    }
    let has_zone = zone.is_some();
    config.session_storage = match zone {
        Some(zone) => Arc::new(SessionCache { zone, lifetime }),
        None => Arc::new(NoServerSessionStorage {}),
    };
    match tickets.flatten() {
        Some(keys) => config.ticketer = Arc::new(Tickets { keys, lifetime }),
        None if has_zone => {}
        None => config.send_tls13_tickets = 0,
    }
    Ok(config)
}

impl Sessions {
    /// Whose tickets those processes open that have the same secret.
    pub fn new(secret: Option<TicketSecret>) -> Self {
        Self(Arc::new(Mutex::new(Lasting {
            secret,
            ..Lasting::default()
        })))
    }

    /// Without randomness there are no tickets.
    fn tickets(&self, files: &[&[u8]], lifetime: u32) -> Option<TicketKeys> {
        if !files.is_empty() {
            let keys: Option<Vec<Key>> = files.iter().map(|file| Key::of_file(file)).collect();
            return Some(TicketKeys::Given(keys?.into()));
        }
        let mut lasting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keys) = lasting.keys.get(&lifetime) {
            return Some(keys.clone());
        }
        if lasting.secret.is_none() {
            lasting.secret = TicketSecret::random();
        }
        let keys = TicketKeys::changing(lasting.secret.as_ref()?, lifetime)?;
        lasting.keys.insert(lifetime, keys.clone());
        Some(keys)
    }

    fn zone(&self, name: &[u8], bytes: usize) -> SessionZone {
        let mut lasting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(zone) = lasting.zones.get(name) {
            zone.resize(bytes);
            return zone.clone();
        }
        let zone = SessionZone::new(bytes);
        lasting.zones.insert(name.to_vec(), zone.clone());
        zone
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
    /// The first one whose key can make a signature that the client accepts; in TLS 1.2 the ciphers decide as well. One
    /// with the name that the client asks for goes before others.
    fn resolve(
        &self,
        hello: rustls::server::ClientHello<'_>,
    ) -> Option<Arc<rustls::sign::CertifiedKey>> {
        let fits = |certified: &&Certified| {
            certified.fits(hello.signature_schemes(), hello.cipher_suites())
        };
        let asked_for = hello.server_name().filter(|_| self.0.len() > 1);
        let named = asked_for.and_then(|name| {
            let mut fitting = self.0.iter().filter(fits);
            fitting.find(|certified| certified.has_name(name))
        });
        let found = named
            .or_else(|| self.0.iter().find(fits))
            .or_else(|| self.0.first());
        found.map(Certified::key)
    }
}

/// Early data that one handshake takes.
const EARLY_BYTES_MAX: u32 = 16 * 1024;

/// Where sessions are kept for early data if no zone is configured. No name of a configuration begins so.
const EARLY_ZONE: &[u8] = b"\0early";

/// 65 536 sessions.
const EARLY_ZONE_BYTES: usize = 16 << 20;
