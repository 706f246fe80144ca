//! Heads that are refused: counted by what is wrong with them, and logged.

use crate::local::Local;
use crate::log::Text;
use crate::request::Request;
use mill_config::config::LogLevel;
use mill_http::refusal::Refusal;
use mill_metrics::ServerCounters;
use mill_runtime::engine::Engine;

/// Counts the head, and writes to the error log what is wrong with it.
pub(crate) fn note<E: Engine>(request: &Request, refusal: Refusal, local: &Local<E>) {
    *counter(refusal, &mut local.counters.borrow_mut()) += 1;
    if !local.logs_errors_at(Some(request), LogLevel::Info) {
        return;
    }
    let mut text = local.take_buffer();
    refusal.emit_log(&request.message.bytes, &request.message.head, &mut text);
    local.log_error(
        Some(request),
        LogLevel::Info,
        format_args!("{}", Text(&text)),
    );
    local.put_buffer(text);
}

const fn counter(refusal: Refusal, counters: &mut ServerCounters) -> &mut u64 {
    match refusal {
        Refusal::InvalidMethod | Refusal::InvalidRequestLine | Refusal::Http09 => {
            &mut counters.refused_request_line
        }
        Refusal::UnsupportedVersion => &mut counters.refused_version,
        Refusal::TargetTooLong
        | Refusal::FieldTooLarge
        | Refusal::HeadTooLarge
        | Refusal::TooManyFields => &mut counters.limit_header_buffers,
        Refusal::InvalidFieldLine
        | Refusal::MisleadingName
        | Refusal::BareLf
        | Refusal::DuplicateField => &mut counters.refused_field_line,
        Refusal::InvalidAuthority
        | Refusal::DuplicateHost
        | Refusal::InvalidHost
        | Refusal::MissingHost => &mut counters.refused_host,
        Refusal::InvalidContentLength
        | Refusal::TransferEncodingInHttp10
        | Refusal::ContentLengthAndTransferEncoding
        | Refusal::ChunkedIsNotLast => &mut counters.refused_framing,
        Refusal::UnknownTransferEncoding => &mut counters.refused_coding,
    }
}
