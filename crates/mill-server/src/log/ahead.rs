//! Lines of access logs whose request is let go long before they are written: a tunnel's.
//!
//! What does not change any more is evaluated when the tunnel begins; the late variables are added at its end.

use super::access::{self, Figures};
use super::escape::emit_value;
use super::queue::PlaceRef;
use crate::local::Local;
use crate::request::Request;
use crate::site::Site;
use crate::variables;
use crate::variables::late::is_late;
use mill_config::config::settings::LogSettings;
use mill_config::config::template::Part;
use mill_config::config::{LogEscape, LogPath, Variable};
use mill_http::decimal::emit_decimal;
use mill_runtime::engine::Engine;
use mill_runtime::time::{Duration, Instant};
use std::sync::Arc;

/// What is kept of a request to write its lines.
#[derive(Debug)]
pub(crate) struct LinesAhead {
    /// The configuration of the request: formats, and those logs.
    site: Arc<Site>,
    settings: Arc<LogSettings>,
    /// For each log a byte that says whether it gets a line; if it does, the escaped values of those parts of its format
    /// that are neither text nor late, each behind its length.
    values: Box<[u8]>,
    figures: Figures,
    connection_started: Instant,
}

/// What the end of a request adds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddedAtEnd {
    /// Content that was sent to the client.
    pub(crate) content_bytes: u64,
    pub(crate) is_complete: bool,
    /// Of the only try at an upstream server.
    pub(crate) response_time: Duration,
    pub(crate) response_length: u64,
    pub(crate) received: u64,
    pub(crate) sent: u64,
}

impl LinesAhead {
    /// `None` if a line depends on more than what is kept: on a `map` from a late variable, on a path with variables.
    pub(crate) fn begin<E: Engine>(request: &mut Request, local: &Local<E>) -> Option<Self> {
        let settings = Arc::clone(&request.location.log);
        let site = Arc::clone(&request.site);
        let late = &site.mentions.late;
        let can_begin = access::logs(&settings, &site).all(|(log, format)| {
            let is_settled = |part: &Part| match part {
                Part::Variable(variable @ Variable::User(_)) => !late.has(variable),
                _ => true,
            };
            matches!(log.path, LogPath::File(_))
                && !log.condition.iter().any(|condition| late.is_in(condition))
                && format.template.parts().iter().all(is_settled)
        });
        if !can_begin {
            return None;
        }
        let mut values = local.take_buffer();
        for (log, format) in access::logs(&settings, &site) {
            let applies = access::applies(log, request, local);
            values.push(u8::from(applies));
            let parts = format.template.parts().iter();
            for part in parts.filter(|part| applies && is_kept(part)) {
                let start = values.len();
                values.extend_from_slice(&[0; LENGTH_BYTES]);
                access::emit_part(part, format.escape, request, local, &mut values);
                fill_length(&mut values, start);
            }
        }
        let kept = Box::from(values.as_slice());
        local.put_buffer(values);
        Some(Self {
            figures: Figures::of(request),
            connection_started: request.connection.started,
            values: kept,
            settings,
            site,
        })
    }

    /// The logs of the request's location.
    pub(crate) fn settings(&self) -> &LogSettings {
        &self.settings
    }

    /// Writes the lines.
    pub(crate) fn write<E: Engine>(&mut self, added: &AddedAtEnd, local: &Local<E>) {
        self.figures.bytes += added.content_bytes;
        self.figures.content_bytes += added.content_bytes;
        let mut values = &*self.values;
        for (log, format) in access::logs(&self.settings, &self.site) {
            let applies = values.split_off_first() == Some(&1);
            let LogPath::File(path) = &log.path else {
                continue;
            };
            if !applies {
                continue;
            }
            let mut line = local.log.begin_line();
            for part in format.template.parts() {
                match part {
                    Part::Literal(text) => line.extend_from_slice(text),
                    Part::Variable(variable) if is_late(variable) => {
                        self.emit_late(variable, format.escape, added, local, &mut line);
                    }
                    _ => line.extend_from_slice(take_value(&mut values)),
                }
            }
            line.push(b'\n');
            let buffer = log.buffer;
            local.log.add_line(PlaceRef::Opened { path, buffer }, &line);
            local.log.end_line(line);
        }
    }

    fn emit_late<E: Engine>(
        &self,
        variable: &Variable,
        escape: LogEscape,
        added: &AddedAtEnd,
        local: &Local<E>,
        line: &mut Vec<u8>,
    ) {
        match variable {
            Variable::ConnectionTime => {
                let time = local.scheduler.now().since(self.connection_started);
                access::emit_seconds(time, line);
            }
            Variable::RequestCompletion => {
                let value: &[u8] = if added.is_complete { b"OK" } else { b"" };
                emit_value(Some(value), escape, line);
            }
            Variable::UpstreamResponseTime => access::emit_seconds(added.response_time, line),
            Variable::UpstreamResponseLength => emit_decimal(added.response_length, line),
            Variable::UpstreamBytesReceived => emit_decimal(added.received, line),
            Variable::UpstreamBytesSent => emit_decimal(added.sent, line),
            _ if access::emit_own(variable, &self.figures, local, line) => {}
            _ => {
                let value = variables::of_worker(variable, local);
                emit_value(value.as_deref(), escape, line);
            }
        }
    }
}

/// Whether the value of a part is kept from the beginning.
const fn is_kept(part: &Part) -> bool {
    match part {
        Part::Literal(_) => false,
        Part::Capture(_) => true,
        Part::Variable(variable) => !is_late(variable),
    }
}

/// Notes how long the value is whose length is at `start`.
fn fill_length(values: &mut [u8], start: usize) {
    let len = values.len() - start - LENGTH_BYTES;
    let len = u32::try_from(len).expect("a head, and so a value, is shorter than 4 GiB");
    if let Some(place) = values.get_mut(start..start + LENGTH_BYTES) {
        place.copy_from_slice(&len.to_le_bytes());
    }
}

fn take_value<'a>(values: &mut &'a [u8]) -> &'a [u8] {
    let Some((len, rest)) = values.split_first_chunk::<LENGTH_BYTES>() else {
        return &[];
    };
    let len = usize::try_from(u32::from_le_bytes(*len)).unwrap_or(usize::MAX);
    let (value, rest) = rest.split_at_checked(len).unwrap_or((rest, &[]));
    *values = rest;
    value
}

/// Bytes of a value's length.
const LENGTH_BYTES: usize = size_of::<u32>();
