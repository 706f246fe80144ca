//! Which worker of a queue a flow belongs to: a hash that the program and the processes compute alike.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Spreads the flows of a queue over its workers. The seed is secret, so that a client cannot direct all flows to one
/// worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowHash {
    pub seed: u64,
    /// The number of workers that share a queue.
    pub workers: u32,
}

/// Odd numbers without pattern: the first 64 fractional bits of the golden ratio and of pi.
pub(super) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
pub(super) const PI: u64 = 0x243f_6a88_85a3_08d3;

impl FlowHash {
    /// The worker that frames from `remote` to the local port belong to; the local address does not matter. A worker
    /// that opens a connection chooses a local port whose answers come to itself.
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
        // Multiply and shift instead of a remainder: no division.
        u32::try_from((hash * u64::from(self.workers)) >> 32).expect("less than the workers")
    }
}

/// The bucket of a blocked address: a secret seed, so that a client cannot fill one bucket.
pub(super) fn bucket((high, low): (u64, u64), seed: u64, buckets: usize) -> usize {
    let hash = (high ^ seed).wrapping_mul(GOLDEN).wrapping_add(low);
    let hash = hash.wrapping_mul(PI) >> BUCKET_SHIFT;
    usize::try_from(hash).expect("a few bits") & (buckets - 1)
}

/// The highest bits of the product depend on all bits of the address.
pub(super) const BUCKET_SHIFT: u32 = 52;

/// An address as the table stores it, as two 64-bit numbers in native byte order; IPv4 addresses are mapped into IPv6
/// (RFC 4291, section 2.5.5.2).
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

/// The address that the two numbers stand for, unmapped if it is IPv4; `None` for an empty slot.
pub(super) fn address_of((high, low): (u64, u64)) -> Option<IpAddr> {
    let mut octets = [0; 16];
    octets[..8].copy_from_slice(&high.to_ne_bytes());
    octets[8..].copy_from_slice(&low.to_ne_bytes());
    let address = Ipv6Addr::from(octets);
    (!address.is_unspecified()).then(|| address.to_canonical())
}
