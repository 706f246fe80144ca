//! The answer's head: its field lines in nginx's order.

use super::{has_no_content, may_chunk};
use crate::local::Local;
use crate::product::signature;
use crate::request::Request;
use crate::response::{FieldLine, FieldText, Response};
use mill_http::date::imf_fixdate;
use mill_http::h1::emit::{
    emit_date, emit_field, emit_head_end, emit_number_field, emit_status_line,
    emit_status_line_with,
};
use mill_http::method::Method;
use mill_http::status::Status;
use mill_runtime::engine::Engine;

/// The field lines of an emitted head, for `$sent_http_…`, except those that nginx's variables do not show.
pub(in crate::exchange) fn fields<File>(head: &[u8], response: &Response<File>) -> Vec<FieldLine> {
    let lines = head.split(|byte| *byte == b'\n');
    let lines = lines.filter_map(|line| {
        let line = line.strip_suffix(b"\r")?;
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = (line.get(..colon)?, line.get(colon + 2..)?);
        let is_own = match name {
            b"Server" => !response.has_server,
            b"Date" => !response.has_date,
            b"Vary" => response.vary && value == b"Accept-Encoding",
            _ => false,
        };
        (!is_own).then(|| FieldLine {
            name: FieldText::copy(name),
            value: FieldText::copy(value),
        })
    });
    lines.collect()
}

/// How the end of the content is indicated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is none: 204, 304.
    None,
    Length(u64),
    Chunked,
    /// By closing the connection.
    Close,
}

/// Decisions made before the head is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadPlan {
    pub framing: Framing,
    pub keep_alive: bool,
}

impl HeadPlan {
    /// RFC 9112 6: a length if it is known, else chunks if the client supports them, else the end of the connection.
    pub fn new<File>(request: &Request, response: &Response<File>, keep_alive: bool) -> Self {
        let length = response.content.len().filter(|_| !response.streamed);
        let framing =
            if has_no_content(response) || (request.method == Method::Head && length.is_none()) {
                Framing::None
            } else {
                match length {
                    Some(length) if response.trailers.is_empty() || !may_chunk(request) => {
                        Framing::Length(length)
                    }
                    _ if may_chunk(request) => Framing::Chunked,
                    Some(length) => Framing::Length(length),
                    None => Framing::Close,
                }
            };
        Self {
            framing,
            keep_alive: keep_alive && !response.close && framing != Framing::Close,
        }
    }

    /// Writes the head; returns the position of the date's 29 bytes in `out`, 0 where the date is not ours.
    pub fn emit<E: Engine>(
        &self,
        request: &Request,
        response: &Response<super::FileOf<E>>,
        local: &Local<E>,
        out: &mut Vec<u8>,
    ) -> usize {
        let location = &request.location;
        match &response.reason {
            Some(reason) => emit_status_line_with(response.status, reason, out),
            None => emit_status_line(response.status, out),
        }
        if !response.has_server {
            let signature = signature(location.headers.server_tokens);
            emit_field(b"Server", signature.as_bytes(), out);
        }
        let date_at = if response.has_date {
            0
        } else {
            local.date_of(|_, date| emit_date(date, out))
        };
        if let Some(content_type) = &response.content_type {
            emit_field(b"Content-Type", content_type, out);
        }
        if let Framing::Length(length) = self.framing {
            emit_number_field(b"Content-Length", length, out);
        }
        if let Some(modified) = response.last_modified {
            emit_field(b"Last-Modified", &imf_fixdate(modified), out);
        }
        if let Some(target) = &response.location {
            emit_field(b"Location", target, out);
        }
        if self.framing == Framing::Chunked {
            emit_field(b"Transfer-Encoding", b"chunked", out);
        }
        out.extend_from_slice(match (response.status, self.keep_alive) {
            (Status::SWITCHING_PROTOCOLS, _) => b"Connection: upgrade\r\n",
            (_, true) => b"Connection: keep-alive\r\n",
            (_, false) => b"Connection: close\r\n",
        });
        if let Some(timeout) = location
            .connection
            .keepalive_header
            .filter(|_| self.keep_alive)
        {
            out.extend_from_slice(b"Keep-Alive: timeout=");
            out.extend_from_slice(timeout.as_secs().to_string().as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        if response.vary {
            emit_field(b"Vary", b"Accept-Encoding", out);
        }
        if let Some(etag) = &response.etag {
            emit_field(b"ETag", etag, out);
        }
        for line in &response.fields {
            line.emit(out);
        }
        emit_head_end(out);
        date_at
    }
}
