//! Conditional requests (RFC 9110 13): 304 without content, or 412.

use crate::content::Content;
use crate::request::Request;
use crate::response::Response;
use mill_config::config::settings::{CacheRules, IfModifiedSince};
use mill_http::conditional::{self, Conditions, Validators, Verdict};
use mill_http::status::Status;

/// Evaluates the conditions of the request on an answer with 200 that is our own.
pub(super) fn apply<File>(
    request: &mut Request,
    response: &mut Response<File>,
) -> Result<(), Status> {
    if response.status != Status::OK || (response.proxied && !response.is_kept) {
        return Ok(());
    }
    let mut conditions = Conditions::of(&request.message.head, &request.message.bytes);
    if conditions == Conditions::default() {
        return Ok(());
    }
    let validators = Validators {
        last_modified: response.last_modified,
        etag: response.etag.as_deref(),
    };
    let is_rfc = response.is_kept && request.location.caching.rules == CacheRules::Rfc9111;
    if is_rfc {
        conditions = conditions.by_precedence(&validators);
    }
    let setting = match request.location.headers.if_modified_since {
        IfModifiedSince::Off => conditional::IfModifiedSince::Off,
        // RFC 9111 4.3.2: what is not newer is not modified.
        IfModifiedSince::Exact if is_rfc => conditional::IfModifiedSince::Before,
        IfModifiedSince::Exact => conditional::IfModifiedSince::Exact,
        IfModifiedSince::Before => conditional::IfModifiedSince::Before,
    };
    let verdict = conditional::evaluate(&validators, &conditions, setting);
    request.pure = false;
    match verdict {
        Verdict::Proceed => Ok(()),
        Verdict::PreconditionFailed => Err(Status::PRECONDITION_FAILED),
        Verdict::NotModified => {
            leave_out_content(response);
            Ok(())
        }
    }
}

/// A 304 has no fields that describe the content or say what may be asked of it, except its validators Last-Modified and
/// ETag, and what `add_header` adds.
fn leave_out_content<File>(response: &mut Response<File>) {
    response.status = Status::NOT_MODIFIED;
    response.content_type = None;
    response.content = Content::absent();
    response.streamed = false;
    response.ranges = false;
    response.fields.retain(|line| {
        let is_named = |name: &[u8]| line.name.eq_ignore_ascii_case(name);
        !(is_named(b"Content-Encoding") || is_named(b"Accept-Ranges"))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_304_keeps_its_validators_and_nothing_of_the_content() {
        let mut response: Response<()> =
            Response::with_bytes(Status::OK, b"text/plain", b"content".to_vec());
        response.etag = Some("\"a\"".into());
        response.last_modified = Some(7);
        response.ranges = true;
        response.push_field("Content-Encoding", *b"gzip");
        response.push_field("Accept-Ranges", *b"none");
        response.push_field("X-Kept", *b"yes");
        leave_out_content(&mut response);
        assert_eq!(response.status, Status::NOT_MODIFIED);
        assert_eq!(response.etag.as_deref(), Some(&b"\"a\""[..]));
        assert_eq!(response.last_modified, Some(7));
        assert_eq!(response.content_type, None);
        assert!(response.content.is_absent());
        assert!(!response.ranges);
        assert_eq!(response.fields.len(), 1);
    }
}
