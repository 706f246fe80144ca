//! Ports that the kernel uses itself.

use std::collections::BTreeSet;
use std::fs;

/// Ports at which somebody on this machine listens, or has connections, at any address.
pub(super) fn ports() -> BTreeSet<u16> {
    let tables = ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"];
    let tables = tables.map(|path| fs::read_to_string(path).unwrap_or_default());
    tables.iter().flat_map(|table| ports_of(table)).collect()
}

/// The local ports of a table (proc(5), `/proc/net/tcp`): the second column is address and port in hexadecimal.
fn ports_of(table: &str) -> impl Iterator<Item = u16> {
    table.lines().skip(1).filter_map(|line| {
        let (_, port) = line.split_whitespace().nth(1)?.split_once(':')?;
        u16::from_str_radix(port, 16).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_table_says_which_ports_are_taken() {
        let table = "  sl  local_address rem_address   st\n   0: 0100007F:1F90 00000000:0000 0A\n   1: bad\n \
                     2: 00000000000000000000000001000000:0016 00000000000000000000000000000000:0000 0A\n";
        assert_eq!(ports_of(table).collect::<Vec<_>>(), [8080, 22]);
    }

    #[test]
    fn a_port_is_taken_while_somebody_listens() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(ports().contains(&port));
    }
}
