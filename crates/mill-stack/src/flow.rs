//! Which connection: two addresses and two ports.

use crate::siphash::Key;
use core::net::{IpAddr, SocketAddr};

/// Both ends of a connection, seen from here. Both addresses are of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    pub local: IpAddr,
    pub remote: IpAddr,
    pub local_port: u16,
    pub remote_port: u16,
}

const _: () = assert!(size_of::<Flow>() == 38);

impl Flow {
    pub const fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            local: local.ip(),
            remote: remote.ip(),
            local_port: local.port(),
            remote_port: remote.port(),
        }
    }

    pub const fn local(&self) -> SocketAddr {
        SocketAddr::new(self.local, self.local_port)
    }

    pub const fn remote(&self) -> SocketAddr {
        SocketAddr::new(self.remote, self.remote_port)
    }

    /// The hash that finds it in a table; the upper half of it is independent of the lower one.
    #[inline]
    pub fn table_hash(&self, key: Key) -> u64 {
        self.with_words(0, |words| key.table(words))
    }

    /// A hash for numbers that the peer and others get to see.
    pub fn secret_hash(&self, key: Key, extra: u64) -> u64 {
        self.with_words(extra, |words| key.secret(words))
    }

    /// A hash of the two addresses alone.
    pub fn secret_hash_of_addresses(&self, key: Key) -> u64 {
        let of_addresses = Self {
            local_port: 0,
            remote_port: 0,
            ..*self
        };
        of_addresses.secret_hash(key, 0)
    }

    /// Lends the flow and one more number (32 bits of it beside the ports) as words. Flows of both families differ in
    /// how many there are.
    #[inline]
    fn with_words<R>(&self, extra: u64, hash: impl FnOnce(&[u64]) -> R) -> R {
        let ports = (u64::from(self.local_port) << 16) | u64::from(self.remote_port);
        let last = ports ^ (extra << 32);
        match (self.local, self.remote) {
            (IpAddr::V4(local), IpAddr::V4(remote)) => {
                let addresses = (u64::from(local.to_bits()) << 32) | u64::from(remote.to_bits());
                hash(&[addresses, last])
            }
            (local, remote) => {
                let (local_high, local_low) = halves(local);
                let (remote_high, remote_low) = halves(remote);
                hash(&[local_high, local_low, remote_high, remote_low, last])
            }
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the halves are cut off on purpose"
)]
const fn halves(address: IpAddr) -> (u64, u64) {
    let bits = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    };
    ((bits >> 64) as u64, bits as u64)
}

/// An address as packets carry it: IPv4 also where a program, as those with one socket for both families do, gives
/// it as an address of IPv6 (RFC 4291 2.5.5.2).
pub(crate) fn unmapped(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn every_part_of_a_flow_changes_its_hash() {
        let key = Key::new([7; 16]);
        let mut hashes = Vec::new();
        for (local, remote) in [
            ("10.0.0.1:80", "10.0.0.2:1000"),
            ("10.0.0.3:80", "10.0.0.2:1000"),
            ("10.0.0.1:81", "10.0.0.2:1000"),
            ("10.0.0.1:80", "10.0.0.3:1000"),
            ("10.0.0.1:80", "10.0.0.2:1001"),
            ("10.0.0.2:1000", "10.0.0.1:80"),
            ("[fe80::1]:80", "[fe80::2]:1000"),
            ("[fe80:1::1]:80", "[fe80::2]:1000"),
            ("[fe80::1]:80", "[fe80:1::2]:1000"),
        ] {
            let flow = Flow::new(local.parse().unwrap(), remote.parse().unwrap());
            hashes.push(flow.table_hash(key));
            hashes.push(flow.secret_hash(key, 0));
            hashes.push(flow.secret_hash(key, 1));
        }
        let count = hashes.len();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), count);
    }

    #[test]
    fn the_hash_of_addresses_is_the_same_for_all_ports() {
        let key = Key::new([7; 16]);
        let flow =
            |remote: &str| Flow::new("10.0.0.1:80".parse().unwrap(), remote.parse().unwrap());
        let hash = flow("10.0.0.2:1").secret_hash_of_addresses(key);
        assert_eq!(flow("10.0.0.2:2").secret_hash_of_addresses(key), hash);
        assert_ne!(flow("10.0.0.3:1").secret_hash_of_addresses(key), hash);
    }
}
