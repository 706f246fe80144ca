//! The host of a request: which part of `Host` or of an authority names the server.

/// A valid host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostName {
    /// Bytes of the name at the beginning of the field: without port and without a final dot.
    pub len: usize,
    /// The name has upper-case letters; servers are looked up by the lower-case name.
    pub has_uppercase: bool,
}

/// The host name that `field` begins with, or `None` where nginx answers 400: an empty name, two
/// dots in a row, a slash, a blank or a control byte. Like nginx, the port is not looked at, `_`
/// and bytes above 0x7f are let through, and a bracket left open is part of the name.
pub fn parse_host(field: &[u8]) -> Option<HostName> {
    let mut end = None;
    let mut in_literal = false;
    let mut previous = 0;
    let mut has_uppercase = false;
    for (index, &byte) in field.iter().enumerate() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' => {}
            b'.' if previous == b'.' => return None,
            b':' if !in_literal && end.is_none() => end = Some(index),
            b'[' if index == 0 => in_literal = true,
            b']' if in_literal => {
                in_literal = false;
                end = end.or(Some(index + 1));
            }
            b'/' | 0..=b' ' | 0x7f => return None,
            b'A'..=b'Z' => has_uppercase = true,
            _ => {}
        }
        previous = byte;
    }
    let mut len = end.unwrap_or(field.len());
    if field.get(..len).is_some_and(|name| name.ends_with(b".")) {
        len -= 1;
    }
    (len > 0).then_some(HostName { len, has_uppercase })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_are_cut_as_nginx_cuts_them() {
        let check = |field: &str, expected: Option<&str>| {
            let found = parse_host(field.as_bytes()).map(|host| &field[..host.len]);
            assert_eq!(found, expected, "{field}");
        };
        check("a", Some("a"));
        check("a:80", Some("a"));
        check("a.b.:80", Some("a.b"));
        check("a.b.", Some("a.b"));
        check("a_b", Some("a_b"));
        check("[::1]:80", Some("[::1]"));
        check("[::1]", Some("[::1]"));
        check("[::1", Some("[::1"));
        check("a:b:c", Some("a"));
        check("x[::1]", Some("x["));
        check("", None);
        check(".", None);
        check(":80", None);
        check("a..b", None);
        check("a:80..", None);
        check("a/b", None);
        check("a b", None);
        check("a\u{7f}", None);
        check("a:8\t0", None);
        assert!(parse_host(b"eXample").is_some_and(|host| host.has_uppercase));
        assert!(parse_host(b"example").is_some_and(|host| !host.has_uppercase));
    }
}
