//! Which fields of a response are stored, and which of them a validation replaces: RFC 9111 3.1 and 3.2.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::response_directives::ResponseDirectives;
use crate::field::ListElements;

/// RFC 9111 3.1, RFC 9110 7.6.1: for this connection, or for the proxy that received them, only. Trailers are not kept.
const NEVER_STORED: [&[u8]; 11] = [
    b"connection",
    b"keep-alive",
    b"proxy-authenticate",
    b"proxy-authentication-info",
    b"proxy-authorization",
    b"proxy-connection",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
    b"http2-settings",
];

/// RFC 9111 3.2: they describe the bytes that are stored, which a validation does not change.
const NEVER_REPLACED: [&[u8]; 3] = [b"content-length", b"content-encoding", b"content-range"];

/// The fields that one response does not let a cache store, beside those that are never stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredFields {
    /// In lower case, sorted: named by `Connection`, `no-cache="…"` and `private="…"`.
    withheld: Vec<Box<[u8]>>,
}

impl StoredFields {
    /// Gathers the names of a response. Fields that `no-cache` names are not stored either: they could be used only
    /// together with a validation, which brings them anew (RFC 9111 5.2.2.4).
    pub fn of_response<'a>(
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        directives: &ResponseDirectives,
    ) -> Self {
        let is_connection = |name: &[u8]| name.eq_ignore_ascii_case(b"connection");
        let lines = fields.into_iter().filter(|(name, _)| is_connection(name));
        let options = lines.flat_map(|(_, value)| ListElements::of(value));
        let mut withheld: Vec<Box<[u8]>> = options
            .map(|option| option.to_ascii_lowercase().into_boxed_slice())
            .collect();
        withheld.extend_from_slice(&directives.no_cache_fields);
        withheld.extend_from_slice(&directives.private_fields);
        withheld.sort_unstable();
        withheld.dedup();
        Self { withheld }
    }

    /// A field of this name is stored.
    pub fn keeps(&self, name: &[u8]) -> bool {
        let folded = || name.iter().map(u8::to_ascii_lowercase);
        let found = self
            .withheld
            .binary_search_by(|known| known.iter().copied().cmp(folded()));
        !is_one_of(&NEVER_STORED, name) && found.is_err()
    }
}

fn is_one_of(names: &[&[u8]], name: &[u8]) -> bool {
    names.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// A field line: name and value.
pub type FieldLine<'a> = (&'a [u8], &'a [u8]);

/// The fields of a stored response after a 304 (RFC 9111 4.3.4) or a HEAD (4.3.5) has validated it: those of `update`,
/// and the stored ones which it does not have. The stored `Age` goes in any case, for age is counted from the update on;
/// so does `Date` if the update has none, with its arrival in its place (`Freshness` of the update).
pub fn updated_fields<'a>(
    stored: &[FieldLine<'a>],
    update: &[FieldLine<'a>],
    update_directives: &ResponseDirectives,
) -> Vec<FieldLine<'a>> {
    let filter = StoredFields::of_response(update.iter().copied(), update_directives);
    let replaces = |name: &[u8]| filter.keeps(name) && !is_one_of(&NEVER_REPLACED, name);
    let mut new: Vec<FieldLine<'a>> = update.to_vec();
    new.retain(|(name, _)| replaces(name));
    let mut names: Vec<Vec<u8>> = new
        .iter()
        .map(|(name, _)| name.to_ascii_lowercase())
        .collect();
    names.extend([b"age".to_vec(), b"date".to_vec()]);
    names.sort_unstable();
    let is_replaced = |name: &[u8]| names.binary_search(&name.to_ascii_lowercase()).is_ok();
    let mut fields: Vec<FieldLine<'a>> = stored.to_vec();
    fields.retain(|(name, _)| !is_replaced(name));
    fields.append(&mut new);
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<'a>(lines: &[(&'a str, &'a str)]) -> Vec<FieldLine<'a>> {
        lines
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes()))
            .collect()
    }

    #[test]
    fn fields_of_the_connection_and_withheld_ones_are_not_stored() {
        let lines = bytes(&[
            ("Connection", "close, X-Hop"),
            ("connection", "X-Other"),
            (
                "Cache-Control",
                "no-cache=\"Set-Cookie\", private=\"X-User\"",
            ),
        ]);
        let directives = ResponseDirectives::of_fields(lines.iter().copied());
        let filter = StoredFields::of_response(lines, &directives);
        for name in [
            "Connection",
            "Keep-Alive",
            "Proxy-Connection",
            "Proxy-Authenticate",
            "Proxy-Authorization",
            "Proxy-Authentication-Info",
            "TE",
            "Trailer",
            "Transfer-Encoding",
            "UPGRADE",
            "close",
            "x-hop",
            "X-OTHER",
            "set-cookie",
            "x-user",
        ] {
            assert!(!filter.keeps(name.as_bytes()), "{name}");
        }
        for name in [
            "Content-Length",
            "Cache-Control",
            "Set-Cookie2",
            "x-ho",
            "x-hopp",
            "",
            "Vary",
            "Age",
        ] {
            assert!(filter.keeps(name.as_bytes()), "{name}");
        }
        assert!(StoredFields::default().keeps(b"Set-Cookie"));
    }

    #[test]
    fn an_update_replaces_fields_but_not_those_of_the_content() {
        let check =
            |stored: &[(&str, &str)], update: &[(&str, &str)], expected: &[(&str, &str)]| {
                let (stored, update) = (bytes(stored), bytes(update));
                let directives = ResponseDirectives::of_fields(update.iter().copied());
                assert_eq!(
                    updated_fields(&stored, &update, &directives),
                    bytes(expected),
                    "{update:?}"
                );
            };
        check(&[("A", "1")], &[], &[("A", "1")]);
        check(
            &[("A", "1"), ("B", "2")],
            &[("a", "3")],
            &[("B", "2"), ("a", "3")],
        );
        check(
            &[("A", "1"), ("A", "2")],
            &[("A", "3"), ("A", "4")],
            &[("A", "3"), ("A", "4")],
        );
        check(&[], &[("New", "1")], &[("New", "1")]);
        for name in ["Content-Length", "content-encoding", "Content-Range"] {
            check(&[(name, "1")], &[(name, "2")], &[(name, "1")]);
            check(&[], &[(name, "2")], &[]);
        }
        for name in [
            "Content-Type",
            "Cache-Control",
            "Expires",
            "ETag",
            "Set-Cookie",
            "Date",
            "Age",
        ] {
            check(&[(name, "1")], &[(name, "2")], &[(name, "2")]);
        }
        check(
            &[("Age", "100"), ("Date", "x")],
            &[("A", "1")],
            &[("A", "1")],
        );
        check(
            &[("X", "1")],
            &[("Connection", "x"), ("X", "2")],
            &[("X", "1")],
        );
        check(
            &[("Upgrade", "1")],
            &[("Upgrade", "2")],
            &[("Upgrade", "1")],
        );
        let private = ("Cache-Control", "private=\"x\"");
        check(
            &[("X", "1")],
            &[private, ("X", "2")],
            &[("X", "1"), private],
        );
    }
}
