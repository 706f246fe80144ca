//! Error logs: nginx's format, levels and suffixes.
//!
//! `2026/11/21 01:30:00 [error] 123#124: *1 open() "/x" failed (2: No such file or directory), client: 127.0.0.1,
//! server: localhost, request: "GET /x HTTP/1.1", host: "localhost"`

use super::keys;
use super::queue::PlaceRef;
use super::session::emit_session;
use crate::local::Local;
use crate::request::Request;
use crate::site::Site;
use crate::stream::session::Session;
use mill_config::config::{Config, ErrorLog, ErrorLogTarget, ListenAddress, Location, LogLevel};
use mill_http::field::KnownField;
use mill_runtime::address::Address;
use mill_runtime::engine::Engine;
use std::fmt::{self, Write};
use std::net::IpAddr;

/// Bytes as text for a message: what is not UTF-8 is written as `\xXX`.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a>(pub &'a [u8]);

/// What error logs say of a request, without the request.
#[derive(Debug)]
pub(crate) struct ErrorContext {
    connection: u64,
    is_debugged: bool,
    /// From `client` to `referrer`.
    suffix: Box<[u8]>,
}

/// The name of the standard error stream among the logs. No file has it: their paths begin with a slash.
pub const STDERR: &str = "stderr";

impl<E: Engine> Local<E> {
    /// Writes a line to the error logs of the request's location, or of the process when there is no request. Costs a
    /// comparison for each log if none logs that level. Error numbers are shown by [`super::Errno`], bytes by [`Text`].
    pub fn log_error(
        &self,
        request: Option<&Request>,
        level: LogLevel,
        message: fmt::Arguments<'_>,
    ) {
        let Some(request) = request else {
            let site = self.site();
            self.write_error(
                &site.config.main.error_log,
                false,
                level,
                None,
                message,
                |_| {},
            );
            return;
        };
        let connection = &request.connection;
        let debug = is_debugged(&request.site.config, || connection.peer.clone());
        let logs = &request.location.log.error_logs;
        self.write_error(
            logs,
            debug,
            level,
            Some(connection.number),
            message,
            |line| {
                emit_request(request, line);
            },
        );
    }

    /// What the lines of a request that is let go before they are written will need, at [`LogLevel::Error`] and above.
    pub(crate) fn error_context(&self, request: &Request) -> ErrorContext {
        let connection = &request.connection;
        let mut line = self.log.begin_line();
        if self.logs_errors_at(Some(request), LogLevel::Error) {
            emit_request(request, &mut line);
        }
        let context = ErrorContext {
            connection: connection.number,
            is_debugged: is_debugged(&request.site.config, || connection.peer.clone()),
            suffix: Box::from(line.as_slice()),
        };
        self.log.end_line(line);
        context
    }

    /// Writes a line for such a request; `logs` are those of its location.
    pub(crate) fn log_error_in(
        &self,
        context: &ErrorContext,
        logs: &[ErrorLog],
        level: LogLevel,
        message: fmt::Arguments<'_>,
    ) {
        let (debug, connection) = (context.is_debugged, Some(context.connection));
        self.write_error(logs, debug, level, connection, message, |line| {
            line.extend_from_slice(&context.suffix);
        });
    }

    /// The same for a connection before its first request, or between two. `listener` is an index into the listeners of
    /// the configuration in force; the error logs are those of its default server. `peer` is called only if a line is
    /// written.
    pub fn log_connection_error(
        &self,
        number: u64,
        peer: impl Fn() -> Address,
        listener: Option<usize>,
        level: LogLevel,
        message: fmt::Arguments<'_>,
    ) {
        let site = self.site();
        let listener = listener_of(&site, listener);
        let (logs, debug) = (logs_of(&site, listener), is_debugged(&site.config, &peer));
        self.write_error(logs, debug, level, Some(number), message, |line| {
            line.extend_from_slice(b", client: ");
            emit_address(&peer(), line);
            if let Some((address, _)) = listener {
                line.extend_from_slice(b", server: ");
                append(line, format_args!("{address}"));
            }
        });
    }

    /// Writes a line for a session of `stream`, with what is known of it or only with the connection's number.
    pub(crate) fn log_session_error(
        &self,
        number: u64,
        peer: &Address,
        logs: &[ErrorLog],
        level: LogLevel,
        message: fmt::Arguments<'_>,
        session: Option<&Session>,
    ) {
        let debug = is_debugged(&self.site().config, || peer.clone());
        self.write_error(logs, debug, level, Some(number), message, |line| {
            if let Some(session) = session {
                emit_session(session, line);
            }
        });
    }

    /// The same for what concerns a location, and no client.
    pub(crate) fn log_location_error(
        &self,
        location: &Location,
        level: LogLevel,
        message: fmt::Arguments<'_>,
    ) {
        let logs = &location.log.error_logs;
        self.write_error(logs, false, level, None, message, |_| {});
    }

    /// The line for a client that ends a connection which was kept alive; nginx adds nothing to it.
    pub fn log_keepalive_end(
        &self,
        number: u64,
        peer: impl Fn() -> Address,
        listener: Option<usize>,
    ) {
        let site = self.site();
        let logs = logs_of(&site, listener_of(&site, listener));
        let debug = is_debugged(&site.config, &peer);
        if !debug && !logs.iter().any(|log| LogLevel::Info <= log.level) {
            return;
        }
        let mut client = Vec::new();
        emit_address(&peer(), &mut client);
        let message = format_args!("client {} closed keepalive connection", Text(&client));
        self.write_error(logs, debug, LogLevel::Info, Some(number), message, |_| {});
    }

    /// Whether any of these error logs logs this level: ask before making something costly for a message.
    pub fn logs_errors_at(&self, request: Option<&Request>, level: LogLevel) -> bool {
        let wants = |logs: &[ErrorLog]| logs.iter().any(|log| level <= log.level);
        match request {
            Some(request) => {
                wants(&request.location.log.error_logs)
                    || is_debugged(&request.site.config, || request.connection.peer.clone())
            }
            None => wants(&self.site().config.main.error_log),
        }
    }

    /// Ends the worker's turn for the logs: hands over its lines, counts the lost ones, and logs their number when
    /// there is room again. Says whether it has counted any.
    #[must_use]
    pub fn hand_over_logs(&self) -> bool {
        if let Some(lines) = self.log.loss_to_report() {
            let why = "the disk was slower than the requests";
            self.log_error(
                None,
                LogLevel::Alert,
                format_args!("{lines} log lines were lost: {why}"),
            );
        }
        keys::gather(&self.log);
        let lost = self.log.end_of_turn(self.scheduler.now());
        if lost > 0 {
            let mut counters = self.counters.borrow_mut();
            counters.log_lines_lost = counters.log_lines_lost.saturating_add(lost);
        }
        lost > 0
    }

    fn write_error(
        &self,
        logs: &[ErrorLog],
        debug: bool,
        level: LogLevel,
        connection: Option<u64>,
        message: fmt::Arguments<'_>,
        suffix: impl FnOnce(&mut Vec<u8>),
    ) {
        if !debug && !logs.iter().any(|log| level <= log.level) {
            return;
        }
        let mut line = self.log.begin_line();
        {
            let second = self.scheduler.wall_clock().seconds;
            let mut stamps = self.log.stamps.borrow_mut();
            line.extend_from_slice(stamps.error(second, self.environment.utc_offset));
        }
        let (pid, tid) = (self.environment.pid, self.log.thread_id);
        emit_start(level, pid, tid, connection, &mut line);
        append(&mut line, message);
        suffix(&mut line);
        end_line(&mut line);
        for log in logs.iter().filter(|log| debug || level <= log.level) {
            self.log.add_line(place_of(log), &line);
        }
        self.log.end_line(line);
    }
}

/// Where the lines of an error log go.
pub(super) fn place_of(log: &ErrorLog) -> PlaceRef<'_> {
    match &log.target {
        ErrorLogTarget::File(path) => PlaceRef::Opened { path, buffer: None },
        ErrorLogTarget::Stderr => PlaceRef::Stderr,
    }
}

/// Appends the part between the time and the message.
pub(super) fn emit_start(
    level: LogLevel,
    pid: u32,
    tid: u32,
    connection: Option<u64>,
    line: &mut Vec<u8>,
) {
    append(line, format_args!(" [{}] {pid}#{tid}: ", level.name()));
    if let Some(number) = connection {
        append(line, format_args!("*{number} "));
    }
}

/// Cuts the line to nginx's length, removes line breaks, and ends it.
pub(super) fn end_line(line: &mut Vec<u8>) {
    line.truncate(LINE_BYTES_MAX - 1);
    line.push(b'\n');
}

/// Appends text; control bytes in it become `\xXX`, so that it stays one line.
pub(super) fn append(line: &mut Vec<u8>, text: fmt::Arguments<'_>) {
    // Writing to memory does not fail.
    let _ = OneLine(line).write_fmt(text);
}

/// The longest line, its end included: nginx's NGX_MAX_ERROR_STR.
pub(super) const LINE_BYTES_MAX: usize = 2048;

struct OneLine<'a>(&'a mut Vec<u8>);

impl Write for OneLine<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        emit_bytes(text.as_bytes(), self.0);
        Ok(())
    }
}

/// Appends bytes, escaping control bytes.
fn emit_bytes(bytes: &[u8], line: &mut Vec<u8>) {
    for &byte in bytes {
        if byte.is_ascii_control() {
            line.extend_from_slice(b"\\x");
            line.extend_from_slice(&hexadecimal(byte));
        } else {
            line.push(byte);
        }
    }
}

/// Two upper-case digits.
pub(super) fn hexadecimal(byte: u8) -> [u8; 2] {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    [byte >> 4, byte & 15].map(|digit| DIGITS.get(usize::from(digit)).copied().unwrap_or(b'?'))
}

fn emit_request(request: &Request, line: &mut Vec<u8>) {
    let message = &request.message;
    let field = |known| {
        let value = message.head.value(known);
        value.map(|value| value.of(&message.bytes))
    };
    line.extend_from_slice(b", client: ");
    emit_address(request.client(), line);
    line.extend_from_slice(b", server: ");
    emit_bytes(&request.server.name, line);
    let request_line = match message.head.request_line.of(&message.bytes) {
        // The head was refused before its request line was parsed.
        b"" => first_line(&message.bytes),
        request_line => request_line,
    };
    if !request_line.is_empty() {
        emit_quoted(b", request: ", request_line, line);
    }
    if let Some(trace) = &request.upstream {
        trace.show_url(|url| emit_quoted(b", upstream: ", url, line));
    }
    if let Some(host) = field(KnownField::Host) {
        emit_quoted(b", host: ", host, line);
    }
    if let Some(referer) = field(KnownField::Referer) {
        emit_quoted(b", referrer: ", referer, line);
    }
}

fn first_line(bytes: &[u8]) -> &[u8] {
    let end = bytes
        .iter()
        .position(|byte| matches!(byte, b'\r' | b'\n'))
        .unwrap_or(bytes.len());
    bytes.get(..end).unwrap_or_default()
}

fn emit_quoted(name: &[u8], value: &[u8], line: &mut Vec<u8>) {
    line.extend_from_slice(name);
    line.push(b'"');
    emit_bytes(value, line);
    line.push(b'"');
}

/// A client's address without its port, as `$remote_addr` shows it.
fn emit_address(address: &Address, line: &mut Vec<u8>) {
    match address {
        Address::Ip(address) => append(line, format_args!("{}", address.ip())),
        Address::Unix(_) => line.extend_from_slice(b"unix:"),
    }
}

fn ip_of(address: &Address) -> Option<IpAddr> {
    match address {
        Address::Ip(address) => Some(address.ip()),
        Address::Unix(_) => None,
    }
}

/// A listener's address, and the error logs of its default server.
type ListenerLogs<'s> = (&'s ListenAddress, &'s [ErrorLog]);

fn listener_of(site: &Site, place: Option<usize>) -> Option<ListenerLogs<'_>> {
    let place = place?;
    if let Some(at) = site.config.stream_listener(place) {
        let listener = site.config.stream.as_ref()?.listeners.get(at)?;
        let logs = &listener.host.server.settings.log.error_logs;
        return Some((&listener.address, logs));
    }
    let listener = site.config.http.as_ref()?.listeners.get(place)?;
    let logs = &listener.hosts.default.location.log.error_logs;
    Some((&listener.address, logs))
}

/// Of the listener's default server, or of the process.
fn logs_of<'s>(site: &'s Site, listener: Option<ListenerLogs<'s>>) -> &'s [ErrorLog] {
    listener.map_or(&site.config.main.error_log, |(_, logs)| logs)
}

fn is_debugged(config: &Config, peer: impl Fn() -> Address) -> bool {
    let networks = &config.events.debug_connection;
    let client = || ip_of(&peer());
    !networks.is_empty() && networks.iter().any(|network| network.contains(client()))
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            formatter.write_str(chunk.valid())?;
            for byte in chunk.invalid() {
                write!(formatter, "\\x{byte:02X}")?;
            }
        }
        Ok(())
    }
}
