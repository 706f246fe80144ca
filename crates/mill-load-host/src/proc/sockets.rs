//! /proc/net/tcp and /proc/net/tcp6: listening sockets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The inodes of the sockets that listen at `target`, at its address or at any.
pub(crate) fn listening(text: &str, target: SocketAddr) -> Vec<u64> {
    let inodes = text.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let local = fields.get(LOCAL).and_then(|field| address(field))?;
        let listens = fields.get(STATE) == Some(&LISTEN);
        let at_target = local.port() == target.port()
            && (local.ip().is_unspecified() || local.ip().to_canonical() == target.ip());
        let inode = fields.get(INODE)?.parse().ok()?;
        (listens && at_target).then_some(inode)
    });
    inodes.collect()
}

/// `0100007F:0050`: words of 32 bits in the machine's order, and the port.
fn address(field: &str) -> Option<SocketAddr> {
    let (ip, port) = field.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |index: usize| {
        let digits = ip.get(index * 8..index * 8 + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut octets = [0; 16];
            for (index, chunk) in octets.chunks_exact_mut(4).enumerate() {
                chunk.copy_from_slice(&word(index)?);
            }
            IpAddr::V6(Ipv6Addr::from(octets))
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// Columns.
const LOCAL: usize = 1;
const STATE: usize = 3;
const INODE: usize = 9;

/// TCP_LISTEN of the kernel's tcp_states.h.
const LISTEN: &str = "0A";

#[cfg(all(test, target_endian = "little"))]
mod tests {
    use super::*;

    const TCP: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 101 1 0000000000000000 100 0 0 10 0
   1: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 102 1 0000000000000000 100 0 0 10 0
   2: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 103 1 0000000000000000 100 0 0 10 0
   3: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 104 1 0000000000000000 20 4 30 10 -1
";
    const TCP6: &str = "\
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 201 1 0 100 0 0 10 0
   1: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 202 1 0 100 0 0 10 0
   2: 0000000000000000FFFF00000100007F:0051 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 203 1 0 100 0 0 10 0
";

    #[test]
    fn listeners_at_an_address_or_at_any_are_found() {
        let check = |text, target: &str, expected: &[u64]| {
            let target = target.parse().unwrap();
            assert_eq!(listening(text, target), expected, "{target}");
        };
        check(TCP, "127.0.0.1:8080", &[101]);
        check(TCP, "10.1.1.1:80", &[102, 103]);
        check(TCP, "127.0.0.2:8080", &[]);
        check(TCP6, "[::1]:80", &[201]);
        check(TCP6, "[::2]:80", &[]);
        check(TCP6, "127.0.0.1:8080", &[202]);
        check(TCP6, "127.0.0.1:81", &[203]);
    }

    #[test]
    fn broken_lines_are_passed_over() {
        let text =
            "head\n 0: 01:1F90 0 0A\n 1: 0100007F 0 0A 0 0 0 0 0 5\n\u{e9}\u{e9}\u{e9}\u{e9}:50\n";
        assert_eq!(listening(text, "127.0.0.1:80".parse().unwrap()), [0_u64; 0]);
    }
}
