//! References to resources of the same origin, resolved: RFC 3986 5.2, RFC 9110 4.3.1.

use alloc::vec::Vec;

use crate::authority::parse_authority;

/// The longest reference, base path or result that is looked at, in bytes.
pub const REFERENCE_BYTES_MAX: usize = 8192;

/// The target of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaseUri<'a> {
    /// `http` or `https`.
    pub scheme: &'a [u8],
    /// Host, and port if it is not the scheme's own.
    pub authority: &'a [u8],
    /// Begins with a slash.
    pub path: &'a [u8],
    /// Without the question mark.
    pub query: Option<&'a [u8]>,
}

/// Path and query of what `reference` names, if it has the origin of `base`: the same scheme, host and port. `None` for
/// another origin, and for what is no reference: then nothing of this origin is named. Dot segments are removed,
/// escapes are left as they are, the fragment is dropped.
pub fn resolve_in_origin(base: &BaseUri<'_>, reference: &[u8]) -> Option<Vec<u8>> {
    let is_uri_byte =
        |byte: &u8| (0x21..0x7f).contains(byte) && !matches!(byte, b'"' | b'<' | b'>' | b'\\');
    let is_short = reference.len() + base.path.len() <= REFERENCE_BYTES_MAX;
    if !is_short || !reference.iter().all(is_uri_byte) {
        return None;
    }
    let reference = reference.split(|byte| *byte == b'#').next()?;
    let (hierarchy, query) = split_at_byte(reference, b'?');
    let relative = match scheme_len(hierarchy) {
        Some(len) => {
            let (scheme, rest) = hierarchy.split_at_checked(len)?;
            let rest = rest.get(1..)?;
            // RFC 9110 4.2.1: a URI of these schemes has an authority.
            (scheme.eq_ignore_ascii_case(base.scheme) && rest.starts_with(b"//")).then_some(rest)?
        }
        None => hierarchy,
    };
    let (path, query) = match relative.strip_prefix(b"//") {
        Some(rest) => {
            let end = rest
                .iter()
                .position(|byte| *byte == b'/')
                .unwrap_or(rest.len());
            let (authority, path) = rest.split_at_checked(end)?;
            is_same_authority(base, authority).then_some(())?;
            (without_dot_segments(path), query)
        }
        None if relative.is_empty() => (without_dot_segments(base.path), query.or(base.query)),
        None if relative.starts_with(b"/") => (without_dot_segments(relative), query),
        None => (without_dot_segments(&merged(base.path, relative)), query),
    };
    Some(joined(path, query))
}

fn split_at_byte(text: &[u8], byte: u8) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|one| *one == byte) {
        Some(at) => (text.get(..at).unwrap_or_default(), text.get(at + 1..)),
        None => (text, None),
    }
}

/// RFC 3986 3.1: letters, digits, `+`, `-`, `.` before a colon, a letter first.
fn scheme_len(text: &[u8]) -> Option<usize> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let end = text.iter().position(|byte| !is_part(byte))?;
    let begins = text.first().is_some_and(u8::is_ascii_alphabetic);
    (begins && text.get(end) == Some(&b':')).then_some(end)
}

/// Host without case, and port, where none is the scheme's own. User information is no part of an origin and is
/// refused.
fn is_same_authority(base: &BaseUri<'_>, other: &[u8]) -> bool {
    let default = if base.scheme.eq_ignore_ascii_case(b"https") {
        443
    } else {
        80
    };
    let origin = |text: &[u8]| {
        let authority = parse_authority(text)?;
        let host = text.get(..authority.host_len)?.to_ascii_lowercase();
        Some((host, authority.port.unwrap_or(default)))
    };
    let (one, another) = (origin(base.authority), origin(other));
    one.is_some() && one == another
}

/// RFC 3986 5.2.3.
fn merged(base: &[u8], relative: &[u8]) -> Vec<u8> {
    let folder_len = base
        .iter()
        .rposition(|byte| *byte == b'/')
        .map_or(0, |at| at + 1);
    let mut path = base.get(..folder_len).unwrap_or_default().to_vec();
    if path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(relative);
    path
}

/// RFC 3986 5.2.4, for a path that begins with a slash or is empty. Linear.
fn without_dot_segments(path: &[u8]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    let mut ends_in_folder = false;
    for segment in path
        .strip_prefix(b"/")
        .unwrap_or(path)
        .split(|byte| *byte == b'/')
    {
        ends_in_folder = matches!(segment, b"." | b"..");
        match segment {
            b"." => {}
            b".." => {
                kept.pop();
            }
            segment => kept.push(segment),
        }
    }
    if ends_in_folder {
        kept.push(b"");
    }
    let mut out = Vec::with_capacity(path.len() + 1);
    for segment in kept {
        out.push(b'/');
        out.extend_from_slice(segment);
    }
    out
}

fn joined(mut path: Vec<u8>, query: Option<&[u8]>) -> Vec<u8> {
    if path.is_empty() {
        path.push(b'/');
    }
    if let Some(query) = query {
        path.push(b'?');
        path.extend_from_slice(query);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(base: &BaseUri<'_>, reference: &str, expected: Option<&str>) {
        let found = resolve_in_origin(base, reference.as_bytes());
        assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{reference}");
    }

    const BASE: BaseUri<'_> = BaseUri {
        scheme: b"http",
        authority: b"a",
        path: b"/b/c/d;p",
        query: Some(b"q"),
    };

    #[test]
    fn references_resolve_as_in_the_examples_of_the_rfc() {
        // RFC 3986 5.4.1 and 5.4.2.
        for (reference, expected) in [
            ("g", "/b/c/g"),
            ("./g", "/b/c/g"),
            ("g/", "/b/c/g/"),
            ("/g", "/g"),
            ("?y", "/b/c/d;p?y"),
            ("g?y", "/b/c/g?y"),
            ("#s", "/b/c/d;p?q"),
            ("g#s", "/b/c/g"),
            ("g?y#s", "/b/c/g?y"),
            (";x", "/b/c/;x"),
            ("g;x", "/b/c/g;x"),
            ("", "/b/c/d;p?q"),
            (".", "/b/c/"),
            ("./", "/b/c/"),
            ("..", "/b/"),
            ("../", "/b/"),
            ("../g", "/b/g"),
            ("../..", "/"),
            ("../../", "/"),
            ("../../g", "/g"),
            ("../../../g", "/g"),
            ("../../../../g", "/g"),
            ("/./g", "/g"),
            ("/../g", "/g"),
            ("g.", "/b/c/g."),
            (".g", "/b/c/.g"),
            ("g..", "/b/c/g.."),
            ("..g", "/b/c/..g"),
            ("./../g", "/b/g"),
            ("./g/.", "/b/c/g/"),
            ("g/./h", "/b/c/g/h"),
            ("g/../h", "/b/c/h"),
            ("g;x=1/./y", "/b/c/g;x=1/y"),
            ("g;x=1/../y", "/b/c/y"),
            ("g?y/./x", "/b/c/g?y/./x"),
            ("g?y/../x", "/b/c/g?y/../x"),
            ("g#s/../x", "/b/c/g"),
        ] {
            check(&BASE, reference, Some(expected));
        }
        check(&BASE, "//g", None);
        check(&BASE, "g:h", None);
        check(&BASE, "http:g", None);
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        for reference in [
            "http://a/x",
            "HTTP://A/x",
            "//a/x",
            "http://a:80/x",
            "//a:/x",
            "http://a/y/../x",
            "//a./x",
        ] {
            check(&BASE, reference, Some("/x"));
        }
        for reference in [
            "https://a/x",
            "http://b/x",
            "http://a:81/x",
            "http://a.b/x",
            "//b/x",
            "http://u@a/x",
            "http://a@b/x",
            "http:///x",
            "http:/x",
            "//",
            "http://a:x/x",
            "http://a\\@b/x",
            "javascript:x",
            "http://a b/x",
            "http://a/\u{e9}",
            "/x y",
            "/x\r\nb",
            "/\"",
            "http://%61/x",
        ] {
            check(&BASE, reference, None);
        }
        check(&BASE, "http://a", Some("/"));
        check(&BASE, "http://a?x", Some("/?x"));
        check(&BASE, "http://a/?x", Some("/?x"));
        let other = BaseUri {
            scheme: b"https",
            authority: b"a:8443",
            path: b"/",
            query: None,
        };
        check(&other, "https://a:8443/x", Some("/x"));
        check(&other, "https://a/x", None);
        check(&other, "x", Some("/x"));
        check(
            &BaseUri {
                authority: b"",
                ..BASE
            },
            "http:///x",
            None,
        );
        check(
            &BaseUri {
                authority: b"[::1]",
                ..BASE
            },
            "http://[::1]:80/x",
            Some("/x"),
        );
    }

    #[test]
    fn a_long_reference_names_nothing() {
        let fits = alloc::format!("/{}", "x".repeat(REFERENCE_BYTES_MAX - 1 - BASE.path.len()));
        check(&BASE, &fits, Some(&fits));
        check(&BASE, &alloc::format!("{fits}x"), None);
    }
}
