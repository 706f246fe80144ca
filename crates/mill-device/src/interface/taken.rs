//! Ports that the kernel uses itself.

use mill_sys::netlink;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// Ports at which any socket of this machine listens or is connected, at any address.
pub(super) fn ports() -> BTreeSet<u16> {
    let entries = entries().unwrap_or_default().into_iter();
    entries.map(|entry| entry.address.port()).collect()
}

/// Ports of the kernel's connections that have not ended, at addresses that `is_own` holds for.
pub(super) fn connected_ports(is_own: impl Fn(IpAddr) -> bool) -> io::Result<BTreeSet<u16>> {
    let entries = entries()?.into_iter();
    let connected = entries.filter(|entry| entry.state == State::Connected);
    let own = connected.filter(|entry| is_own(entry.address.ip()));
    Ok(own.map(|entry| entry.address.port()).collect())
}

/// The kernel's tables, or what it answers where there is no /proc, as in a program that has changed its root: that takes a module of the
/// kernel which some machines lack.
fn entries() -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    let mut is_there = false;
    for path in TABLES {
        match fs::read_to_string(path) {
            Ok(table) => {
                is_there = true;
                entries.extend(entries_of(&table));
            }
            // A kernel without IPv6, or no /proc.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    match is_there {
        true => Ok(entries),
        false => told(),
    }
}

/// What the kernel answers.
fn told() -> io::Result<Vec<Entry>> {
    let sockets = netlink::tcp_sockets()?.into_iter();
    let entries = sockets.map(|socket| Entry {
        address: socket.local,
        state: match socket.state {
            TCP_LISTEN => State::Listening,
            TCP_TIME_WAIT => State::Waiting,
            _ => State::Connected,
        },
    });
    Ok(entries.collect())
}

const TABLES: [&str; 2] = ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    /// The local address; IPv4-mapped addresses of IPv6 sockets are unmapped.
    address: SocketAddr,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Listening,
    Connected,
    /// TIME-WAIT (RFC 9293): the connection has ended.
    Waiting,
}

/// Parses a table (proc(5), `/proc/net/tcp`): the second column is local address and port, the fourth the state, all in
/// hexadecimal.
fn entries_of(table: &str) -> impl Iterator<Item = Entry> {
    table.lines().skip(1).filter_map(|line| {
        let mut columns = line.split_whitespace();
        let (address, port) = columns.nth(1)?.split_once(':')?;
        let port = u16::from_str_radix(port, 16).ok()?;
        Some(Entry {
            address: SocketAddr::new(address_of(address)?, port),
            state: match columns.nth(1)? {
                LISTEN => State::Listening,
                TIME_WAIT => State::Waiting,
                _ => State::Connected,
            },
        })
    })
}

/// An address is printed as 32-bit words, each in native byte order.
fn address_of(text: &str) -> Option<IpAddr> {
    let mut bytes = [0; 16];
    let len = text.len() / 2;
    for (at, word) in bytes.get_mut(..len)?.chunks_mut(4).enumerate() {
        let word_text = text.get(at * 8..at * 8 + 8)?;
        word.copy_from_slice(&u32::from_str_radix(word_text, 16).ok()?.to_ne_bytes());
    }
    match len {
        4 => <[u8; 4]>::try_from(bytes.get(..4)?).ok().map(IpAddr::from),
        16 => Some(IpAddr::from(bytes).to_canonical()),
        _ => None,
    }
}

/// From the kernel's tcp_states.h.
const TIME_WAIT: &str = "06";
const LISTEN: &str = "0A";
const TCP_TIME_WAIT: u8 = 6;
const TCP_LISTEN: u8 = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_table_is_parsed_into_ports_and_states() {
        let table = "  sl  local_address rem_address   st\n   0: 0100007F:1F90 00000000:0000 0A\n   1: bad\n \
                     2: 00000000000000000000000001000000:0016 00000000000000000000000000000000:0000 01\n \
                     3: 0100007F:1F91 0100007F:0050 06\n \
                     4: 0000000000000000FFFF00000200000A:0050 0000000000000000FFFF00000100000A:1234 01\n \
                     5: 0100:0050 0100:0050 01\n";
        let entry = |address: &str, state| Entry {
            address: address.parse().unwrap(),
            state,
        };
        let expected = [
            entry("127.0.0.1:8080", State::Listening),
            entry("[::1]:22", State::Connected),
            entry("127.0.0.1:8081", State::Waiting),
            entry("10.0.0.2:80", State::Connected),
        ];
        let found: Vec<Entry> = entries_of(table).collect();
        if cfg!(target_endian = "little") {
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_port_is_connected_while_a_connection_at_the_address_uses_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let has = |own: IpAddr| {
            let ports = connected_ports(|address| address == own).unwrap();
            ports.contains(&address.port())
        };
        assert!(!has(address.ip()));
        let _connection = TcpStream::connect(address).unwrap();
        let _accepted = listener.accept().unwrap();
        assert!(has(address.ip()));
        assert!(!has("127.0.0.2".parse().unwrap()));
    }

    #[test]
    fn the_kernel_answers_what_its_tables_tell() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let _connection = TcpStream::connect(address).unwrap();
        let of_it = |entries: Vec<Entry>| {
            let of_it = entries.into_iter().filter(|entry| entry.address == address);
            let mut states: Vec<State> = of_it.map(|entry| entry.state).collect();
            states.sort();
            states
        };
        let expected = [State::Listening, State::Connected];
        assert_eq!(of_it(entries().unwrap()), expected);
        assert_eq!(of_it(told().unwrap()), expected);
    }

    #[test]
    fn a_port_is_taken_while_a_socket_listens_there() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(ports().contains(&port));
    }
}
