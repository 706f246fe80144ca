//! URLs on the command line: where to connect, what to request.

use core::fmt;
use core::net::SocketAddr;
use thiserror::Error;

/// A URL as a load generator reads it: scheme, authority and the target of the request, nothing decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    pub scheme: Scheme,
    /// Without the brackets of an IPv6 address.
    pub host: String,
    /// As written, if any.
    pub port: Option<u16>,
    /// Path and query; `/` if there is none. A fragment is not sent and is cut off.
    pub target: String,
}

/// The scheme of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Http,
    Https,
}

/// Where connections go.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    Ip(SocketAddr),
    /// The path of a Unix socket.
    Unix(Box<[u8]>),
}

/// Why a text is no usable URL.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UrlError {
    #[error("a URL begins with \"http://\" or \"https://\"")]
    NoScheme,
    #[error("the scheme \"{0}\" is not known, use http or https")]
    UnknownScheme(String),
    #[error("the URL names no host")]
    NoHost,
    #[error("the port \"{0}\" is not one of 1 to 65535")]
    BadPort(String),
    /// A character that can't be sent in a request line.
    #[error("the URL contains {0:?}; write it percent-encoded")]
    BadCharacter(char),
}

impl Url {
    /// Parses `http://host[:port][/path][?query][#fragment]`.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let (scheme, rest) = text.split_once("://").ok_or(UrlError::NoScheme)?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return Err(UrlError::UnknownScheme(String::from(scheme))),
        };
        if let Some(bad) = rest.chars().find(|c| c.is_ascii_control() || *c == ' ') {
            return Err(UrlError::BadCharacter(bad));
        }
        let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        let authority = authority
            .rsplit_once('@')
            .map_or(authority, |(_, host)| host);
        let (host, port) = split_authority(authority)?;
        let target = match target.chars().next() {
            None => String::from("/"),
            Some('?') => format!("/{target}"),
            Some(_) => String::from(target),
        };
        Ok(Self {
            scheme,
            host,
            port,
            target,
        })
    }

    /// The same, and `host[:port][/path]` means http, as in ab, hey and curl.
    pub fn parse_lenient(text: &str) -> Result<Self, UrlError> {
        let is_scheme = |scheme: &str| {
            scheme
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.'))
        };
        if text
            .split_once("://")
            .is_some_and(|(scheme, _)| is_scheme(scheme))
        {
            Self::parse(text)
        } else {
            Self::parse(&format!("http://{text}"))
        }
    }

    /// The port to connect to.
    pub fn port_or_default(&self) -> u16 {
        self.port.unwrap_or(match self.scheme {
            Scheme::Http => 80,
            Scheme::Https => 443,
        })
    }

    /// `http://` or `https://`, and the authority.
    pub fn origin(&self) -> String {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        format!("{scheme}://{}", self.authority())
    }

    /// The value of `Host`: as written, an IPv6 address in brackets.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        match self.port {
            Some(port) => format!("{host}:{port}"),
            None => host,
        }
    }
}

fn split_authority(authority: &str) -> Result<(String, Option<u16>), UrlError> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or(UrlError::NoHost)?;
            (host, after.strip_prefix(':'))
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    if host.is_empty() {
        return Err(UrlError::NoHost);
    }
    let port = match port {
        None | Some("") => None,
        Some(text) => {
            let port = text.parse().ok().filter(|port| *port != 0);
            Some(port.ok_or_else(|| UrlError::BadPort(String::from(text)))?)
        }
    };
    Ok((String::from(host), port))
}

impl Endpoint {
    /// An address for tests that never connect.
    #[cfg(test)]
    pub(crate) fn example() -> Self {
        Self::Ip(SocketAddr::from(([192, 0, 2, 1], 80)))
    }
}

impl From<SocketAddr> for Endpoint {
    fn from(address: SocketAddr) -> Self {
        Self::Ip(address)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(formatter),
            Self::Unix(path) => write!(formatter, "unix:{}", path.escape_ascii()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, host: &str, port: Option<u16>, target: &str) {
        let url = Url::parse(text).unwrap();
        assert_eq!(
            (url.host.as_str(), url.port, url.target.as_str()),
            (host, port, target)
        );
    }

    #[test]
    fn a_url_is_cut_into_its_parts() {
        check("http://a", "a", None, "/");
        check("HTTP://a:81/b?c#d", "a", Some(81), "/b?c");
        check("http://a?b=/c", "a", None, "/?b=/c");
        check("http://[::1]:8080/x", "::1", Some(8080), "/x");
        check("http://user:secret@a/", "a", None, "/");
        check("http://a:/", "a", None, "/");
    }

    #[test]
    fn the_authority_is_written_as_it_was() {
        let authority = |text| Url::parse(text).unwrap().authority();
        assert_eq!(authority("http://[::1]:8080/x"), "[::1]:8080");
        assert_eq!(authority("http://a.example/"), "a.example");
    }

    #[test]
    fn malformed_urls_are_errors_with_their_reason() {
        let refusal = |text| Url::parse(text).unwrap_err();
        assert_eq!(refusal("127.0.0.1/"), UrlError::NoScheme);
        assert_eq!(refusal("http:///x"), UrlError::NoHost);
        assert_eq!(refusal("http://a:0/"), UrlError::BadPort("0".into()));
        assert_eq!(
            refusal("http://a:70000/"),
            UrlError::BadPort("70000".into())
        );
        assert_eq!(refusal("ftp://a/"), UrlError::UnknownScheme("ftp".into()));
        assert_eq!(refusal("http://a/b c"), UrlError::BadCharacter(' '));
    }
}
