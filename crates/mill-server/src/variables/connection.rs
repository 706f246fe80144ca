//! The connection and the server process.

use crate::request::{ConnectionFacts, Request};
use crate::variables::decimal;
use mill_http::decimal::emit_decimal;
use mill_runtime::address::Address;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// `$remote_addr`, `$server_addr`.
pub(super) fn host(address: &Address) -> Vec<u8> {
    let mut host = Vec::new();
    emit_host(address, &mut host);
    host
}

/// Appends the same.
pub(crate) fn emit_host(address: &Address, out: &mut Vec<u8>) {
    match address {
        Address::Ip(SocketAddr::V4(address)) => {
            for (index, octet) in address.ip().octets().into_iter().enumerate() {
                if index > 0 {
                    out.push(b'.');
                }
                emit_decimal(octet.into(), out);
            }
        }
        Address::Ip(SocketAddr::V6(address)) => {
            // Writing to memory does not fail.
            let _ = write!(out, "{}", address.ip());
        }
        Address::Unix(path) => {
            out.extend_from_slice(b"unix:");
            out.extend_from_slice(path);
        }
    }
}

/// `$remote_port`, `$server_port`: empty on a UNIX-domain socket, and for a client that was told without its port.
pub(super) fn port(address: &Address) -> Vec<u8> {
    match address {
        Address::Ip(address) if address.port() != 0 => decimal(u64::from(address.port())),
        Address::Ip(_) | Address::Unix(_) => Vec::new(),
    }
}

/// `$binary_remote_addr`.
pub(super) fn binary(address: &Address) -> Vec<u8> {
    let mut bytes = Vec::new();
    emit_binary(address, &mut bytes);
    bytes
}

/// Appends the same.
pub(crate) fn emit_binary(address: &Address, out: &mut Vec<u8>) {
    match address {
        Address::Ip(address) => match address.ip() {
            IpAddr::V4(address) => out.extend_from_slice(&address.octets()),
            IpAddr::V6(address) => out.extend_from_slice(&address.octets()),
        },
        Address::Unix(_) => emit_host(address, out),
    }
}

/// `$binary_remote_net`.
pub(super) fn binary_network(address: &Address) -> Vec<u8> {
    let mut bytes = Vec::new();
    emit_binary_network(address, &mut bytes);
    bytes
}

/// Appends the same. Addresses of IPv4 within IPv6 have their first bytes in common: all 16 are told of them.
pub(crate) fn emit_binary_network(address: &Address, out: &mut Vec<u8>) {
    match address {
        Address::Ip(SocketAddr::V6(address)) if address.ip().to_ipv4_mapped().is_none() => {
            let [network @ .., _, _, _, _, _, _, _, _] = address.ip().octets();
            out.extend_from_slice(&network);
        }
        _ => emit_binary(address, out),
    }
}

/// `$pipe`.
pub(super) fn pipe(request: &Request) -> &'static [u8] {
    if request.pipelined { b"p" } else { b"." }
}

/// `$tcpinfo_rtt`, in microseconds.
pub(super) fn rtt(connection: &ConnectionFacts) -> Option<Vec<u8>> {
    connection
        .transport
        .get()
        .map(|info| microseconds(info.rtt))
}

/// `$tcpinfo_rttvar`, in microseconds.
pub(super) fn rtt_variation(connection: &ConnectionFacts) -> Option<Vec<u8>> {
    let info = connection.transport.get();
    info.map(|info| microseconds(info.rtt_variation))
}

/// `$tcpinfo_snd_cwnd`, in segments.
pub(super) fn snd_cwnd(connection: &ConnectionFacts) -> Option<Vec<u8>> {
    let info = connection.transport.get();
    info.map(|info| decimal(u64::from(info.snd_cwnd)))
}

/// `$tcpinfo_rcv_space`, in bytes.
pub(super) fn rcv_space(connection: &ConnectionFacts) -> Option<Vec<u8>> {
    let info = connection.transport.get();
    info.map(|info| decimal(u64::from(info.rcv_space)))
}

fn microseconds(duration: Duration) -> Vec<u8> {
    decimal(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_without_their_ports() {
        let check = |address: Address, shown: &str, shown_port: &str, bytes: usize| {
            assert_eq!(host(&address), shown.as_bytes());
            assert_eq!(port(&address), shown_port.as_bytes());
            assert_eq!(binary(&address).len(), bytes);
        };
        let ip = |text: &str| Address::Ip(text.parse().unwrap());
        check(ip("192.0.2.1:80"), "192.0.2.1", "80", 4);
        check(ip("[2001:db8::1]:8080"), "2001:db8::1", "8080", 16);
        check(ip("192.0.2.1:0"), "192.0.2.1", "", 4);
        check(Address::Unix(b"/run/a"[..].into()), "unix:/run/a", "", 11);
        check(Address::Unix(b""[..].into()), "unix:", "", 5);
    }

    #[test]
    fn a_network_is_what_one_client_has_for_itself() {
        let check = |text: &str, expected: &[u8]| {
            assert_eq!(
                binary_network(&Address::Ip(text.parse().unwrap())),
                expected
            );
        };
        check("192.0.2.1:80", &[192, 0, 2, 1]);
        check(
            "[2001:db8:1:2:3:4:5:6]:80",
            &[0x20, 1, 0x0d, 0xb8, 0, 1, 0, 2],
        );
        let mapped = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1];
        check("[::ffff:192.0.2.1]:80", &mapped);
        assert_eq!(binary_network(&Address::Unix(b"/a"[..].into())), b"unix:/a");
    }
}
