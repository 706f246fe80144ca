//! TLS to clients: what handshakes are answered with, by server.

/// Which server answers.
pub(crate) mod choice;
/// Certificates that handshakes load.
pub(crate) mod evaluated;
/// Whether certificates of clients are revoked.
pub(crate) mod revocation;
/// Certificates for status and metrics.
pub mod served;
/// Answers of OCSP.
mod stapling;

use crate::acme::AcmeSite;
use crate::local::Local;
use crate::site::Site;
use evaluated::EvaluatedCertificates;
use mill_config::Text;
use mill_config::config::LogLevel;
use mill_config::config::acme::AcmeOrder;
use mill_config::config::settings::{
    ClientOcsp, PassTlsSettings, ResolverSettings, TlsFile, TlsSettings, VerifyClient,
};
use mill_config::config::{Config, Server, StreamServer};
use mill_config::diagnostic::{Diagnostic, SourcePosition};
use mill_runtime::engine::Engine;
use mill_runtime::tasks::TaskId;
use mill_tls::certificate::{CertificateError, Certified};
use mill_tls::certificate_slot::CertificateSlot;
use mill_tls::client_check::{ClientCheck, ClientCheckSettings};
use mill_tls::client_context::{ClientContext, ClientSettings};
use mill_tls::server_check::Trusted;
use mill_tls::server_context::{ServerContext, ServerSettings, Sessions, all_cipher_names};
use mill_tls::tickets::TicketSecret;
use revocation::OcspAnswers;
use stapling::Staples;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// The contexts of all servers of a configuration, shared by all workers.
#[derive(Default)]
pub struct TlsSite {
    /// By the address of their settings, which servers that inherit them share.
    contexts: BTreeMap<ContextKey, Contexts>,
    /// To servers, by the address of the settings of locations that share them.
    clients: BTreeMap<usize, (Arc<PassTlsSettings>, ClientContext)>,
    /// Of servers of `stream`, by their index.
    streams: Vec<Option<StreamContext>>,
    /// Some certificates are loaded by handshakes.
    has_evaluated: bool,
    /// Goes on over reloads, so that sessions do.
    sessions: Sessions,
    /// Certificates that come while the server runs.
    acme: AcmeSite,
    staples: Staples,
    /// Answers about certificates of clients, by the names of their zones; they go on over reloads.
    ocsp_answers: BTreeMap<Text, Arc<OcspAnswers>>,
}

/// The address of the settings, and that of the order whose certificate is shown under them, or 0.
type ContextKey = (usize, usize);

impl TlsSite {
    /// For the servers of this configuration. The error names the certificate that cannot be used.
    /// Sessions go on from the previous one's; for the first, tickets are made from `secret`.
    pub fn following(
        previous: Option<&Self>,
        config: &Config,
        secret: Option<&TicketSecret>,
    ) -> Result<Self, Box<Diagnostic>> {
        let acme = AcmeSite::following(previous.map(|previous| &previous.acme), config)?;
        let mut site = Self {
            acme,
            staples: Staples::default(),
            ocsp_answers: BTreeMap::new(),
            contexts: BTreeMap::new(),
            clients: BTreeMap::new(),
            streams: Vec::new(),
            has_evaluated: false,
            sessions: previous.map_or_else(
                || Sessions::new(secret.cloned()),
                |previous| previous.sessions.clone(),
            ),
        };
        for server in config.http.iter().flat_map(|http| &http.servers) {
            let location = &server.location;
            site.add(
                &location.tls,
                acme_order(server),
                &location.resolver,
                previous,
            )?;
        }
        for settings in config.http.iter().flat_map(|http| &http.tls_passes) {
            let place = Arc::as_ptr(settings) as usize;
            let context = client_context(settings)?;
            site.clients.insert(place, (Arc::clone(settings), context));
        }
        site.add_streams(config, previous)?;
        for (hosts, position) in config.http.iter().flat_map(ssl_hosts) {
            let is_rejecting = hosts.default.location.tls.rejects_handshakes;
            if !is_rejecting && site.of(&hosts.default).is_none() {
                return Err(no_certificate(position));
            }
        }
        Ok(site)
    }

    /// For the servers of `stream`.
    fn add_streams(
        &mut self,
        config: &Config,
        previous: Option<&Self>,
    ) -> Result<(), Box<Diagnostic>> {
        for server in config.stream.iter().flat_map(|stream| &stream.servers) {
            let settings = &server.settings;
            self.add(&settings.tls, None, &settings.resolver, previous)?;
            let known = self.contexts.get(&key_of(&settings.tls, None));
            let protocols = settings.stream.alpn.iter().map(|name| name.to_vec());
            let context = known.map(|known| StreamContext {
                context: known.http1.with_protocols(protocols),
                evaluated: known.evaluated.clone(),
            });
            self.streams.push(context);
        }
        for settings in config.stream.iter().flat_map(|stream| &stream.tls_passes) {
            let place = Arc::as_ptr(settings) as usize;
            let context = client_context(settings)?;
            self.clients.insert(place, (Arc::clone(settings), context));
        }
        for listener in config.stream.iter().flat_map(|stream| &stream.listeners) {
            let of_others = listener.specific.iter().map(|(_, host)| host);
            let mut hosts = of_others.chain([&listener.host]).filter(|host| host.ssl);
            if hosts.any(|host| self.of_stream(&host.server).is_none()) {
                return Err(no_certificate(listener.spot.place.clone()));
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        settings: &Arc<TlsSettings>,
        order: Option<&AcmeOrder>,
        resolver: &ResolverSettings,
        previous: Option<&Self>,
    ) -> Result<(), Box<Diagnostic>> {
        if let Some(zone) = &settings.ocsp_zone {
            let known = previous.and_then(|previous| previous.ocsp_answers.get(&zone.name));
            let answers = known.map_or_else(|| Arc::new(OcspAnswers::new(zone.bytes)), Arc::clone);
            self.ocsp_answers
                .entry(zone.name.clone())
                .or_insert(answers);
        }
        let place = key_of(settings, order);
        let slot = order.and_then(|order| self.acme.of(order));
        let slot = slot.map(|certificate| certificate.slot.clone());
        let is_without = settings.certificates.iter().all(TlsFile::is_of_acme) && slot.is_none();
        if is_without || self.contexts.contains_key(&place) {
            return Ok(());
        }
        let certified = self.certified(settings, resolver, previous)?;
        let evaluated = EvaluatedCertificates::new(settings, &certified);
        self.has_evaluated |= evaluated.is_some();
        let mut http1 = self.context(settings, certified)?;
        if let Some(slot) = &slot {
            http1 = http1.with_slot(slot);
        }
        let contexts = Contexts {
            _settings: Arc::clone(settings),
            awaited: slot.filter(|_| settings.certificates.iter().all(TlsFile::is_of_acme)),
            http2: http1.with_http2(),
            http1,
            evaluated,
        };
        self.contexts.insert(place, contexts);
        Ok(())
    }

    /// Loads the certificates whose names are text.
    fn certified(
        &mut self,
        settings: &TlsSettings,
        resolver: &ResolverSettings,
        previous: Option<&Self>,
    ) -> Result<Vec<Certified>, Box<Diagnostic>> {
        let pairs = settings.certificates.iter().enumerate();
        let pairs = pairs.map(|(at, certificate)| match settings.keys.get(at) {
            Some(key) => Ok((certificate, key)),
            None => {
                let name = certificate.name.display();
                let message =
                    format!("no \"ssl_certificate_key\" is defined for certificate \"{name}\"");
                Err(refused(certificate, message))
            }
        });
        let pairs = pairs.collect::<Result<Vec<_>, _>>()?;
        let mut certified = Vec::new();
        for (certificate, key) in pairs {
            if certificate.is_of_acme() != key.is_of_acme() {
                let (name, other) = (certificate.name.display(), key.name.display());
                let message = format!(
                    "\"{name}\" and \"{other}\" are no pair: write $acme_certificate with $acme_certificate_key"
                );
                return Err(refused(key, message));
            }
            let is_evaluated = certificate.evaluated.is_some() || key.evaluated.is_some();
            if certificate.is_of_acme() || is_evaluated {
                continue;
            }
            let loaded = load(certificate, key, &settings.passwords)?;
            // As with nginx, the answer of a file is stapled to every certificate.
            certified.push(match &settings.staple {
                _ if !settings.stapling => loaded,
                Some(answer) => loaded.with_staple(&answer.pem),
                None => {
                    let previous = previous.map(|previous| &previous.staples);
                    let staples = &mut self.staples;
                    staples.add(loaded, certificate, settings, resolver, previous)
                }
            });
        }
        Ok(certified)
    }

    fn context(
        &self,
        settings: &TlsSettings,
        certified: Vec<Certified>,
    ) -> Result<ServerContext, Box<Diagnostic>> {
        let ciphers = all_ciphers(settings);
        let protocols = settings.bounds.within(settings.protocols)?;
        let ticket_keys = settings.session_ticket_keys.iter();
        let zone = settings.session_zone.as_ref();
        let server_settings = ServerSettings {
            certified,
            tls12: protocols.tls12,
            tls13: protocols.tls13,
            ciphers: ciphers.as_deref(),
            groups: settings.groups.as_deref(),
            prefers_own_order: settings.prefer_server_ciphers,
            tickets: settings.session_tickets,
            ticket_keys: ticket_keys.map(|file| &*file.pem).collect(),
            ticket_secret: settings.session_ticket_secret.as_deref(),
            session_zone: zone.map(|zone| {
                (
                    &*zone.name,
                    usize::try_from(zone.bytes).unwrap_or(usize::MAX),
                )
            }),
            session_lifetime: u32::try_from(settings.session_timeout.as_secs()).unwrap_or(u32::MAX),
            client_check: client_check(settings)?,
            early_data: settings.early_data,
            key_log: settings.key_log.as_deref().map(Arc::from),
            record_bytes_max: usize::try_from(settings.buffer_size).unwrap_or(usize::MAX),
            compresses_certificates: settings.compresses_certificates,
        };
        ServerContext::new(server_settings, &self.sessions).map_err(|error| {
            let file = settings.certificates.first();
            let position = file.map_or(SourcePosition::None, |file| file.position.clone());
            Box::new(Diagnostic::new(
                LogLevel::Emerg,
                error.to_string(),
                position,
            ))
        })
    }

    /// How handshakes with servers are begun, by a location's settings.
    pub(crate) fn client(&self, settings: &Arc<PassTlsSettings>) -> Option<&ClientContext> {
        let known = self.clients.get(&(Arc::as_ptr(settings) as usize));
        known.map(|(_, context)| context)
    }

    /// What a server of `stream` answers handshakes with; `None` if it has no certificate.
    pub(crate) fn of_stream(&self, server: &StreamServer) -> Option<&StreamContext> {
        self.streams.get(server.index)?.as_ref()
    }

    /// What a server answers handshakes with; `None` if it has no certificate.
    fn of(&self, server: &Server) -> Option<&Contexts> {
        self.contexts
            .get(&key_of(&server.location.tls, acme_order(server)))
    }

    /// Whether some certificates are loaded by handshakes.
    pub(crate) const fn has_evaluated(&self) -> bool {
        self.has_evaluated
    }

    /// Starts the tasks that fetch answers of OCSP.
    pub(crate) fn start_stapling<E: Engine>(
        &self,
        local: &Rc<Local<E>>,
        site: &Arc<Site>,
    ) -> Vec<TaskId> {
        self.staples.start(local, site)
    }

    /// What is known of the certificates of clients.
    pub(crate) fn ocsp_answers(&self, zone: &Text) -> Option<&OcspAnswers> {
        self.ocsp_answers.get(zone).map(|answers| &**answers)
    }

    /// Certificates from authorities.
    pub(crate) const fn acme(&self) -> &AcmeSite {
        &self.acme
    }
}

fn key_of(settings: &Arc<TlsSettings>, order: Option<&AcmeOrder>) -> ContextKey {
    let order = order.map_or(0, |order| std::ptr::from_ref(order) as usize);
    (Arc::as_ptr(settings) as usize, order)
}

/// The order whose certificate a server shows.
fn acme_order(server: &Server) -> Option<&AcmeOrder> {
    let mut certificates = server.location.tls.certificates.iter();
    let shows_it = certificates.any(TlsFile::is_of_acme);
    server.acme.as_deref().filter(|_| shows_it)
}

/// A certificate with its key, in PEM.
pub(crate) fn load_pair(certificate: &[u8], key: &[u8]) -> Result<Certified, CertificateError> {
    mill_tls::certificate::load(certificate, key, [])
}

fn no_certificate(position: SourcePosition) -> Box<Diagnostic> {
    let message = "no \"ssl_certificate\" is defined for the \"listen ... ssl\" directive";
    Box::new(Diagnostic::new(LogLevel::Emerg, message, position))
}

fn refused(file: &TlsFile, message: String) -> Box<Diagnostic> {
    let position = file.position.clone();
    Box::new(Diagnostic::new(LogLevel::Emerg, message, position))
}

/// A certificate with its key.
fn load(
    certificate: &TlsFile,
    key: &TlsFile,
    passwords: &[Text],
) -> Result<Certified, Box<Diagnostic>> {
    let passwords = passwords.iter().map(|word| &**word);
    mill_tls::certificate::load(&certificate.pem, &key.pem, passwords).map_err(|error| {
        let (file, what) = if error.is_of_key() {
            (key, "certificate key")
        } else {
            (certificate, "certificate")
        };
        let name = file.name.display();
        refused(file, format!("cannot load {what} \"{name}\": {error}"))
    })
}

/// The ciphers of both versions; `None`: all that there are.
fn all_ciphers(settings: &TlsSettings) -> Option<Vec<&'static str>> {
    with_tls13(settings.ciphers.as_deref(), settings.ciphers_13.as_deref())
}

/// Those of TLS 1.3 are not touched by `ssl_ciphers`, as with OpenSSL.
fn with_tls13(
    tls12: Option<&[&'static str]>,
    tls13: Option<&[&'static str]>,
) -> Option<Vec<&'static str>> {
    if tls12.is_none() && tls13.is_none() {
        return None;
    }
    let (all12, all13) = all_cipher_names();
    let first = tls13.map_or(all13, <[_]>::to_vec);
    let last = tls12.map_or(all12, <[_]>::to_vec);
    Some(first.into_iter().chain(last).collect())
}

/// With what certificates of clients are checked; `None`: they are not asked for any.
fn client_check(settings: &TlsSettings) -> Result<Option<ClientCheck>, Box<Diagnostic>> {
    if settings.verify_client == VerifyClient::Off {
        return Ok(None);
    }
    if settings.ocsp != ClientOcsp::Off && settings.verify_client == VerifyClient::OptionalNoCa {
        let message = "\"ssl_ocsp\" is incompatible with \"ssl_verify_client optional_no_ca\"";
        let file = settings.certificates.first();
        let position = file.map_or(SourcePosition::None, |file| file.position.clone());
        return Err(Box::new(Diagnostic::new(
            LogLevel::Emerg,
            message,
            position,
        )));
    }
    let authorities = settings.client_authorities.as_ref();
    let trusted = settings.trusted.as_ref();
    if authorities.or(trusted).is_none() && settings.verify_client != VerifyClient::OptionalNoCa {
        let message = "no ssl_client_certificate or ssl_trusted_certificate for ssl_verify_client";
        let file = settings.certificates.first();
        let position = file.map_or(SourcePosition::None, |file| file.position.clone());
        return Err(Box::new(Diagnostic::new(
            LogLevel::Emerg,
            message,
            position,
        )));
    }
    let lists = settings.revocation_lists.as_ref();
    let check_settings = ClientCheckSettings {
        authorities: authorities.map(|file| &*file.pem),
        trusted: trusted.map(|file| &*file.pem),
        revocation_lists: lists.map(|file| &*file.pem),
        depth: usize::try_from(settings.verify_depth).unwrap_or(usize::MAX),
    };
    match ClientCheck::new(&check_settings) {
        Ok(check) => Ok(Some(check)),
        Err(error) => {
            let files = [authorities, trusted, lists].into_iter().flatten();
            let mut names = Vec::new();
            let mut position = SourcePosition::None;
            for file in files {
                names.push(format!("\"{}\"", file.name.display()));
                position = file.position.clone();
            }
            let message = format!("cannot load {}: {error}", names.join(", "));
            Err(Box::new(Diagnostic::new(
                LogLevel::Emerg,
                message,
                position,
            )))
        }
    }
}

fn client_context(settings: &PassTlsSettings) -> Result<ClientContext, Box<Diagnostic>> {
    let certified = match (&settings.certificate, &settings.key) {
        (None, _) => None,
        (Some(certificate), Some(key)) => Some(load(certificate, key, &settings.passwords)?),
        (Some(certificate), None) => {
            let name = certificate.name.display();
            let message =
                format!("no \"proxy_ssl_certificate_key\" is defined for certificate \"{name}\"");
            return Err(refused(certificate, message));
        }
    };
    let trusted = match (&settings.trusted, settings.verify) {
        (_, false) => None,
        (Some(trusted), true) => Some(Trusted {
            roots: &trusted.pem,
            revocation_lists: settings.revocation_lists.as_ref().map(|file| &*file.pem),
            depth: usize::try_from(settings.verify_depth).unwrap_or(usize::MAX),
        }),
        (None, true) => {
            let message = "no proxy_ssl_trusted_certificate for proxy_ssl_verify";
            let position = SourcePosition::None;
            return Err(Box::new(Diagnostic::new(
                LogLevel::Emerg,
                message,
                position,
            )));
        }
    };
    let ciphers = with_tls13(settings.ciphers.as_deref(), settings.ciphers_13.as_deref());
    let protocols = settings.bounds.within(settings.protocols)?;
    let client_settings = ClientSettings {
        tls12: protocols.tls12,
        tls13: protocols.tls13,
        ciphers: ciphers.as_deref(),
        groups: settings.groups.as_deref(),
        trusted,
        certified,
        sends_name: settings.sends_name,
        resumes: settings.resumes,
        keeps_many: false,
        early_data: false,
        key_log: settings.key_log.as_deref().map(Arc::from),
    };
    ClientContext::new(client_settings).map_err(|error| {
        let file = settings.trusted.as_ref();
        let name = file.map(|file| file.name.display().to_string());
        let message = format!(
            "cannot load certificate \"{}\": {error}",
            name.unwrap_or_default()
        );
        let position = file.map_or(SourcePosition::None, |file| file.position.clone());
        Box::new(Diagnostic::new(LogLevel::Emerg, message, position))
    })
}

/// What the handshakes of servers with the same settings are answered with.
struct Contexts {
    /// Kept so that no other settings get their address.
    _settings: Arc<TlsSettings>,
    /// What they wait for, if there is no other certificate.
    awaited: Option<CertificateSlot>,
    http1: ServerContext,
    /// Where HTTP/2 is offered as well.
    http2: ServerContext,
    /// Certificates that are loaded for each handshake, if some are.
    evaluated: Option<Arc<EvaluatedCertificates>>,
}

/// What the handshakes of a server of `stream` are answered with.
#[derive(Clone, Debug)]
pub(crate) struct StreamContext {
    context: ServerContext,
    /// Certificates that are loaded for each handshake, if some are.
    evaluated: Option<Arc<EvaluatedCertificates>>,
}

/// The servers of addresses with `ssl`.
fn ssl_hosts(
    http: &mill_config::config::Http,
) -> impl Iterator<Item = (&mill_config::config::VirtualHosts, SourcePosition)> {
    let all = http.listeners.iter().flat_map(|listener| {
        let specific = listener.specific.iter().map(|(_, hosts)| hosts);
        specific.chain([&listener.hosts])
    });
    all.filter(|hosts| hosts.ssl)
        .map(|hosts| (hosts, SourcePosition::None))
}

impl fmt::Debug for TlsSite {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "TlsSite({} contexts)", self.contexts.len())
    }
}
