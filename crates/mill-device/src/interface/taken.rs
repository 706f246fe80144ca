//! Ports that the kernel uses itself.

use std::collections::BTreeSet;
use std::fs;

/// Ports at which somebody on this machine listens, or has connections, at any address.
pub(super) fn ports() -> BTreeSet<u16> {
    let tables = tables();
    let entries = tables.iter().flat_map(|table| entries_of(table));
    entries.map(|entry| entry.port).collect()
}

/// Ports of which the kernel has connections that have not ended.
pub(super) fn connected_ports() -> BTreeSet<u16> {
    let tables = tables();
    let entries = tables.iter().flat_map(|table| entries_of(table));
    let connected = entries.filter(|entry| entry.state == State::Connected);
    connected.map(|entry| entry.port).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    port: u16,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Listening,
    Connected,
    /// Only waits for late segments (RFC 9293's TIME-WAIT).
    Waiting,
}

fn tables() -> [String; 2] {
    let tables = ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"];
    tables.map(|path| fs::read_to_string(path).unwrap_or_default())
}

/// What a table (proc(5), `/proc/net/tcp`) says: the second column is local address and port, the fourth the state, all in
/// hexadecimal.
fn entries_of(table: &str) -> impl Iterator<Item = Entry> {
    table.lines().skip(1).filter_map(|line| {
        let mut columns = line.split_whitespace();
        let (_, port) = columns.nth(1)?.split_once(':')?;
        Some(Entry {
            port: u16::from_str_radix(port, 16).ok()?,
            state: match columns.nth(1)? {
                LISTEN => State::Listening,
                TIME_WAIT => State::Waiting,
                _ => State::Connected,
            },
        })
    })
}

/// Of the kernel's tcp_states.h.
const TIME_WAIT: &str = "06";
const LISTEN: &str = "0A";

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_table_says_which_ports_are_taken() {
        let table = "  sl  local_address rem_address   st\n   0: 0100007F:1F90 00000000:0000 0A\n   1: bad\n \
                     2: 00000000000000000000000001000000:0016 00000000000000000000000000000000:0000 01\n \
                     3: 0100007F:1F91 0100007F:0050 06\n";
        let entry = |port, state| Entry { port, state };
        let expected = [
            entry(8080, State::Listening),
            entry(22, State::Connected),
            entry(8081, State::Waiting),
        ];
        assert_eq!(entries_of(table).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_port_is_connected_while_somebody_has_a_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert!(!connected_ports().contains(&address.port()));
        let _connection = TcpStream::connect(address).unwrap();
        let _accepted = listener.accept().unwrap();
        assert!(connected_ports().contains(&address.port()));
    }

    #[test]
    fn a_port_is_taken_while_somebody_listens() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(ports().contains(&port));
    }
}
