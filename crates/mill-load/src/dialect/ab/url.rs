//! URLs as ab parses them: a subset, sent as it was written.

/// A URL's parts. Nothing is decoded; user information and fragments are not supported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Url {
    /// As given; a proxy gets this.
    pub(super) full: Vec<u8>,
    /// Without the brackets of an IPv6 address.
    pub(super) host: Vec<u8>,
    pub(super) port: u16,
    /// From the first slash on.
    pub(super) path: Vec<u8>,
    /// The value of `Host`: the port is left out if it is 80.
    pub(super) host_field: Vec<u8>,
}

/// Why there is nothing to connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UrlError {
    Invalid,
    /// TLS is not supported yet.
    Https,
}

impl Url {
    /// Parses `[http://]host[:port]/path`. The path is not optional.
    pub(super) fn parse(full: &[u8]) -> Result<Self, UrlError> {
        // As in ab, a prefix with nothing after it is none.
        let rest = match full {
            [b'h', b't', b't', b'p', b's', b':', b'/', b'/', _, ..] => return Err(UrlError::Https),
            [b'h', b't', b't', b'p', b':', b'/', b'/', rest @ ..] if !rest.is_empty() => rest,
            rest => rest,
        };
        let slash = rest.iter().position(|byte| *byte == b'/');
        let (authority, path) = rest.split_at(slash.ok_or(UrlError::Invalid)?);
        let (host, port) = split_authority(authority).ok_or(UrlError::Invalid)?;
        let port = port.unwrap_or(80);
        let mut host_field = if authority.first() == Some(&b'[') {
            [b"[", host, b"]"].concat()
        } else {
            host.to_vec()
        };
        if port != 80 {
            host_field.extend_from_slice(format!(":{port}").as_bytes());
        }
        Ok(Self {
            full: full.to_vec(),
            host: host.to_vec(),
            port,
            path: path.to_vec(),
            host_field,
        })
    }
}

/// apr_parse_addr_port: a port is the digits after the last colon. ab refuses scopes of IPv6 addresses.
fn split_authority(authority: &[u8]) -> Option<(&[u8], Option<u16>)> {
    let digits = authority
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let (before, digits) = authority.split_at(authority.len() - digits);
    let (host, port) = match (before, digits) {
        // A number alone is a port without a host.
        ([], _) | ([b':'], [_, ..]) => return None,
        ([host @ .., b':'], [_, ..]) => (host, Some(parse_port(digits)?)),
        _ => (authority, None),
    };
    match host {
        [b'[', address @ .., b']'] => {
            let text = std::str::from_utf8(address).ok()?;
            text.parse::<core::net::Ipv6Addr>().ok()?;
            Some((address, port))
        }
        [b'[', ..] => None,
        host => Some((host, port)),
    }
}

fn parse_port(digits: &[u8]) -> Option<u16> {
    let text = std::str::from_utf8(digits).ok()?;
    text.parse().ok().filter(|port| *port != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<(&str, u16, &str, &str), UrlError>) {
        let parsed = Url::parse(text.as_bytes());
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let parsed = parsed.map(|url| {
            (
                text(&url.host),
                url.port,
                text(&url.path),
                text(&url.host_field),
            )
        });
        let expected = expected.map(|(host, port, path, field)| {
            (
                String::from(host),
                port,
                String::from(path),
                String::from(field),
            )
        });
        assert_eq!(parsed, expected);
    }

    #[test]
    fn a_url_is_cut_as_ab_cuts_it() {
        check("http://a/", Ok(("a", 80, "/", "a")));
        check("http://a:80/b", Ok(("a", 80, "/b", "a")));
        check("a:81/b?c#d", Ok(("a", 81, "/b?c#d", "a:81")));
        check("http://[::1]:8080/x", Ok(("::1", 8080, "/x", "[::1]:8080")));
        check("[::1]/", Ok(("::1", 80, "/", "[::1]")));
        check("http://u@a/", Ok(("u@a", 80, "/", "u@a")));
        check("http://a:/", Ok(("a:", 80, "/", "a:")));
        check("HTTP://a/", Ok(("HTTP:", 80, "//a/", "HTTP:")));
        check("http://", Ok(("http:", 80, "//", "http:")));
        check("a1/b c", Ok(("a1", 80, "/b c", "a1")));
    }

    #[test]
    fn urls_that_ab_refuses_are_refused() {
        for text in [
            "http://a",
            "a",
            "",
            "/x",
            ":80/",
            "123/",
            "http://a:0/",
            "http://a:65536/",
            "http://[::1/",
            "http://[::1%lo]/",
            "http://[a]/",
        ] {
            let parsed = Url::parse(text.as_bytes());
            assert_eq!(parsed, Err(UrlError::Invalid), "{text}");
        }
        assert_eq!(Url::parse(b"https://a/"), Err(UrlError::Https));
    }
}
