//! Ports that the kernel uses itself.

use mill_sys::netlink::{self, TcpSocket};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// Ports at which any socket of this machine listens or is connected, at any address.
pub(super) fn ports() -> BTreeSet<u16> {
    let told = netlink::tcp_sockets().map(|sockets| addresses_of(&sockets));
    let addresses = told.or_else(|_| read(|_| true)).unwrap_or_default();
    addresses.iter().map(SocketAddr::port).collect()
}

/// Ports of the kernel's connections that have not ended, at addresses that `is_own` holds for. Takes the kernel a few milliseconds where
/// its table of connections is large, however few there are.
pub(super) fn connected_ports(is_own: impl Fn(IpAddr) -> bool) -> io::Result<BTreeSet<u16>> {
    let told = netlink::tcp_connections().map(|sockets| addresses_of(&sockets));
    let addresses = told.or_else(|_| read(|state| state == State::Connected))?;
    let own = addresses.iter().filter(|address| is_own(address.ip()));
    Ok(own.map(SocketAddr::port).collect())
}

fn addresses_of(sockets: &[TcpSocket]) -> Vec<SocketAddr> {
    sockets.iter().map(|socket| socket.local).collect()
}

/// What the kernel's tables in /proc say, for kernels that lack the module which answers: for each read of some hundred bytes the kernel
/// walks its table again.
fn read(is_wanted: impl Fn(State) -> bool) -> io::Result<Vec<SocketAddr>> {
    let mut tables = fs::read_to_string("/proc/thread-self/net/tcp")?;
    match fs::read_to_string("/proc/thread-self/net/tcp6") {
        Ok(table) => tables += &table,
        // A kernel without IPv6.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let wanted = entries_of(&tables).filter(|entry| is_wanted(entry.state));
    Ok(wanted.map(|entry| entry.address).collect())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    /// The local address; IPv4-mapped addresses of IPv6 sockets are unmapped.
    address: SocketAddr,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Listening,
    Connected,
    /// TIME-WAIT (RFC 9293): the connection has ended.
    Waiting,
}

/// Parses a table (proc(5), `/proc/net/tcp`): the second column is local address and port, the fourth the state, all in
/// hexadecimal. Its headline has no address.
fn entries_of(table: &str) -> impl Iterator<Item = Entry> {
    table.lines().filter_map(|line| {
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
        let count = |found: Vec<SocketAddr>| found.iter().filter(|each| **each == address).count();
        let told = addresses_of(&netlink::tcp_sockets().unwrap());
        assert_eq!((count(told), count(read(|_| true).unwrap())), (2, 2));
        let told = addresses_of(&netlink::tcp_connections().unwrap());
        let connected = read(|state| state == State::Connected).unwrap();
        assert_eq!((count(told), count(connected)), (1, 1));
    }

    #[test]
    fn a_port_is_taken_while_a_socket_listens_there() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(ports().contains(&port));
    }
}
