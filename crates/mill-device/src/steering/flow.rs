//! Which worker of a queue a flow belongs to: a hash that the program and the processes compute alike.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Spreads the flows of a queue over its workers. The seed is secret, so that nobody can send all flows to one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowHash {
    pub seed: u64,
    /// How many share a queue.
    pub workers: u32,
}

/// Odd numbers without a pattern: the golden ratio's and pi's first 64 binary places behind the point.
pub(super) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
pub(super) const PI: u64 = 0x243f_6a88_85a3_08d3;

impl FlowHash {
    /// The worker that frames from `remote` to the local port come to. The local address does not matter. A program that
    /// opens a connection chooses its local port so that the answers come to itself.
    pub fn worker(self, remote: SocketAddr, local_port: u16) -> u32 {
        let (high, low) = halves_of(remote.ip());
        // Both ports as they follow each other in the header, read as one number.
        let [a, b] = remote.port().to_be_bytes();
        let [c, d] = local_port.to_be_bytes();
        let ports = u64::from(u32::from_ne_bytes([a, b, c, d]));
        let hash = (high ^ self.seed).wrapping_mul(GOLDEN).wrapping_add(low);
        let hash = hash.wrapping_mul(PI);
        let hash = (hash ^ (hash >> 32)).wrapping_add(ports);
        let hash = hash.wrapping_mul(GOLDEN) >> 32;
        // A fraction of the workers instead of a remainder: no division.
        u32::try_from((hash * u64::from(self.workers)) >> 32).expect("less than the workers")
    }
}

/// An address as the table has it, in two numbers of the machine's order; IPv4's is mapped into IPv6 (RFC 4291, section
/// 2.5.5.2).
pub(super) fn halves_of(address: IpAddr) -> (u64, u64) {
    let octets = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    };
    let [high, low] = octets.as_chunks::<8>().0 else {
        unreachable!("16 are two times 8")
    };
    (u64::from_ne_bytes(*high), u64::from_ne_bytes(*low))
}

/// The address of these numbers, IPv4's as such; `None` of an empty place.
pub(super) fn address_of((high, low): (u64, u64)) -> Option<IpAddr> {
    let mut octets = [0; 16];
    octets[..8].copy_from_slice(&high.to_ne_bytes());
    octets[8..].copy_from_slice(&low.to_ne_bytes());
    let address = Ipv6Addr::from(octets);
    (!address.is_unspecified()).then(|| address.to_canonical())
}
