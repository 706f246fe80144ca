//! Name resolution, and whether a port accepts connections.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// The addresses of a host, in the resolver's order (getaddrinfo(3)); the error is the text of gai_strerror(3), without
/// the name, which each dialect puts elsewhere.
pub(crate) fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    let found = (host, port).to_socket_addrs().map_err(|error| {
        let text = error.to_string();
        String::from(text.strip_prefix(STD_PREFIX).unwrap_or(&text))
    })?;
    let addresses: Vec<SocketAddr> = found.collect();
    if addresses.is_empty() {
        return Err(String::from("No address associated with hostname"));
    }
    Ok(addresses)
}

/// Whether a connection can be established.
pub(crate) fn accepts(address: SocketAddr) -> bool {
    TcpStream::connect_timeout(&address, ACCEPT_TIMEOUT).is_ok()
}

/// The prefix that std puts before the system's text.
const STD_PREFIX: &str = "failed to lookup address information: ";

/// How long an address may take to accept. Linux itself would go on for two minutes.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn addresses_resolve_to_themselves() {
        let check = |host: &str, expected: &str| {
            let expected: SocketAddr = expected.parse().unwrap();
            assert_eq!(resolve(host, 80), Ok(vec![expected]), "{host}");
        };
        check("127.0.0.1", "127.0.0.1:80");
        check("::1", "[::1]:80");
    }

    #[test]
    fn an_unknown_name_is_the_systems_error() {
        // RFC 2606 reserves this domain; without a network the text is another.
        let error = resolve("host.invalid", 80).unwrap_err();
        assert!(!error.is_empty());
        assert!(!error.contains(STD_PREFIX), "{error}");
    }

    #[test]
    fn a_listening_socket_accepts() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert!(accepts(address));
        drop(listener);
        assert!(!accepts(address));
    }
}
