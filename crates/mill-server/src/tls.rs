//! TLS to clients: what handshakes are answered with, by server.

use crate::site::Site;
use mill_config::config::LogLevel;
use mill_config::config::settings::{PassTlsSettings, TlsFile, TlsSettings};
use mill_config::config::{Captures, Config, Server};
use mill_config::diagnostic::{Diagnostic, SourcePosition};
use mill_tls::certificate::Certified;
use mill_tls::client_context::{ClientContext, ClientSettings, Trusted};
use mill_tls::client_hello::ClientHello;
use mill_tls::server_context::{Choice, ServerChoice, ServerContext, ServerSettings, Sessions};
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// The contexts of all servers of a configuration, shared by all workers.
#[derive(Default)]
pub struct TlsSite {
    /// By the address of their settings, which servers that inherit them share.
    contexts: BTreeMap<usize, Contexts>,
    /// To servers, by the address of the settings of locations that share them.
    clients: BTreeMap<usize, (Arc<PassTlsSettings>, ClientContext)>,
    /// Goes on over reloads, so that sessions do.
    sessions: Sessions,
}

impl TlsSite {
    /// For the servers of this configuration. The error names the certificate that cannot be used.
    pub fn following(previous: Option<&Self>, config: &Config) -> Result<Self, Box<Diagnostic>> {
        let mut site = Self {
            contexts: BTreeMap::new(),
            clients: BTreeMap::new(),
            sessions: previous.map_or_else(Sessions::default, |previous| previous.sessions.clone()),
        };
        for server in config.http.iter().flat_map(|http| &http.servers) {
            site.add(&server.location.tls)?;
        }
        for settings in config.http.iter().flat_map(|http| &http.tls_passes) {
            let place = Arc::as_ptr(settings) as usize;
            let context = client_context(settings)?;
            site.clients.insert(place, (Arc::clone(settings), context));
        }
        for (hosts, position) in config.http.iter().flat_map(ssl_hosts) {
            if site.of(&hosts.default).is_none() {
                let message =
                    "no \"ssl_certificate\" is defined for the \"listen ... ssl\" directive";
                return Err(Box::new(Diagnostic::new(
                    LogLevel::Emerg,
                    message,
                    position,
                )));
            }
        }
        Ok(site)
    }

    fn add(&mut self, settings: &Arc<TlsSettings>) -> Result<(), Box<Diagnostic>> {
        let place = Arc::as_ptr(settings) as usize;
        if settings.certificates.is_empty() || self.contexts.contains_key(&place) {
            return Ok(());
        }
        let http1 = self.context(settings)?;
        let contexts = Contexts {
            _settings: Arc::clone(settings),
            http2: http1.with_http2(),
            http1,
        };
        self.contexts.insert(place, contexts);
        Ok(())
    }

    fn context(&self, settings: &TlsSettings) -> Result<ServerContext, Box<Diagnostic>> {
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
            certified.push(load(certificate, key)?);
        }
        let server_settings = ServerSettings {
            certified,
            tls12: settings.protocols.tls12,
            tls13: settings.protocols.tls13,
            prefers_own_order: settings.prefer_server_ciphers,
            tickets: settings.session_tickets,
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

    /// What a server answers handshakes with; `None` if it has no certificate.
    fn of(&self, server: &Server) -> Option<&Contexts> {
        let settings = &server.location.tls;
        self.contexts.get(&(Arc::as_ptr(settings) as usize))
    }
}

fn refused(file: &TlsFile, message: String) -> Box<Diagnostic> {
    let position = file.position.clone();
    Box::new(Diagnostic::new(LogLevel::Emerg, message, position))
}

/// A certificate with its key.
fn load(certificate: &TlsFile, key: &TlsFile) -> Result<Certified, Box<Diagnostic>> {
    mill_tls::certificate::load(&certificate.pem, &key.pem).map_err(|error| {
        let (file, what) = if error.is_of_key() {
            (key, "certificate key")
        } else {
            (certificate, "certificate")
        };
        let name = file.name.display();
        refused(file, format!("cannot load {what} \"{name}\": {error}"))
    })
}

fn client_context(settings: &PassTlsSettings) -> Result<ClientContext, Box<Diagnostic>> {
    let certified = match (&settings.certificate, &settings.key) {
        (None, _) => None,
        (Some(certificate), Some(key)) => Some(load(certificate, key)?),
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
    let client_settings = ClientSettings {
        tls12: settings.protocols.tls12,
        tls13: settings.protocols.tls13,
        trusted,
        certified,
        sends_name: settings.sends_name,
        resumes: settings.resumes,
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
    http1: ServerContext,
    /// Where HTTP/2 is offered as well.
    http2: ServerContext,
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

/// Chooses among the servers of the address that a client has connected to, by the name that it asks for.
#[derive(Debug)]
pub(crate) struct ServerOfName {
    pub(crate) site: Arc<Site>,
    /// Index into the listeners of the site.
    pub(crate) listener: usize,
    pub(crate) local: Option<IpAddr>,
}

impl ServerChoice for ServerOfName {
    fn choose(&self, hello: &ClientHello) -> Choice {
        let http = self.site.config.http.as_ref();
        let Some(listener) = http.and_then(|http| http.listeners.get(self.listener)) else {
            return Choice::Reject;
        };
        let hosts = listener.hosts_for(self.local);
        let server = match &hello.server_name {
            Some(name) => hosts.find(name.as_bytes(), &mut Captures::default()),
            None => &hosts.default,
        };
        // As with nginx, a server without a certificate is served under the default server's.
        let context = self
            .site
            .tls
            .of(server)
            .or_else(|| self.site.tls.of(&hosts.default));
        let http2 = hosts.http2_of_address || server.location.http2.enabled;
        context.map_or(Choice::Reject, |contexts| {
            let context = if http2 {
                &contexts.http2
            } else {
                &contexts.http1
            };
            Choice::Take(context.clone())
        })
    }
}
