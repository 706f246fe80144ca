//! Where things lie in a frame: the simulation's own reading of it, independent of the stack's.
//!
//! Networks and network cards look into frames too: a card completes checksums and cuts segments, a router marks
//! congestion. That this is written a second time is the point: what the stack emits is checked by it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes of an Ethernet header.
pub(super) const ETHERNET_BYTES: usize = 14;

/// Protocol numbers (IANA) that the simulation looks into.
pub(super) const ICMP: u8 = 1;
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const ICMPV6: u8 = 58;

/// A frame that carries an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) is_ipv6: bool,
    pub(super) protocol: u8,
    /// Where the transport's header begins, in bytes from the frame's beginning.
    pub(super) transport: usize,
    /// Where the IP packet ends; behind it lies padding, if anything.
    pub(super) end: usize,
    /// A part of a datagram: its transport's checksum is not to be found in it alone.
    pub(super) is_fragment: bool,
}

impl Layout {
    /// `None` for frames without IP and for those that are cut short.
    pub(super) fn of(frame: &[u8]) -> Option<Self> {
        Self::of_head(frame).filter(|layout| layout.end <= frame.len())
    }

    /// As [`Layout::of`], for the beginning of a frame.
    pub(super) fn of_head(frame: &[u8]) -> Option<Self> {
        match u16_at(frame, 12)? {
            0x0800 => Self::of_ipv4(frame),
            0x86dd => Self::of_ipv6(frame),
            _ => None,
        }
    }

    fn of_ipv4(frame: &[u8]) -> Option<Self> {
        let ip = frame.get(ETHERNET_BYTES..)?;
        let header = usize::from(ip.first()? & 15) * 4;
        let fragment = u16_at(ip, 6)?;
        let layout = Self {
            is_ipv6: false,
            protocol: *ip.get(9)?,
            transport: ETHERNET_BYTES + header,
            end: ETHERNET_BYTES + usize::from(u16_at(ip, 2)?),
            // More fragments, or an offset (RFC 791 3.1).
            is_fragment: fragment & 0x3fff != 0,
        };
        layout.fits(header >= 20)
    }

    fn of_ipv6(frame: &[u8]) -> Option<Self> {
        let ip = frame.get(ETHERNET_BYTES..)?;
        let mut layout = Self {
            is_ipv6: true,
            protocol: *ip.get(6)?,
            transport: ETHERNET_BYTES + 40,
            end: ETHERNET_BYTES + 40 + usize::from(u16_at(ip, 4)?),
            is_fragment: false,
        };
        // Hop-by-hop, routing, fragment and destination headers (RFC 8200 4).
        while let 0 | 43 | 44 | 60 = layout.protocol {
            let header = frame.get(layout.transport..)?;
            let len = if layout.protocol == 44 {
                layout.is_fragment = true;
                8
            } else {
                (usize::from(*header.get(1)?) + 1) * 8
            };
            layout.protocol = *header.first()?;
            layout.transport += len;
        }
        layout.fits(true)
    }

    fn fits(self, is_sane: bool) -> Option<Self> {
        (is_sane && self.transport <= self.end).then_some(self)
    }

    /// Source and target.
    pub(super) fn addresses(&self, frame: &[u8]) -> Option<(IpAddr, IpAddr)> {
        if self.is_ipv6 {
            let source: [u8; 16] = frame.get(22..38)?.try_into().ok()?;
            let target: [u8; 16] = frame.get(38..54)?.try_into().ok()?;
            Some((Ipv6Addr::from(source).into(), Ipv6Addr::from(target).into()))
        } else {
            let source: [u8; 4] = frame.get(26..30)?.try_into().ok()?;
            let target: [u8; 4] = frame.get(30..34)?.try_into().ok()?;
            Some((Ipv4Addr::from(source).into(), Ipv4Addr::from(target).into()))
        }
    }

    /// Bytes of the IP packet.
    pub(super) const fn packet_len(&self) -> usize {
        self.end - ETHERNET_BYTES
    }

    /// Where in the frame the transport's checksum lies.
    pub(super) const fn checksum_at(&self) -> Option<usize> {
        let offset = match self.protocol {
            TCP => 16,
            UDP => 6,
            ICMP | ICMPV6 => 2,
            _ => return None,
        };
        Some(self.transport + offset)
    }

    /// The folded sum of the pseudo header (RFC 9293 3.1, RFC 8200 8.1), with the length of what the frame holds.
    pub(super) fn pseudo_sum(&self, frame: &[u8]) -> u16 {
        if self.protocol == ICMP {
            return 0;
        }
        let addresses = if self.is_ipv6 { 22..54 } else { 26..34 };
        let len = self.end - self.transport;
        let len_sum = (len >> 16) + (len & 0xffff);
        let seed = u32::from(self.protocol) + u32::try_from(len_sum).unwrap_or(0);
        fold(sum(frame.get(addresses).unwrap_or_default(), seed))
    }

    /// Whether the transport's checksum is right; also where there is none.
    pub(super) fn is_transport_sum_right(&self, frame: &[u8]) -> bool {
        let Some(at) = self.checksum_at().filter(|_| !self.is_fragment) else {
            return true;
        };
        // RFC 768: zero says that there is no checksum.
        if self.protocol == UDP && !self.is_ipv6 && u16_at(frame, at) == Some(0) {
            return true;
        }
        let bytes = frame.get(self.transport..self.end).unwrap_or_default();
        fold(sum(bytes, u32::from(self.pseudo_sum(frame)))) == 0xffff
    }

    pub(super) fn is_ip_sum_right(&self, frame: &[u8]) -> bool {
        let header = frame.get(ETHERNET_BYTES..self.transport);
        self.is_ipv6 || fold(sum(header.unwrap_or_default(), 0)) == 0xffff
    }

    /// Stores the transport's checksum, whatever its field held.
    pub(super) fn complete(&self, frame: &mut [u8]) {
        let Some(at) = self.checksum_at().filter(|_| !self.is_fragment) else {
            return;
        };
        put_u16(frame, at, 0);
        let bytes = frame.get(self.transport..self.end).unwrap_or_default();
        let checksum = !fold(sum(bytes, u32::from(self.pseudo_sum(frame))));
        // RFC 768: a sum of zero is sent as all ones.
        let is_zero_udp = self.protocol == UDP && checksum == 0;
        put_u16(frame, at, if is_zero_udp { 0xffff } else { checksum });
    }

    /// Stores the checksum of IPv4's header.
    pub(super) fn complete_ip(&self, frame: &mut [u8]) {
        if !self.is_ipv6 {
            put_u16(frame, ETHERNET_BYTES + 10, 0);
            let header = frame.get(ETHERNET_BYTES..self.transport);
            let checksum = !fold(sum(header.unwrap_or_default(), 0));
            put_u16(frame, ETHERNET_BYTES + 10, checksum);
        }
    }

    /// The ECN field (RFC 3168 5).
    pub(super) fn ecn(&self, frame: &[u8]) -> u8 {
        let byte = frame.get(15).copied().unwrap_or(0);
        if self.is_ipv6 {
            byte >> 4 & 3
        } else {
            byte & 3
        }
    }

    /// Marks the packet as one that met congestion, if it may be marked; says whether.
    pub(super) fn mark_congested(&self, frame: &mut [u8]) -> bool {
        if self.ecn(frame) == 0 {
            return false;
        }
        if let Some(byte) = frame.get_mut(15) {
            *byte |= if self.is_ipv6 { 0x30 } else { 3 };
        }
        self.complete_ip(frame);
        true
    }
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let two = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([two[0], two[1]]))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes([four[0], four[1], four[2], four[3]]))
}

/// Stores a number; the caller has seen that the place exists.
pub(super) fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(place) = bytes.get_mut(at..at + 2) {
        place.copy_from_slice(&value.to_be_bytes());
    }
}

pub(super) fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    if let Some(place) = bytes.get_mut(at..at + 4) {
        place.copy_from_slice(&value.to_be_bytes());
    }
}

/// RFC 1071, plainly: 16-bit words, an odd byte at the end padded. 2^17 bytes do not overflow.
pub(super) fn sum(bytes: &[u8], seed: u32) -> u32 {
    let (pairs, odd) = bytes.as_chunks::<2>();
    let sum = pairs
        .iter()
        .fold(seed, |sum, pair| sum + u32::from(u16::from_be_bytes(*pair)));
    sum + odd.first().map_or(0, |byte| u32::from(*byte) << 8)
}

pub(super) fn fold(sum: u32) -> u16 {
    let once = (sum >> 16) + (sum & 0xffff);
    u16::try_from((once >> 16) + (once & 0xffff)).unwrap_or(0)
}
