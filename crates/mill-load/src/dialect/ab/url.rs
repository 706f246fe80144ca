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
    /// The value of `Host`: the scheme's own port is left out.
    pub(super) host_field: Vec<u8>,
    /// `https://`.
    pub(super) is_secure: bool,
}

impl Url {
    /// Parses `[http[s]://]host[:port]/path`; `None`: there is nothing to connect to. The path is not optional.
    pub(super) fn parse(full: &[u8]) -> Option<Self> {
        // As in ab, a prefix with nothing after it is none.
        let behind = |prefix: &[u8]| full.strip_prefix(prefix).filter(|rest| !rest.is_empty());
        let (rest, is_secure) = match (behind(b"http://"), behind(b"https://")) {
            (Some(rest), _) => (rest, false),
            (None, Some(rest)) => (rest, true),
            (None, None) => (full, false),
        };
        let usual_port = if is_secure { 443 } else { 80 };
        let slash = rest.iter().position(|byte| *byte == b'/');
        let (authority, path) = rest.split_at(slash?);
        let (host, port) = split_authority(authority)?;
        let port = port.unwrap_or(usual_port);
        let mut host_field = if authority.first() == Some(&b'[') {
            [b"[", host, b"]"].concat()
        } else {
            host.to_vec()
        };
        if port != usual_port {
            host_field.extend_from_slice(format!(":{port}").as_bytes());
        }
        Some(Self {
            full: full.to_vec(),
            host: host.to_vec(),
            port,
            path: path.to_vec(),
            host_field,
            is_secure,
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
    fn check(text: &str, (host, port, path, field): (&str, u16, &str, &str)) {
        let url = Url::parse(text.as_bytes()).unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let parsed = (
            text(&url.host),
            url.port,
            text(&url.path),
            text(&url.host_field),
        );
        let expected = (host.to_owned(), port, path.to_owned(), field.to_owned());
        assert_eq!(parsed, expected);
    }

    #[test]
    fn a_url_is_cut_as_ab_cuts_it() {
        check("http://a/", ("a", 80, "/", "a"));
        check("http://a:80/b", ("a", 80, "/b", "a"));
        check("a:81/b?c#d", ("a", 81, "/b?c#d", "a:81"));
        check("http://[::1]:8080/x", ("::1", 8080, "/x", "[::1]:8080"));
        check("[::1]/", ("::1", 80, "/", "[::1]"));
        check("http://u@a/", ("u@a", 80, "/", "u@a"));
        check("http://a:/", ("a:", 80, "/", "a:"));
        check("HTTP://a/", ("HTTP:", 80, "//a/", "HTTP:"));
        check("http://", ("http:", 80, "//", "http:"));
        check("https://a/", ("a", 443, "/", "a"));
        check("https://a:80/", ("a", 80, "/", "a:80"));
        check("http://a:443/", ("a", 443, "/", "a:443"));
        check("https://", ("https:", 80, "//", "https:"));
        check("a1/b c", ("a1", 80, "/b c", "a1"));
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
            assert_eq!(parsed, None, "{text}");
        }
    }
}
