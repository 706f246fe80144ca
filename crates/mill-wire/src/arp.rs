//! Packets of the address resolution protocol, for IPv4 over Ethernet (RFC 826).
//!
//! ```text
//! | hardware 1, 2 | protocol 0800, 2 | lengths 6 and 4 | operation, 2 |
//! | sender MAC, 6 | sender IP, 4 | target MAC, 6 | target IP, 4 |
//! ```

use crate::Malformed;
use crate::ethernet::{EtherType, MacAddress};
use core::net::Ipv4Addr;

/// Bytes of a packet.
pub const PACKET_BYTES: usize = 28;

/// A request or a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArpPacket {
    pub operation: ArpOperation,
    pub sender_mac: MacAddress,
    pub sender: Ipv4Addr,
    /// Means nothing in a request.
    pub target_mac: MacAddress,
    pub target: Ipv4Addr,
}

/// What the packet is for. Others than these two are known to be no packets for hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArpOperation {
    Request,
    Reply,
}

impl ArpPacket {
    /// The packet and its length in bytes; padding of short frames follows it. Other hardware, other protocols and
    /// other operations have a wrong version.
    pub fn parse(packet: &[u8]) -> Result<(Self, usize), Malformed> {
        let bytes = packet
            .first_chunk::<PACKET_BYTES>()
            .ok_or(Malformed::Short)?;
        let (fixed, addresses) = bytes.split_at(FIXED.len() + 2);
        let operation = match fixed.strip_prefix(&FIXED) {
            Some([0, 1]) => ArpOperation::Request,
            Some([0, 2]) => ArpOperation::Reply,
            _ => return Err(Malformed::Version),
        };
        let &[a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t] =
            addresses.first_chunk::<20>().ok_or(Malformed::Short)?;
        let packet = Self {
            operation,
            sender_mac: MacAddress([a, b, c, d, e, f]),
            sender: Ipv4Addr::new(g, h, i, j),
            target_mac: MacAddress([k, l, m, n, o, p]),
            target: Ipv4Addr::new(q, r, s, t),
        };
        Ok((packet, PACKET_BYTES))
    }

    /// Writes the packet; returns its length in bytes.
    ///
    /// # Panics
    /// If `into` is shorter than [`PACKET_BYTES`].
    pub fn emit(&self, into: &mut [u8]) -> usize {
        let bytes = into
            .first_chunk_mut::<PACKET_BYTES>()
            .expect("the caller reserves room for the packet");
        bytes[0..6].copy_from_slice(&FIXED);
        bytes[6] = 0;
        bytes[7] = match self.operation {
            ArpOperation::Request => 1,
            ArpOperation::Reply => 2,
        };
        bytes[8..14].copy_from_slice(&self.sender_mac.0);
        bytes[14..18].copy_from_slice(&self.sender.octets());
        bytes[18..24].copy_from_slice(&self.target_mac.0);
        bytes[24..28].copy_from_slice(&self.target.octets());
        PACKET_BYTES
    }
}

/// Ethernet, IPv4, and the lengths of their addresses.
const FIXED: [u8; 6] = {
    let [high, low] = EtherType::IPV4.0.to_be_bytes();
    [0, 1, high, low, 6, 4]
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Random, round_trip};

    fn packet(operation: ArpOperation, random: &mut Random) -> ArpPacket {
        ArpPacket {
            operation,
            sender_mac: MacAddress(random.bytes()),
            sender: Ipv4Addr::from_bits(random.long()),
            target_mac: MacAddress(random.bytes()),
            target: Ipv4Addr::from_bits(random.long()),
        }
    }

    #[test]
    fn packets_are_read_as_they_were_written() {
        let mut random = Random::new(1);
        for _ in 0..100 {
            for operation in [ArpOperation::Request, ArpOperation::Reply] {
                let packet = packet(operation, &mut random);
                round_trip(&packet, PACKET_BYTES, ArpPacket::emit, ArpPacket::parse);
            }
        }
    }

    #[test]
    fn other_hardware_protocols_lengths_and_operations_are_refused() {
        let mut bytes = [0; PACKET_BYTES];
        packet(ArpOperation::Request, &mut Random::new(1)).emit(&mut bytes);
        for at in 0..8 {
            let mut other = bytes;
            other[at] ^= 4;
            assert_eq!(ArpPacket::parse(&other), Err(Malformed::Version), "{at}");
        }
    }
}
