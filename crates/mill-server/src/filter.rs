//! The filters that every answer passes before it is sent, in nginx's order.
//!
//! conditional (304, 412) → `Cache-Status` → headers (`expires`, `add_header`) → charset → gzip → range (206, 416) → `add_trailer`.

/// `cache_status`.
mod cache_status;
/// `charset`.
pub(crate) mod charset;
/// Conditions of the request: 304 and 412.
mod conditional;
/// `expires`.
mod expires;
/// Whether the content is compressed.
mod gzip;
/// `add_header`, and its special names.
mod headers;
/// Parts of the content: 206 and 416.
mod range;
/// `add_trailer`.
mod trailers;

use crate::challenge::Challenged;
use crate::local::{FileOf, Local};
use crate::request::Request;
use crate::response::{FieldLine, Response};
use mill_http::status::Status;
use mill_runtime::engine::Engine;

/// Passes an answer through all filters. An error is the status to answer with instead, by an `error_page` or the
/// built-in page; that answer passes through here too.
pub fn apply<E: Engine>(
    request: &mut Request,
    response: &mut Response<FileOf<E>>,
    local: &Local<E>,
) -> Result<(), Status> {
    let is_carried = request.upstream.is_some() || request.challenged == Challenged::Answered;
    if response.status == Status::RANGE_NOT_SATISFIABLE || is_carried {
        carry_over(request, response);
    }
    conditional::apply(request, response)?;
    cache_status::apply(request, response, local);
    headers::apply(request, response, local);
    charset::apply(request, response, local);
    gzip::apply(request, response, local);
    // Until here the type has no character set: `charset_types` and `gzip_types` match it without.
    if response.charset.is_some() {
        response.content_type = response.full_content_type();
        response.charset = None;
    }
    range::apply(request, response, local)?;
    trailers::apply(request, response, local);
    response.vary = request.varies_by_encoding && request.location.gzip.vary;
    // A line of `add_header` replaces the date, which the filters still needed.
    let is_replaced = || response.fields.iter().any(is_last_modified);
    if response.last_modified.is_some() && (!says_last_modified(response.status) || is_replaced()) {
        response.last_modified = None;
    }
    Ok(())
}

/// An answer has the field lines kept of that which it replaces, except `Last-Modified`. A kept `Content-Type` is that of
/// a file too, but not that of an error page or of an upstream server's own.
fn carry_over<File>(request: &mut Request, response: &mut Response<File>) {
    if request.carried_fields.is_empty() {
        return;
    }
    let mut fields = std::mem::take(&mut request.carried_fields);
    // A page of our own has no ranges and is not compressed.
    let is_page = response.status.0 >= 400 && !response.proxied;
    fields.retain(|line| !(is_last_modified(line) || is_page && is_of_other_content(line)));
    // The line of a server behind us stands in the place of ours.
    response.has_server |= fields.iter().any(|line| has_name(line, b"Server"));
    response.has_date |= fields.iter().any(|line| has_name(line, b"Date"));
    if let Some(at) = fields.iter().position(is_content_type) {
        let kept = fields.swap_remove(at);
        let has_own = response.proxied && response.content_type.is_some();
        if response.status.0 < 400 && !has_own {
            response.content_type = Some(kept.value);
        }
    }
    if let Some(at) = fields.iter().position(is_accel_charset) {
        let kept = fields.swap_remove(at);
        response.charset = Some(kept.value.to_vec()).filter(|_| !is_page);
    }
    fields.append(&mut response.fields);
    response.fields = fields;
}

fn is_content_type(line: &FieldLine) -> bool {
    line.name.eq_ignore_ascii_case(b"Content-Type")
}

fn is_of_other_content(line: &FieldLine) -> bool {
    is_accept_ranges(line) || has_name(line, b"Content-Encoding")
}

fn is_accel_charset(line: &FieldLine) -> bool {
    has_name(line, b"X-Accel-Charset")
}

fn is_accept_ranges(line: &FieldLine) -> bool {
    has_name(line, b"Accept-Ranges")
}

fn has_name(line: &FieldLine, name: &[u8]) -> bool {
    line.name.eq_ignore_ascii_case(name)
}

fn is_last_modified(line: &FieldLine) -> bool {
    line.name.eq_ignore_ascii_case(b"Last-Modified")
}

/// `expires` and the ordinary `add_header` are for these statuses only.
const fn is_safe(status: Status) -> bool {
    matches!(
        status.0,
        200 | 201 | 204 | 206 | 301 | 302 | 303 | 304 | 307 | 308
    )
}

/// The date of an error page is not that of the requested file.
const fn says_last_modified(status: Status) -> bool {
    matches!(status.0, 200 | 206 | 304)
}
