//! Entity tags, RFC 9110 8.8.3: nginx's form, and the lists in conditions.

use alloc::vec::Vec;

use crate::decimal::emit_hex;
use crate::field::ListElements;

/// RFC 9110 8.8.3.2: a strong comparison takes `W/"a"` as a tag of its own; a weak one ignores
/// the mark on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Strong,
    Weak,
}

/// Appends nginx's tag of a file: `"<mtime>-<size>"` in hexadecimal. A time before 1970 is
/// written as its 64 bits, as nginx does.
pub fn emit_etag(modified_unix_seconds: i64, size_bytes: u64, out: &mut Vec<u8>) {
    out.push(b'"');
    emit_hex(modified_unix_seconds.cast_unsigned(), out);
    out.push(b'-');
    emit_hex(size_bytes, out);
    out.push(b'"');
}

/// The list of an `If-Match` or `If-None-Match` holds `etag`, or is `*`.
pub fn list_matches(list: &[u8], etag: Option<&[u8]>, comparison: Comparison) -> bool {
    if list == b"*" {
        return true;
    }
    let Some(etag) = etag else { return false };
    let compared = |tag| match comparison {
        Comparison::Strong => tag,
        Comparison::Weak => opaque_tag(tag),
    };
    // nginx compares a weak tag with itself even where the comparison is strong (If-Match).
    ListElements::of(list).any(|element| compared(element) == compared(etag))
}

/// The tag without the weakness mark.
pub fn opaque_tag(etag: &[u8]) -> &[u8] {
    etag.strip_prefix(b"W/").unwrap_or(etag)
}

/// The tag carries the weakness mark.
pub fn is_weak(etag: &[u8]) -> bool {
    etag.starts_with(b"W/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_made_of_time_and_size() {
        let check = |time: i64, size: u64, expected: &str| {
            let mut out = Vec::new();
            emit_etag(time, size, &mut out);
            assert_eq!(core::str::from_utf8(&out), Ok(expected));
        };
        check(0, 0, "\"0-0\"");
        check(1_795_224_600, 1024, "\"6b00f418-400\"");
        check(-1, 1, "\"ffffffffffffffff-1\"");
    }

    #[test]
    fn lists_match_weakly_and_strongly() {
        let check = |list: &str, etag: Option<&str>, strong: bool, weak: bool| {
            let matches = |how| list_matches(list.as_bytes(), etag.map(str::as_bytes), how);
            assert_eq!(matches(Comparison::Strong), strong, "strong {list}");
            assert_eq!(matches(Comparison::Weak), weak, "weak {list}");
        };
        check("*", None, true, true);
        check("\"a\"", None, false, false);
        check("\"a\"", Some("\"a\""), true, true);
        check("\"b\", \"a\"", Some("\"a\""), true, true);
        check("\"b\",\t\"a\" ,", Some("\"a\""), true, true);
        check("W/\"a\"", Some("\"a\""), false, true);
        check("\"a\"", Some("W/\"a\""), false, true);
        check("\"b, \"", Some("\"a\""), false, false);
        check("\"ab\"", Some("\"a\""), false, false);
        check("\"a\"x", Some("\"a\""), false, false);
        check("*, \"b\"", Some("\"a\""), false, false);
        check("", Some("\"a\""), false, false);
        assert!(is_weak(b"W/\"a\"") && !is_weak(b"\"a\""));
    }
}
