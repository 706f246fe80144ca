//! The authority of a request: the value of `Host`, of an absolute-form target, and of CONNECT.
//!
//! RFC 3986 3.2.2 and 3.2.3 without userinfo (RFC 9110 4.2.4), and narrower where nginx is: a host is not empty and has
//! no two dots in a row. Programs disagree on everything else (RFC 9112 3.2: 400).

use core::net::Ipv6Addr;

/// A valid authority, `host` or `host:port`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authority {
    /// Bytes of the host at the beginning: without port and without a final dot.
    pub host_len: usize,
    /// The host has upper-case letters; servers are looked up by the lower-case name.
    pub has_uppercase: bool,
    /// `None` without a port, or with a colon and no digits after it.
    pub port: Option<u16>,
}

/// Parses a whole authority; `None` is an invalid one. A registered name has RFC 3986's unreserved bytes (`_` among
/// them), sub-delims and escapes; a literal in brackets is an IPv6 address or an IPvFuture.
pub fn parse_authority(text: &[u8]) -> Option<Authority> {
    let (host_len, has_uppercase) = match text {
        [b'[', ..] => literal(text)?,
        _ => registered_name(text)?,
    };
    let port = match text.get(host_len..)? {
        [] => None,
        [b':', digits @ ..] => port(digits)?,
        _ => return None,
    };
    let name = text.get(..host_len)?;
    let host_len = name.strip_suffix(b".").unwrap_or(name).len();
    (host_len > 0).then_some(Authority {
        host_len,
        has_uppercase,
        port,
    })
}

/// The bytes of the name up to a colon or the end, and whether letters among them are upper-case.
fn registered_name(text: &[u8]) -> Option<(usize, bool)> {
    let mut has_uppercase = false;
    let mut previous = 0;
    for (at, &byte) in text.iter().enumerate() {
        match HOST_CLASS.get(usize::from(byte))? {
            Class::Plain => {}
            Class::Upper => has_uppercase = true,
            Class::Dot if previous != b'.' => {}
            Class::Percent if is_escape(text, at) => {}
            Class::Colon => return Some((at, has_uppercase)),
            _ => return None,
        }
        previous = byte;
    }
    Some((text.len(), has_uppercase))
}

fn is_escape(text: &[u8], percent: usize) -> bool {
    let digits = text.get(percent + 1..percent + 3);
    digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}

/// The bytes of `[…]`. A final dot after it is invalid: an address is no name.
fn literal(text: &[u8]) -> Option<(usize, bool)> {
    let end = text.iter().position(|byte| *byte == b']')?;
    let inner = text.get(1..end)?;
    let is_valid = match inner {
        [b'v' | b'V', rest @ ..] => is_future(rest),
        _ => core::str::from_utf8(inner).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok()),
    };
    let has_uppercase = inner.iter().any(u8::is_ascii_uppercase);
    is_valid.then_some((end + 1, has_uppercase))
}

/// RFC 3986: `1*HEXDIG "." 1*( unreserved / sub-delims / ":" )`.
fn is_future(text: &[u8]) -> bool {
    let Some(dot) = text.iter().position(|byte| *byte == b'.') else {
        return false;
    };
    let (version, rest) = text.split_at(dot);
    let address = rest.get(1..).unwrap_or_default();
    let is_part = |byte: &u8| {
        let class = HOST_CLASS.get(usize::from(*byte));
        matches!(
            class,
            Some(Class::Plain | Class::Upper | Class::Dot | Class::Colon)
        )
    };
    !version.is_empty()
        && version.iter().all(u8::is_ascii_hexdigit)
        && !address.is_empty()
        && address.iter().all(is_part)
}

/// RFC 3986 3.2.3: digits or nothing, at most 65535.
fn port(digits: &[u8]) -> Option<Option<u16>> {
    let mut port = None;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        let shifted = port.unwrap_or(0_u16).checked_mul(10)?;
        port = Some(shifted.checked_add(u16::from(digit - b'0'))?);
    }
    Some(port)
}

/// The class of a byte in a registered name.
#[derive(Clone, Copy)]
enum Class {
    Invalid,
    Plain,
    Upper,
    Dot,
    Percent,
    Colon,
}

const HOST_CLASS: [Class; 256] = {
    let mut class = [Class::Invalid; 256];
    let mut byte = 0_u8;
    while byte < 0x80 {
        class[byte as usize] = match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'~' => Class::Plain,
            b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' => {
                Class::Plain
            }
            b'A'..=b'Z' => Class::Upper,
            b'.' => Class::Dot,
            b'%' => Class::Percent,
            b':' => Class::Colon,
            _ => Class::Invalid,
        };
        byte += 1;
    }
    class
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_is_a_host_and_a_port() {
        let check = |text: &str, host: &str, port: Option<u16>| {
            let found = parse_authority(text.as_bytes());
            let found = found.map(|authority| (&text[..authority.host_len], authority.port));
            assert_eq!(found, Some((host, port)), "{text}");
        };
        check("a", "a", None);
        check("a:80", "a", Some(80));
        check("a:", "a", None);
        check("a:0", "a", Some(0));
        check("a:00080", "a", Some(80));
        check("a:65535", "a", Some(65535));
        check("a.b.:80", "a.b", Some(80));
        check("a.b.", "a.b", None);
        check(".a", ".a", None);
        check("a_b", "a_b", None);
        check("_a-.b~", "_a-.b~", None);
        check("127.0.0.1:8080", "127.0.0.1", Some(8080));
        check("a!$&'()*+,;=b", "a!$&'()*+,;=b", None);
        check("a%20b:1", "a%20b", Some(1));
        check("[::1]:80", "[::1]", Some(80));
        check("[::1]", "[::1]", None);
        check("[::1]:", "[::1]", None);
        check("[2001:DB8::192.0.2.1]", "[2001:DB8::192.0.2.1]", None);
        check("[v1F.a:b]", "[v1F.a:b]", None);
        let uppercase = |text: &[u8]| parse_authority(text).map(|name| name.has_uppercase);
        assert_eq!(uppercase(b"eXample"), Some(true));
        assert_eq!(uppercase(b"example"), Some(false));
        assert_eq!(uppercase(b"[::A]"), Some(true));
    }

    #[test]
    fn malformed_authorities_are_refused() {
        for text in [
            "",
            ".",
            "..",
            ":80",
            ".:80",
            "a..b",
            "a..",
            "a/b",
            "a b",
            "a\t",
            "a\u{7f}",
            "a\0",
            "a?b",
            "a#b",
            "u@a",
            "u:p@a",
            "a@",
            "<a>",
            "\"a\"",
            "a\\b",
            "a^b",
            "a`b",
            "a{b}",
            "a|b",
            "h\u{fc}st",
            "a%",
            "a%4",
            "a%4g",
            "[",
            "[]",
            "[::1",
            "::1",
            "::1]",
            "[::1]a",
            "[::1].",
            "[::1].:80",
            "[::1]]",
            "[[::1]]",
            "x[::1]",
            "[a]",
            "[1.2.3.4]",
            "[::g]",
            "[::1%25eth0]",
            "[v]",
            "[v.a]",
            "[v1.]",
            "[vg.a]",
            "a:b",
            "a:80@b",
            "a:80:80",
            "a:b:c",
            "a:8 0",
            "a:80.",
            "a:-1",
            "a:+1",
            "a:65536",
            "a:99999999999",
            "[::1]:x",
        ] {
            assert_eq!(parse_authority(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn each_byte_of_a_name_is_what_rfc_3986_says() {
        let sub_delims = b"!$&'()*+,;=";
        for byte in 0..=255_u8 {
            let text = [b'a', byte, b'b'];
            let is_unreserved = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
            let expected = is_unreserved || sub_delims.contains(&byte);
            let found = parse_authority(&text).is_some();
            assert_eq!(found, expected, "{:?}", byte as char);
        }
    }
}
