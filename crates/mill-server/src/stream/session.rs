//! What is known of a session: for its phases, for variables, and for logs.

use super::SessionStatus;
use crate::connection::Connection;
use crate::limits::status::ConnectionStatus;
use crate::local::Local;
use crate::request::CaptureSet;
use crate::request::ConnectionFacts;
use crate::request::real_ip::is_trusted;
use crate::site::Site;
use mill_config::config::pattern::Captures;
use mill_config::config::{LogLevel, Pattern, StreamServer};
use mill_runtime::address::Address;
use mill_runtime::engine::Engine;
use mill_runtime::stream::Stream;
use mill_runtime::time::{Duration, Instant};
use mill_tls::client_hello::ClientHello;
use mill_upstream::proxy_protocol::Ends;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// A connection to a server of `stream`. It keeps the configuration that it began with.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) site: Arc<Site>,
    pub(crate) server: Arc<StreamServer>,
    pub(crate) facts: Rc<ConnectionFacts>,
    /// The client that a trusted proxy has told.
    told_client: Option<Address>,
    pub(crate) status: u16,
    /// Bytes from and to the client.
    pub(crate) received: u64,
    pub(crate) sent: u64,
    /// The ClientHello that was looked at.
    pub(crate) hello: Option<Box<ClientHello>>,
    pub(crate) tries: Vec<Try>,
    pub(crate) limit_status: Option<ConnectionStatus>,
    /// It has come to `proxy_pass`.
    pub(crate) is_passed_on: bool,
    /// Values of user variables by their index; `None` is not set.
    pub(crate) values: Vec<Option<Vec<u8>>>,
    /// How deep a map refers to maps now.
    pub(crate) depth: u8,
    pub(crate) captures: CaptureSet,
}

/// A try at a server.
#[derive(Debug)]
pub(crate) struct Try {
    /// Its address; the group's name if it had none to try.
    pub(crate) server: Box<[u8]>,
    pub(crate) begun: Instant,
    pub(crate) connect_time: Option<Duration>,
    pub(crate) first_byte_time: Option<Duration>,
    pub(crate) session_time: Option<Duration>,
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

impl Session {
    /// `None`: the listener is not one of its configuration's.
    pub(super) fn of<E: Engine>(connection: &mut Connection<E>) -> Option<Self> {
        let site = connection.listener.site();
        let facts = connection.facts(true);
        let place = site
            .config
            .stream_listener(connection.listener.listener())?;
        let stream = site.config.stream.as_ref()?;
        let listener = stream.listeners.get(place)?;
        let local = match facts.local() {
            Address::Ip(address) => Some(address.ip()),
            Address::Unix(_) => None,
        };
        let server = Arc::clone(&listener.host_for(local).server);
        let mut session = Self::new(Arc::clone(&site), server, facts);
        session.told_client = session.told();
        Some(session)
    }

    /// Before anything is known of it but the connection.
    pub(crate) fn new(
        site: Arc<Site>,
        server: Arc<StreamServer>,
        facts: Rc<ConnectionFacts>,
    ) -> Self {
        let stream = site.config.stream.as_ref();
        let variables = stream.map_or(0, |stream| stream.user_variables.len());
        Self {
            values: vec![None; variables],
            server,
            facts,
            told_client: None,
            status: 0,
            received: 0,
            sent: 0,
            hello: None,
            tries: Vec::new(),
            limit_status: None,
            is_passed_on: false,
            depth: 0,
            captures: CaptureSet::default(),
            site,
        }
    }

    /// The client whose address rules, variables and logs use.
    pub(crate) fn client(&self) -> &Address {
        self.told_client.as_ref().unwrap_or(&self.facts.peer)
    }

    /// `set_real_ip_from`: what the header of the PROXY protocol tells.
    fn told(&self) -> Option<Address> {
        let from = &self.server.settings.real_ip.from;
        if !is_trusted(&self.facts.peer, from) {
            return None;
        }
        match self.facts.proxy_header()?.ends? {
            Ends::Ip { source, .. } => Some(Address::Ip(source)),
            Ends::Unix { .. } => None,
        }
    }

    /// Begins a try at a server.
    pub(super) fn begin_try(&mut self, server: &[u8], now: Instant) {
        self.tries.push(Try {
            server: server.into(),
            begun: now,
            connect_time: None,
            first_byte_time: None,
            session_time: None,
            sent: 0,
            received: 0,
        });
    }

    /// The try that is under way has ended.
    pub(super) fn end_try(&mut self, now: Instant) {
        if let Some(last) = self.tries.last_mut() {
            last.session_time = Some(now.since(last.begun));
        }
    }

    /// Counts the session.
    pub(super) fn end<E: Engine>(&mut self, status: SessionStatus, local: &Local<E>) {
        self.status = status.0;
        let mut counters = local.counters.borrow_mut();
        counters.bytes_sent += self.sent;
        counters.session_bytes_received += self.received;
        counters.session_bytes_sent += self.sent;
        match status.0 {
            400..500 => counters.sessions_refused += 1,
            500.. => counters.sessions_failed += 1,
            _ => {}
        }
    }

    /// Keeps the captures of a regular expression in `subject`: numbers for `$1`, names for user variables.
    pub(crate) fn keep_captures(
        &mut self,
        pattern: Option<&Pattern>,
        subject: &[u8],
        ranges: Captures,
    ) {
        self.captures.keep(subject, ranges);
        for &(capture, variable) in pattern.map(Pattern::named).unwrap_or_default() {
            let value = self.captures.capture(capture).to_vec();
            if let Some(place) = self.values.get_mut(variable) {
                *place = Some(value);
            }
        }
    }

    /// A line with what the session is, and how far it has come.
    pub(crate) fn log_error<E: Engine>(
        &self,
        level: LogLevel,
        message: fmt::Arguments<'_>,
        local: &Local<E>,
    ) {
        let number = self.facts.number;
        let logs = &self.server.settings.log.error_logs;
        local.log_session_error(number, &self.facts.peer, logs, level, message, Some(self));
    }

    /// A line with the number of the connection alone.
    pub(super) fn log_bare<E: Engine>(
        &self,
        level: LogLevel,
        message: fmt::Arguments<'_>,
        local: &Local<E>,
    ) {
        let number = self.facts.number;
        let logs = &self.server.settings.log.error_logs;
        local.log_session_error(number, &self.facts.peer, logs, level, message, None);
    }
}

/// The line that a connection was accepted, before anything is known of it.
pub(crate) fn log_accepted<E: Engine>(connection: &Connection<E>) {
    let site = connection.listener.site();
    let place = site.config.stream_listener(connection.listener.listener());
    let stream = site.config.stream.as_ref();
    let listener = place.and_then(|place| stream?.listeners.get(place));
    let Some(listener) = listener else { return };
    let logs = &listener.host.server.settings.log.error_logs;
    if !logs.iter().any(|log| LogLevel::Info <= log.level) {
        return;
    }
    let (client, at) = (connection.stream().peer(), &connection.listener.address);
    let line = format_args!("client {client} connected to {at}");
    let (number, level) = (connection.number(), LogLevel::Info);
    let local = &connection.local;
    local.log_session_error(number, &client, logs, level, line, None);
}

/// A transport's own count of bytes that its peer has taken, of `written` ones.
pub(super) fn taken(stream: &impl Stream, written: u64) -> u64 {
    written.saturating_sub(stream.queued())
}
