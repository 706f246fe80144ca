//! Connecting to a server: TCP, the header of the PROXY protocol, the handshake of TLS.

use super::session::Session;
use crate::local::Local;
use crate::log::{Errno, Text};
use crate::proxy::binding::is_of_bind;
use crate::proxy::fault::{Fault, HANDSHAKING, Step};
use crate::proxy::tls::{Securing, words};
use crate::variables::session as variables;
use mill_config::config::LogLevel;
use mill_config::config::settings::BindAddress;
use mill_runtime::address::Address;
use mill_runtime::engine::{ConnectOptions, Engine};
use mill_runtime::payload::Payload;
use mill_runtime::stream::{Stream, StreamError};
use mill_runtime::time::{Duration, Instant};
use mill_tls::transport::{Transport, TransportOf};
use mill_upstream::proxy_protocol::{Ends, emit_v1};
use mill_upstream::select::Selected;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;

/// How a session's servers are connected to.
pub(super) struct Connecting {
    options: ConnectOptions,
    source: Option<SocketAddr>,
    timeout: Duration,
    /// The header of the PROXY protocol; empty if there is none.
    header: Vec<u8>,
    securing: Option<Securing>,
}

/// Why a server was not reached.
#[derive(Debug)]
pub(super) enum Unreached {
    Failed(Fault),
    /// The handshake of TLS failed, in these words.
    NotSecured(String),
    /// Our own address of `proxy_bind` cannot be had, in these words.
    NotBound(String),
}

impl Connecting {
    pub(super) fn of<E: Engine>(
        session: &mut Session,
        securing: Option<Securing>,
        local: &Local<E>,
    ) -> Self {
        let source = source(session, local);
        let settings = &session.server.settings.stream;
        Self {
            options: ConnectOptions {
                source: source.map(Address::Ip),
                transparent: settings.bind.as_ref().is_some_and(|bind| bind.transparent),
                keepalive: settings.socket_keepalive,
                nodelay: session.server.settings.connection.tcp_nodelay,
                ..ConnectOptions::default()
            },
            source,
            timeout: settings.connect_timeout,
            header: match settings.proxy_protocol {
                true => header(session),
                false => Vec::new(),
            },
            securing,
        }
    }

    pub(super) const fn header_len(&self) -> u64 {
        self.header.len() as u64
    }

    /// A connection on which the session's own bytes come next.
    pub(super) async fn connect<E: Engine>(
        &self,
        selected: &Selected,
        local: &Local<E>,
    ) -> Result<TransportOf<E>, Unreached> {
        let (address, task) = (selected.peer().address(), local.scheduler.current());
        let stream = match local.engine.connect(&address, &self.options, task) {
            Ok(stream) => stream,
            Err(error) => return Err(self.not_opened(error)),
        };
        let stream = match &self.securing {
            None => Transport::Tcp(stream),
            Some(securing) => securing.wrap(stream, false, local),
        };
        let deadline = local.scheduler.now() + self.timeout;
        if self.header.is_empty() {
            stream.begin_tls();
            establish(&stream, deadline, local).await?;
        } else {
            establish(&stream, deadline, local).await?;
            stream.write(Payload::Copy(&self.header));
            stream.begin_tls();
            if self.securing.is_some() {
                establish(&stream, deadline, local).await?;
            }
        }
        Ok(stream)
    }

    fn not_opened(&self, error: StreamError) -> Unreached {
        let (StreamError::Other(code), Some(source)) = (error, self.source) else {
            return Unreached::Failed(Fault::NotConnected(error));
        };
        if !is_of_bind(code) {
            return Unreached::Failed(Fault::NotConnected(error));
        }
        let error = Errno(code);
        Unreached::NotBound(match source.port() {
            0 => format!("bind({}) failed ({error})", source.ip()),
            _ => format!("bind({source}) failed ({error})"),
        })
    }
}

async fn establish<E: Engine>(
    stream: &TransportOf<E>,
    deadline: Instant,
    local: &Local<E>,
) -> Result<(), Unreached> {
    let established = poll_fn(|_| match stream.poll_drained(0) {
        Poll::Ready(result) => {
            let failed = |error| Unreached::Failed(Fault::Failed(Step::Connecting, error));
            Poll::Ready(result.map_err(failed))
        }
        Poll::Pending => {
            let expired = local.scheduler.poll_deadline(deadline);
            expired.map(|_| Err(Unreached::Failed(Fault::TimedOut(Step::Connecting))))
        }
    });
    let established = established.await;
    match stream.tls_fault() {
        Some(fault) if established.is_err() => Err(Unreached::NotSecured(words(&fault))),
        _ => established,
    }
}

/// The address of `proxy_bind`. As in nginx, one that is none is logged, and the system chooses.
fn source<E: Engine>(session: &mut Session, local: &Local<E>) -> Option<SocketAddr> {
    let server = Arc::clone(&session.server);
    let template = match &server.settings.stream.bind.as_ref()?.address {
        BindAddress::Fixed(address) => return Some(*address),
        BindAddress::Evaluated(template) => template,
    };
    let text = variables::evaluate(template, session, local);
    let address = BindAddress::parse(&text);
    if address.is_none() && !text.is_empty() {
        let line = format_args!("invalid local address \"{}\"", Text(&text));
        session.log_error(LogLevel::Error, line, local);
    }
    address
}

/// The header of the PROXY protocol for the session's client.
fn header(session: &Session) -> Vec<u8> {
    let ends = match (session.client(), session.facts.local()) {
        (Address::Ip(source), Address::Ip(destination)) => Some(Ends::Ip {
            source: *source,
            destination: *destination,
        }),
        _ => None,
    };
    let mut header = Vec::new();
    emit_v1(ends, &mut header);
    header
}

impl Unreached {
    /// What the log says of a server, as nginx words it.
    pub(super) fn text(&self, server: &[u8]) -> String {
        match self {
            Self::Failed(fault) => fault.of(server).to_string(),
            Self::NotSecured(words) => format!("{words} while {HANDSHAKING}"),
            Self::NotBound(words) => format!("{words} while {}", Step::Connecting.words()),
        }
    }

    pub(super) fn level(&self) -> LogLevel {
        match self {
            Self::Failed(fault) => fault.level(),
            Self::NotSecured(_) => LogLevel::Error,
            Self::NotBound(_) => LogLevel::Crit,
        }
    }
}

/// TLS to servers: `proxy_ssl`.
pub(super) fn securing<E: Engine>(
    host: &[u8],
    session: &mut Session,
    local: &Local<E>,
) -> Option<Securing> {
    let server = Arc::clone(&session.server);
    if !server.settings.stream.proxy_ssl {
        return None;
    }
    let settings = &server.settings.proxy_tls;
    let context = session.site.tls.client(settings)?.clone();
    let name = match &settings.name {
        Some(template) => variables::evaluate(template, session, local),
        None => host.to_vec(),
    };
    Some(Securing::new(context, &name))
}
