//! The content of an answer in the protocol of the location.

use super::fault::{Fault, Step};
use super::scan::HeadScan;
use mill_config::config::LogLevel;
use mill_http::h1::response::{BodyStep, ResponseBody, ResponseHead};
use mill_http::limits::ResponseRules;
use mill_upstream::{fastcgi, memcached};

/// Follows the content to its end.
#[derive(Debug)]
pub(super) enum AnswerBody {
    /// Of HTTP, uwsgi and SCGI.
    Http(ResponseBody),
    Fastcgi(fastcgi::AnswerBody),
    Memcached(memcached::Value),
}

impl AnswerBody {
    /// The content behind a head that `scan` has read.
    pub(super) fn new(scan: &HeadScan, head: &ResponseHead) -> Self {
        match scan {
            HeadScan::Fastcgi { scan, keep_conn } => {
                Self::Fastcgi(scan.into_body(head, *keep_conn))
            }
            HeadScan::Memcached {
                value: Some(value), ..
            } => Self::Memcached(memcached::Value::new(value)),
            _ => Self::Http(ResponseBody::new(head.framing, &ResponseRules::default())),
        }
    }

    /// Takes bytes, each once, and passes on the content, what a FastCGI program writes to standard error, and the bytes
    /// of trailers.
    pub(super) fn on_bytes(
        &mut self,
        bytes: &[u8],
        on_content: impl FnMut(&[u8]),
        on_stderr: impl FnMut(&[u8]),
        on_trailer: impl FnMut(u8),
    ) -> Result<BodyStep, Fault> {
        match self {
            Self::Http(body) => body
                .on_bytes_and_trailers(bytes, on_content, on_trailer)
                .map_err(Fault::InvalidContent),
            Self::Fastcgi(body) => body
                .on_bytes(bytes, on_content, on_stderr)
                .map_err(|fault| Fault::Fastcgi(fault, Step::Reading)),
            Self::Memcached(value) => Ok(value.on_bytes(bytes, on_content)),
        }
    }

    pub(super) const fn is_complete(&self) -> bool {
        match self {
            Self::Http(body) => body.is_complete(),
            Self::Fastcgi(body) => body.is_complete(),
            Self::Memcached(value) => value.is_complete(),
        }
    }

    /// Whether the end of the stream completes the content.
    pub(super) const fn is_completed_by_end(&mut self) -> bool {
        match self {
            Self::Http(body) => body.on_end_of_stream().is_ok(),
            Self::Fastcgi(body) => body.on_end_of_stream().is_ok(),
            Self::Memcached(value) => value.has_content(),
        }
    }

    /// Whether what was read of the content leaves the connection ready for another request.
    pub(super) const fn allows_reuse(&self) -> bool {
        match self {
            Self::Http(_) => true,
            Self::Fastcgi(body) => body.may_be_kept(),
            Self::Memcached(value) => value.has_trailer(),
        }
    }

    /// What `$upstream_response_length` counts of a step: that of HTTP is what came behind the head, the framing of chunks
    /// too.
    pub(super) const fn length_of(&self, step: &BodyStep) -> usize {
        match self {
            Self::Http(_) => step.consumed,
            Self::Fastcgi(_) | Self::Memcached(_) => step.content,
        }
    }

    /// What nginx logs of a complete answer that is followed by what should not be there.
    /// `unread` bytes lie behind it.
    pub(super) const fn surplus(&self, unread: usize) -> Option<(&'static str, LogLevel)> {
        match self {
            Self::Http(body) if unread > 0 && body.is_chunked() => {
                Some(("upstream sent data after final chunk", LogLevel::Warn))
            }
            Self::Http(_) if unread > 0 => Some((LONGER_THAN_SAID, LogLevel::Warn)),
            Self::Fastcgi(body) if body.has_surplus() => Some((LONGER_THAN_SAID, LogLevel::Warn)),
            Self::Memcached(value) if value.is_complete() && !value.has_trailer() => {
                Some(("memcached sent invalid trailer", LogLevel::Error))
            }
            _ => None,
        }
    }
}

const LONGER_THAN_SAID: &str =
    "upstream sent more data than specified in \"Content-Length\" header";
