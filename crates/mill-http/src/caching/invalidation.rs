//! What a request that changes something makes of stored responses: RFC 9111 4.4.

use alloc::vec::Vec;

use super::uri_reference::{BaseUri, resolve_in_origin};
use crate::method::Method;
use crate::status::Status;

/// RFC 9110 9.2.1, RFC 4918 9.1: these change nothing. Of a method without a name here that is not known.
pub const fn is_safe(method: Method) -> bool {
    matches!(
        method,
        Method::Get | Method::Head | Method::Options | Method::Trace | Method::PropFind
    )
}

/// The answer to this request makes the stored responses to its target invalid: the method is not safe, and the status
/// is no error (2xx, 3xx).
pub const fn invalidates(method: Method, status: Status) -> bool {
    !is_safe(method) && matches!(status.0, 200..=399)
}

/// The other targets that become invalid with it: those of `Location` and `Content-Location` if they have the origin of
/// the request, as path and query. Those of other origins do not, because any server could say so.
pub fn invalidated_targets(
    base: &BaseUri<'_>,
    location: Option<&[u8]>,
    content_location: Option<&[u8]>,
) -> Vec<Vec<u8>> {
    let references = [location, content_location].into_iter().flatten();
    let mut targets: Vec<Vec<u8>> = references
        .filter_map(|reference| resolve_in_origin(base, reference))
        .collect();
    targets.dedup();
    targets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn successful_unsafe_requests_invalidate() {
        use Method::{
            Copy, Delete, Get, Head, Lock, MkCol, Move, Options, Other, Patch, Post, PropFind,
            PropPatch, Put, Trace,
        };
        for method in [
            Post, Put, Delete, Patch, Copy, Move, MkCol, Lock, PropPatch, Other,
        ] {
            for (status, expected) in [
                (199, false),
                (200, true),
                (204, true),
                (303, true),
                (399, true),
                (400, false),
                (404, false),
                (500, false),
            ] {
                assert_eq!(
                    invalidates(method, Status(status)),
                    expected,
                    "{method:?} {status}"
                );
            }
        }
        for method in [Get, Head, Options, Trace, PropFind] {
            assert!(!invalidates(method, Status::OK), "{method:?}");
        }
    }

    #[test]
    fn targets_of_the_same_origin_become_invalid_too() {
        let base = BaseUri {
            scheme: b"http",
            authority: b"a",
            path: b"/b/c",
            query: None,
        };
        let check = |location: Option<&str>, content: Option<&str>, expected: &[&str]| {
            let found = invalidated_targets(
                &base,
                location.map(str::as_bytes),
                content.map(str::as_bytes),
            );
            let expected: Vec<_> = expected.iter().map(|text| text.as_bytes()).collect();
            assert_eq!(found, expected, "{location:?} {content:?}");
        };
        check(None, None, &[]);
        check(Some("/x"), None, &["/x"]);
        check(Some("x"), Some("../y?z"), &["/b/x", "/y?z"]);
        check(Some("/x"), Some("http://a/x"), &["/x"]);
        check(Some("http://b/x"), Some("//b/y"), &[]);
        check(Some("https://a/x"), Some("/y"), &["/y"]);
    }
}
