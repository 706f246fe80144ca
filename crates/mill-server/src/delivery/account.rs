//! Counters and log lines of answers, and of unread request content.

use crate::exchange::{ContentError, Excess, SendError};
use crate::frang::limit::Exceeded;
use crate::frang::refusal;
use crate::local::Local;
use crate::log::Errno;
use crate::proxy;
use crate::proxy::fault::{Fault, Step};
use crate::request::Request;
use mill_config::config::LogLevel;
use mill_metrics::ServerCounters;
use mill_runtime::engine::Engine;
use mill_runtime::files::FileErrorKind;
use mill_runtime::stream::StreamError;

/// Counts an answer that was sent or queued, with the bytes of its head and content.
#[inline]
pub(crate) fn count_answer(counters: &mut ServerCounters, status: u16, sent_bytes: u64) {
    counters.bytes_sent += sent_bytes;
    counters.count_response(status);
}

/// Logs why an answer was not sent whole.
pub(super) fn not_sent_whole<E: Engine>(error: SendError, request: &Request, local: &Local<E>) {
    let mut counters = local.counters.borrow_mut();
    let counter = match error {
        SendError::TimedOut => &mut counters.timeout_send,
        SendError::Lost(StreamError::Truncated) => &mut counters.files_truncated,
        SendError::Lost(_) | SendError::Abandoned => &mut counters.connections_reset,
        SendError::Unreadable(error) if error.kind == FileErrorKind::Overloaded => {
            &mut counters.files_refused
        }
        SendError::Unreadable(_) => &mut counters.files_unreadable,
        SendError::Incomplete => &mut counters.upstream_answers_cut,
    };
    *counter += 1;
    drop(counters);
    match error {
        SendError::Incomplete => proxy::trace::log_cut(request, local),
        SendError::Abandoned => {
            let fault = Fault::ClientGone(Step::Reading);
            local.log_error(Some(request), fault.level(), format_args!("{fault}"));
        }
        SendError::TimedOut => local.log_error(
            Some(request),
            LogLevel::Info,
            format_args!(
                "client timed out (110: Connection timed out) while sending response to client"
            ),
        ),
        SendError::Lost(StreamError::Truncated) => local.log_error(
            Some(request),
            LogLevel::Alert,
            format_args!("a file got shorter while it was sent; the connection is reset"),
        ),
        SendError::Lost(error) => local.log_error(
            Some(request),
            LogLevel::Info,
            format_args!(
                "client closed the connection ({error:?}) while sending response to client"
            ),
        ),
        SendError::Unreadable(error) => local.log_error(
            Some(request),
            LogLevel::Crit,
            format_args!(
                "{} failed ({}) while sending response to client",
                error.call,
                Errno(error.code)
            ),
        ),
    }
}

/// The framing of the content was found to be malformed before the answer.
pub(crate) fn malformed_content<E: Engine>(request: &Request, local: &Local<E>) {
    content_not_read(ContentError::Malformed, "", request, local);
}

/// Logs why a handler did not get request content, in a line that ends in `words`.
pub(crate) fn content_not_read<E: Engine>(
    error: ContentError,
    words: &str,
    request: &Request,
    local: &Local<E>,
) {
    let (level, text) = match error {
        ContentError::Malformed => {
            local.counters.borrow_mut().refused_chunk += 1;
            (LogLevel::Error, "client sent invalid chunked body")
        }
        ContentError::TooLarge => {
            local.counters.borrow_mut().limit_body_size += 1;
            (
                LogLevel::Error,
                "client intended to send too large chunked body",
            )
        }
        ContentError::Limited(Excess { limit, value, most }) => {
            let exceeded = Exceeded {
                limit,
                value,
                most,
                is_told: true,
            };
            refusal::tell(limit, format_args!("{exceeded}"), request, local);
            return;
        }
        ContentError::TimedOut => {
            local.counters.borrow_mut().timeout_body += 1;
            let text =
                "client timed out (110: Connection timed out) while reading client request body";
            return local.log_error(Some(request), LogLevel::Info, format_args!("{text}"));
        }
        ContentError::Lost(_) => {
            local.counters.borrow_mut().connections_reset += 1;
            (LogLevel::Info, "client prematurely closed connection")
        }
    };
    local.log_error(Some(request), level, format_args!("{text}{words}"));
}

/// Logs why the rest of the content was not read after the answer.
pub(super) fn rest_not_taken<E: Engine>(error: ContentError, request: &Request, local: &Local<E>) {
    match error {
        ContentError::TimedOut => local.counters.borrow_mut().timeout_body += 1,
        ContentError::Malformed => {
            local.counters.borrow_mut().refused_chunk += 1;
            local.log_error(
                Some(request),
                LogLevel::Error,
                format_args!("client sent invalid chunked body while sending response to client"),
            );
        }
        ContentError::TooLarge | ContentError::Limited(_) | ContentError::Lost(_) => {}
    }
}
