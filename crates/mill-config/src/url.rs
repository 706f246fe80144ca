//! Addresses of upstreams as they are written: `host[:port][/uri]`, `[IPv6]:port`, `unix:path[:uri]`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::Text;
use crate::config::UpstreamAddress;
use crate::value;

/// The parts of such an address; `proxy_pass` evaluates to one at run time if it has variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url<'a> {
    /// Name or address, an IPv6 address in its brackets; the path of a UNIX-domain socket.
    pub host: &'a [u8],
    /// The port, the default one if none is written; 0 if there is no default either.
    pub port: u16,
    /// The port as it is written.
    pub port_text: Option<&'a [u8]>,
    /// What begins with `/` or `?`, or follows the second colon of `unix:`; empty if there is none.
    pub uri: &'a [u8],
    /// The address, unless the host is a name.
    pub address: Option<UpstreamAddress>,
}

/// What is wrong with an address, as nginx words it.
pub type Fault = &'static str;

/// Length of sun_path with its terminating zero (unix(7)).
const UNIX_PATH_LEN_MAX: usize = 107;

impl<'a> Url<'a> {
    /// Parses an address. Only where a URI may follow (`takes_uri`) the first `/` or `?` ends the host.
    pub fn parse(text: &'a [u8], default_port: u16, takes_uri: bool) -> Result<Self, Fault> {
        if let Some((scheme, path)) = text.split_at_checked(5)
            && scheme.eq_ignore_ascii_case(b"unix:")
        {
            return unix(path, takes_uri);
        }
        match text.strip_prefix(b"[") {
            Some(inner) => ipv6(text, inner, default_port, takes_uri),
            None => ipv4_or_name(text, default_port, takes_uri),
        }
    }

    /// Whether it is a UNIX-domain socket.
    pub fn is_unix(&self) -> bool {
        matches!(self.address, Some(UpstreamAddress::Unix(_)))
    }
}

fn unix(path: &[u8], takes_uri: bool) -> Result<Url<'_>, Fault> {
    let (path, uri) = match path.iter().position(|&byte| byte == b':') {
        Some(at) if takes_uri => {
            let (path, uri) = path.split_at(at);
            (path, uri.get(1..).unwrap_or_default())
        }
        _ => (path, &[][..]),
    };
    if path.is_empty() {
        return Err("no path in the unix domain socket");
    }
    if path.len() > UNIX_PATH_LEN_MAX {
        return Err("too long path in the unix domain socket");
    }
    Ok(Url {
        host: path,
        port: 0,
        port_text: None,
        uri,
        address: Some(UpstreamAddress::Unix(Text::from(path))),
    })
}

/// Parses what follows `[` in `text`.
fn ipv6<'a>(
    text: &'a [u8],
    inner: &'a [u8],
    default_port: u16,
    takes_uri: bool,
) -> Result<Url<'a>, Fault> {
    let close = inner.iter().position(|&byte| byte == b']');
    let close = close.ok_or("invalid host")?;
    let (host, rest) = inner.split_at(close);
    let rest = rest.get(1..).unwrap_or_default();
    let (rest, uri) = match rest.iter().position(|&byte| byte == b'/') {
        Some(_) if !takes_uri => return Err("invalid host"),
        Some(at) => rest.split_at(at),
        None => (rest, &[][..]),
    };
    let port_text = match rest {
        [] => None,
        [b':', port @ ..] => Some(port),
        _ => return Err("invalid host"),
    };
    let port = port_text.map_or(Ok(default_port), port_number)?;
    if host.is_empty() {
        return Err("no host");
    }
    let address = std::str::from_utf8(host)
        .ok()
        .and_then(|host| host.parse::<Ipv6Addr>().ok());
    let address = address.ok_or("invalid IPv6 address")?;
    Ok(Url {
        host: text.get(..close + 2).unwrap_or_default(),
        port,
        port_text,
        uri,
        address: Some(inet(address.into(), port)),
    })
}

fn ipv4_or_name(text: &[u8], default_port: u16, takes_uri: bool) -> Result<Url<'_>, Fault> {
    let (authority, uri) = match text.iter().position(|byte| b"/?".contains(byte)) {
        Some(_) if !takes_uri => return Err("invalid host"),
        Some(at) => text.split_at(at),
        None => (text, &[][..]),
    };
    let (host, port_text) = match authority.iter().position(|&byte| byte == b':') {
        Some(at) => {
            let (host, port) = authority.split_at(at);
            (host, port.get(1..))
        }
        None => (authority, None),
    };
    let port = port_text.map_or(Ok(default_port), port_number)?;
    if host.is_empty() {
        return Err("no host");
    }
    let address = std::str::from_utf8(host)
        .ok()
        .and_then(|host| host.parse::<Ipv4Addr>().ok());
    Ok(Url {
        host,
        port,
        port_text,
        uri,
        address: address.map(|address| inet(address.into(), port)),
    })
}

fn inet(address: IpAddr, port: u16) -> UpstreamAddress {
    UpstreamAddress::Ip(SocketAddr::new(address, port))
}

fn port_number(text: &[u8]) -> Result<u16, Fault> {
    let port = value::number(text).and_then(|port| u16::try_from(port).ok());
    port.filter(|&port| port > 0).ok_or("invalid port")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_host_port_and_uri() {
        let check = |text: &'static str, host: &str, port: u16, uri: &str, is_name: bool| {
            let url = Url::parse(text.as_bytes(), 80, true).unwrap();
            assert_eq!(url.host, host.as_bytes(), "{text}");
            assert_eq!((url.port, url.uri), (port, uri.as_bytes()), "{text}");
            assert_eq!(url.address.is_none(), is_name, "{text}");
        };
        check("a", "a", 80, "", true);
        check("a:81", "a", 81, "", true);
        check("a:81/b:c/", "a", 81, "/b:c/", true);
        check("a/b", "a", 80, "/b", true);
        check("a?b", "a", 80, "?b", true);
        check("127.0.0.1:65535/", "127.0.0.1", 65535, "/", false);
        check("[::1]", "[::1]", 80, "", false);
        check("[::1]:82/x", "[::1]", 82, "/x", false);
        check("unix:/run/a.sock", "/run/a.sock", 0, "", false);
        check("UNIX:/run/a.sock:/b/", "/run/a.sock", 0, "/b/", false);
    }

    #[test]
    fn a_fault_is_told_in_the_words_of_nginx() {
        let check = |text: &str, takes_uri: bool, expected: &str| {
            assert_eq!(
                Url::parse(text.as_bytes(), 80, takes_uri),
                Err(expected),
                "{text}"
            );
        };
        check("", true, "no host");
        check(":80", true, "no host");
        check("/a", true, "no host");
        check("a:", true, "invalid port");
        check("a:0", true, "invalid port");
        check("a:65536", true, "invalid port");
        check("a:8x", true, "invalid port");
        check("a/b", false, "invalid host");
        check("[::1", true, "invalid host");
        check("[::1]x", true, "invalid host");
        check("[::1]/x", false, "invalid host");
        check("[]", true, "no host");
        check("[::x]", true, "invalid IPv6 address");
        check("unix:", true, "no path in the unix domain socket");
        check("unix::/a", true, "no path in the unix domain socket");
        let long = format!("unix:/{}", "a".repeat(107));
        check(&long, true, "too long path in the unix domain socket");
        let longest = format!("unix:/{}", "a".repeat(106));
        assert!(Url::parse(longest.as_bytes(), 80, true).is_ok());
    }
}
