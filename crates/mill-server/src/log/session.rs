//! Access logs of `stream`: a line for each session; and what error logs say of one.

use super::access::{emit_seconds, emit_stamp};
use super::error::append;
use super::escape::emit_value;
use super::queue::PlaceRef;
use crate::local::Local;
use crate::stream::session::Session;
use crate::variables::session as variables;
use mill_config::config::template::Part;
use mill_config::config::{AccessLog, LogEscape, LogFormat, LogPath, Variable};
use mill_runtime::address::Address;
use mill_runtime::engine::Engine;
use std::sync::Arc;

/// Writes a line to each access log of the session's server.
pub(crate) fn write<E: Engine>(session: &mut Session, local: &Local<E>) {
    let server = Arc::clone(&session.server);
    let site = Arc::clone(&session.site);
    let formats = site.config.stream.iter().map(|stream| &stream.log_formats);
    for log in &server.settings.log.access_logs {
        let format = formats.clone().find_map(|formats| formats.get(log.format));
        if let Some(format) = format
            && applies(log, session, local)
        {
            write_line(log, format, session, local);
        }
    }
}

/// Whether `if=` lets a line be written: its text is neither empty nor `0`.
fn applies<E: Engine>(log: &AccessLog, session: &mut Session, local: &Local<E>) -> bool {
    let Some(condition) = &log.condition else {
        return true;
    };
    let text = variables::evaluate(condition, session, local);
    !matches!(text.as_slice(), b"" | b"0")
}

fn write_line<E: Engine>(
    log: &AccessLog,
    format: &LogFormat,
    session: &mut Session,
    local: &Local<E>,
) {
    let mut line = local.log.begin_line();
    for part in format.template.parts() {
        emit_part(part, format.escape, session, local, &mut line);
    }
    line.push(b'\n');
    match &log.path {
        LogPath::File(path) => {
            let buffer = log.buffer;
            local.log.add_line(PlaceRef::Opened { path, buffer }, &line);
        }
        LogPath::Evaluated(path) => {
            let path = variables::evaluate(path, session, local);
            let cache = session.server.settings.log.open_log_file_cache;
            let place = PlaceRef::Evaluated {
                path: &path,
                root: b"/",
                cache,
            };
            local.log.add_line(place, &line);
        }
        // Rows are of requests; the configuration has none here.
        LogPath::Table(_) => {}
    }
    local.log.end_line(line);
}

fn emit_part<E: Engine>(
    part: &Part,
    escape: LogEscape,
    session: &mut Session,
    local: &Local<E>,
    line: &mut Vec<u8>,
) {
    match part {
        Part::Literal(text) => line.extend_from_slice(text),
        Part::Capture(number) => {
            let value = session.captures.capture(usize::from(*number));
            emit_value(Some(value), escape, line);
        }
        Part::Variable(Variable::SessionTime) => {
            emit_seconds(local.scheduler.now().since(session.facts.started), line);
        }
        Part::Variable(variable) => {
            if !emit_stamp(variable, local, line) {
                let value = variables::value(variable, session, local);
                emit_value(value.as_deref(), escape, line);
            }
        }
    }
}

/// Appends what error logs say of a session: `client`, `server`, `upstream`, and bytes so far.
pub(super) fn emit_session(session: &Session, line: &mut Vec<u8>) {
    line.extend_from_slice(b", client: ");
    match session.client() {
        Address::Ip(address) => append(line, format_args!("{}", address.ip())),
        Address::Unix(_) => line.extend_from_slice(b"unix:"),
    }
    append(
        line,
        format_args!(", server: {}", session.facts.listening_at),
    );
    if !session.is_passed_on {
        return;
    }
    let tried = session.tries.last();
    if let Some(tried) = tried {
        let server = super::Text(&tried.server);
        append(line, format_args!(", upstream: \"{server}\""));
    }
    let (received, sent) = (session.received, session.sent);
    append(
        line,
        format_args!(", bytes from/to client:{received}/{sent}"),
    );
    let (received, sent) = tried.map_or((0, 0), |tried| (tried.received, tried.sent));
    append(
        line,
        format_args!(", bytes from/to upstream:{received}/{sent}"),
    );
}
