//! Access logs: a line for each answer.

use super::escape::emit_value;
use super::queue::PlaceRef;
use super::row;
use crate::local::Local;
use crate::request::Request;
use crate::request::document;
use crate::site::Site;
use crate::variables;
use mill_config::config::settings::LogSettings;
use mill_config::config::template::Part;
use mill_config::config::{AccessLog, LogEscape, LogFormat, LogPath, Template, Variable};
use mill_runtime::engine::Engine;
use mill_runtime::time::{Duration, Instant, UnixTime};
use std::fmt;
use std::io::Write;
use std::sync::Arc;

/// Writes a line to each access log of the request's location. Called once the answer was sent, or abandoned.
pub fn write<E: Engine>(request: &mut Request, local: &Local<E>) {
    if request.location.log.access_logs.is_empty() {
        return;
    }
    let settings = Arc::clone(&request.location.log);
    let site = Arc::clone(&request.site);
    for (log, format) in logs(&settings, &site) {
        if applies(log, request, local) {
            write_line(log, format, request, local);
        }
    }
}

/// The access logs of a location, each with its format.
pub(super) fn logs<'a>(
    settings: &'a LogSettings,
    site: &'a Site,
) -> impl Iterator<Item = (&'a AccessLog, &'a LogFormat)> {
    let formats = site
        .config
        .http
        .as_ref()
        .map(|http| http.log_formats.as_slice());
    settings.access_logs.iter().filter_map(move |log| {
        let format = formats.and_then(|formats| formats.get(log.format));
        debug_assert!(format.is_some(), "a log's format is in the table");
        Some((log, format?))
    })
}

/// Whether `if=` lets a line be written: its text is neither empty nor `0`.
pub(super) fn applies<E: Engine>(log: &AccessLog, request: &mut Request, local: &Local<E>) -> bool {
    let Some(condition) = &log.condition else {
        return true;
    };
    let mut text = local.log.begin_line();
    variables::append(condition, request, local, &mut text);
    let applies = !matches!(text.as_slice(), b"" | b"0");
    local.log.end_line(text);
    applies
}

fn write_line<E: Engine>(
    log: &AccessLog,
    format: &LogFormat,
    request: &mut Request,
    local: &Local<E>,
) {
    let mut line = local.log.begin_line();
    emit(format, request, local, &mut line);
    line.push(b'\n');
    match &log.path {
        LogPath::File(path) => {
            let buffer = log.buffer;
            local.log.add_line(PlaceRef::Opened { path, buffer }, &line);
        }
        LogPath::Evaluated(path) => write_evaluated(path, &line, request, local),
        LogPath::Table(table) => local.log.add_line(PlaceRef::Table(table), &line),
    }
    local.log.end_line(line);
}

/// The path is evaluated per request, and the file is created only below an existing `root`: otherwise a client could
/// create files by sending any `Host`.
fn write_evaluated<E: Engine>(
    path: &Template,
    line: &[u8],
    request: &mut Request,
    local: &Local<E>,
) {
    let path = document::absolute_path(path, request, local);
    let root = document::document_root(request, local);
    let cache = request.location.log.open_log_file_cache;
    let place = PlaceRef::Evaluated {
        path: &path,
        root: &root,
        cache,
    };
    local.log.add_line(place, line);
}

/// Appends the line without its end.
fn emit<E: Engine>(
    format: &LogFormat,
    request: &mut Request,
    local: &Local<E>,
    line: &mut Vec<u8>,
) {
    for part in format.template.parts() {
        emit_part(part, format.escape, request, local, line);
    }
}

pub(super) fn emit_part<E: Engine>(
    part: &Part,
    escape: LogEscape,
    request: &mut Request,
    local: &Local<E>,
    line: &mut Vec<u8>,
) {
    match part {
        Part::Literal(text) => line.extend_from_slice(text),
        Part::Capture(number) => {
            let value = request.captures.capture(usize::from(*number));
            emit_value(Some(value), escape, line);
        }
        Part::Variable(variable) if escape == LogEscape::Row => {
            row::emit(variable, request, local, line);
        }
        Part::Variable(variable) => {
            if !emit_own(variable, &Figures::of(request), local, line) {
                let value = variables::value(variable, request, local);
                emit_value(value.as_deref(), escape, line);
            }
        }
    }
}

/// What logs write of a request without evaluating variables.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    pub(super) started: Instant,
    pub(super) status: u16,
    pub(super) bytes: u64,
    pub(super) content_bytes: u64,
}

impl Figures {
    pub(super) fn of(request: &Request) -> Self {
        Self {
            started: request.started,
            status: request.sent.status,
            bytes: request.sent.bytes,
            content_bytes: request.sent.content_bytes,
        }
    }
}

/// Appends one of the variables that logs write without evaluating them; false for all others.
pub(super) fn emit_own<E: Engine>(
    variable: &Variable,
    figures: &Figures,
    local: &Local<E>,
    line: &mut Vec<u8>,
) -> bool {
    if emit_stamp(variable, local, line) {
        return true;
    }
    match variable {
        Variable::RequestTime => {
            emit_seconds(local.scheduler.now().since(figures.started), line);
        }
        Variable::Status => append(line, format_args!("{:03}", figures.status)),
        Variable::BytesSent => append(line, format_args!("{}", figures.bytes)),
        Variable::BodyBytesSent => append(line, format_args!("{}", figures.content_bytes)),
        _ => return false,
    }
    true
}

/// Appends a variable that tells the time; false for all others.
pub(super) fn emit_stamp<E: Engine>(
    variable: &Variable,
    local: &Local<E>,
    line: &mut Vec<u8>,
) -> bool {
    let wall_clock = local.scheduler.wall_clock();
    let utc_offset = local.environment.utc_offset;
    let mut stamps = local.log.stamps.borrow_mut();
    match variable {
        Variable::TimeLocal => {
            line.extend_from_slice(stamps.common(wall_clock.seconds, utc_offset));
        }
        Variable::TimeIso8601 => {
            line.extend_from_slice(stamps.iso8601(wall_clock.seconds, utc_offset));
        }
        Variable::Msec => emit_msec(wall_clock, line),
        _ => return false,
    }
    true
}

fn emit_msec(time: UnixTime, line: &mut Vec<u8>) {
    append(line, format_args!("{}.{:03}", time.seconds, time.millis()));
}

/// Appends seconds with three decimals.
pub(super) fn emit_seconds(duration: Duration, line: &mut Vec<u8>) {
    let millis = duration.as_millis();
    append(line, format_args!("{}.{:03}", millis / 1000, millis % 1000));
}

fn append(line: &mut Vec<u8>, text: fmt::Arguments<'_>) {
    // Writing to memory does not fail.
    let _ = line.write_fmt(text);
}
