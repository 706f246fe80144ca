//! The header of an Ethernet frame (IEEE 802.3 3.1, RFC 894).
//!
//! ```text
//! | target, 6 | source, 6 | EtherType, 2 | payload
//! ```

use crate::Malformed;
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};

/// Bytes of a header without tags.
pub const HEADER_BYTES: usize = 14;

/// What stands before the payload of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EthernetHeader {
    pub target: MacAddress,
    pub source: MacAddress,
    pub ether_type: EtherType,
}

impl EthernetHeader {
    /// The header and its length in bytes.
    #[inline]
    pub fn parse(frame: &[u8]) -> Result<(Self, usize), Malformed> {
        let &[a, b, c, d, e, f, g, h, i, j, k, l, m, n] = frame
            .first_chunk::<HEADER_BYTES>()
            .ok_or(Malformed::Short)?;
        let header = Self {
            target: MacAddress([a, b, c, d, e, f]),
            source: MacAddress([g, h, i, j, k, l]),
            ether_type: EtherType(u16::from_be_bytes([m, n])),
        };
        Ok((header, HEADER_BYTES))
    }

    /// Writes the header; returns its length in bytes.
    ///
    /// # Panics
    /// If `into` is shorter than [`HEADER_BYTES`].
    #[inline]
    pub fn emit(&self, into: &mut [u8]) -> usize {
        let header = into
            .first_chunk_mut::<HEADER_BYTES>()
            .expect("the caller reserves room for the header");
        header[0..6].copy_from_slice(&self.target.0);
        header[6..12].copy_from_slice(&self.source.0);
        header[12..14].copy_from_slice(&self.ether_type.0.to_be_bytes());
        HEADER_BYTES
    }
}

/// A 48-bit address.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// No station's; in an ARP request, the one that is asked for.
    pub const UNSPECIFIED: Self = Self([0; 6]);
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// Whether it is a group's address, which broadcast is too.
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }

    pub fn is_broadcast(self) -> bool {
        self == Self::BROADCAST
    }

    /// Whether it can be the address of one station: frames come only from such.
    pub fn is_unicast(self) -> bool {
        !self.is_multicast() && self != Self::UNSPECIFIED
    }

    /// The group that frames to an IPv4 multicast address go to (RFC 1112 6.4): its lower 23 bits.
    pub const fn of_multicast_v4(group: Ipv4Addr) -> Self {
        let [_, b, c, d] = group.octets();
        Self([0x01, 0x00, 0x5e, b & 0x7f, c, d])
    }

    /// The group that frames to an IPv6 multicast address go to (RFC 2464 7): its last four bytes.
    pub const fn of_multicast_v6(group: Ipv6Addr) -> Self {
        let [.., a, b, c, d] = group.octets();
        Self([0x33, 0x33, a, b, c, d])
    }

    /// The link-local address that belongs to this interface (RFC 4862 5.3) by its modified EUI-64 (RFC 2464 4):
    /// ff:fe in the middle, the universal/local bit turned round.
    pub const fn link_local(self) -> Ipv6Addr {
        let [a, b, c, d, e, f] = self.0;
        Ipv6Addr::from_bits(u128::from_be_bytes([
            0xfe,
            0x80,
            0,
            0,
            0,
            0,
            0,
            0,
            a ^ 0b10,
            b,
            c,
            0xff,
            0xfe,
            d,
            e,
            f,
        ]))
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, f] = self.0;
        write!(to, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, to)
    }
}

/// What a frame's payload is. Values below 1536 are lengths of an older framing, which is not supported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EtherType(pub u16);

impl EtherType {
    pub const IPV4: Self = Self(0x0800);
    pub const ARP: Self = Self(0x0806);
    pub const IPV6: Self = Self(0x86dd);
    /// 802.1Q: a customer's tag follows.
    pub const VLAN: Self = Self(0x8100);
    /// 802.1ad: a provider's tag follows.
    pub const SERVICE_VLAN: Self = Self(0x88a8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Random, round_trip};
    use std::string::ToString;

    #[test]
    fn headers_are_read_as_they_were_written() {
        let mut random = Random::new(1);
        for _ in 0..100 {
            let header = EthernetHeader {
                target: MacAddress(random.bytes()),
                source: MacAddress(random.bytes()),
                ether_type: EtherType(random.word()),
            };
            round_trip(
                &header,
                HEADER_BYTES,
                EthernetHeader::emit,
                EthernetHeader::parse,
            );
        }
    }

    #[test]
    fn groups_have_the_addresses_of_the_standards() {
        // RFC 1112 6.4: 224.128.1.2 and 239.0.1.2 share one, for the ninth bit is left out.
        let group = MacAddress([0x01, 0x00, 0x5e, 0, 1, 2]);
        for address in [Ipv4Addr::new(224, 128, 1, 2), Ipv4Addr::new(239, 0, 1, 2)] {
            assert_eq!(MacAddress::of_multicast_v4(address), group);
        }
        let all_nodes = "ff02::1".parse().unwrap();
        assert_eq!(
            MacAddress::of_multicast_v6(all_nodes).to_string(),
            "33:33:00:00:00:01"
        );
        assert!(group.is_multicast() && !group.is_unicast() && !group.is_broadcast());
        assert!(MacAddress::BROADCAST.is_multicast() && MacAddress::BROADCAST.is_broadcast());
        assert!(!MacAddress::UNSPECIFIED.is_unicast());
        assert!(MacAddress([2, 0, 0, 0, 0, 0]).is_unicast());
    }

    #[test]
    fn the_link_local_address_is_that_of_the_standards_example() {
        // RFC 2464 4: 34-56-78-9A-BC-DE.
        let address = MacAddress([0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde]);
        assert_eq!(
            address.link_local().to_string(),
            "fe80::3656:78ff:fe9a:bcde"
        );
    }
}
