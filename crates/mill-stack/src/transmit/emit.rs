//! A segment's bytes: Ethernet, IP and TCP headers before the payload, which is already in the frame.

use crate::flow::Flow;
use crate::link::{LinkProperties, Offload, PartialChecksum, Segmentation};
use core::net::IpAddr;
use mill_tcp::config::Dscp;
use mill_tcp::segment::{Ecn, SegmentOut};
use mill_wire::checksum::{Sum, fill, fill_partial};
use mill_wire::ethernet::{self, EtherType, EthernetHeader, MacAddress};
use mill_wire::ipv4::{self, PlainIpv4};
use mill_wire::ipv6::{self, Ipv6Header};
use mill_wire::protocol::Protocol;
use mill_wire::tcp::{self, CHECKSUM_OFFSET, FixedHeader, Flags};

/// Source and target, and the link's properties.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends<'a> {
    link: &'a LinkProperties,
    mac: MacAddress,
    flow: &'a Flow,
    /// Of its packets.
    dscp: u8,
    /// Bytes before the TCP header.
    tcp_at: usize,
}

impl<'a> Ends<'a> {
    pub(super) const fn new(
        link: &'a LinkProperties,
        mac: MacAddress,
        flow: &'a Flow,
        dscp: Dscp,
    ) -> Self {
        let (ip_len, dscp) = match flow.remote {
            IpAddr::V4(_) => (ipv4::HEADER_BYTES, dscp.ipv4),
            IpAddr::V6(_) => (ipv6::HEADER_BYTES, dscp.ipv6),
        };
        Self {
            link,
            mac,
            flow,
            dscp,
            tcp_at: ethernet::HEADER_BYTES + ip_len,
        }
    }

    /// Bytes of payload that the next frame takes of a segment of which so many are left.
    pub(super) fn payload_of_next(&self, left: u32, mss: u16) -> u32 {
        let mss = u32::from(mss);
        match self.device_cuts() && left >= self.link.cut_bytes_min {
            true => left,
            false => left.min(mss),
        }
    }

    /// Bytes of the longest frame with so much payload.
    pub(super) fn frame_len_max_of(&self, payload: u32, mss: u16) -> usize {
        match payload > u32::from(mss) {
            true => frame_len_max(self.link),
            false => wire_frame_len_max(self.link),
        }
    }

    /// Where the payload lies in the frame.
    pub(super) fn payload<'b>(&self, room: &'b mut [u8], segment: &SegmentOut) -> &'b mut [u8] {
        let start = self.tcp_at + tcp::HEADER_BYTES + segment.options.len();
        room.get_mut(start..start + segment.len as usize)
            .expect("a segment fits into the room that was reserved for the longest")
    }

    /// Whether the device takes a piece of this payload from where it lies.
    pub(super) const fn takes_external(&self, piece: &SegmentOut) -> bool {
        self.link.sends_external && piece.len > piece.mss as u32
    }

    const fn device_cuts(&self) -> bool {
        self.link.segment_bytes_max > self.link.mtu as u32
    }
}

/// Bytes of the longest frame on the wire.
pub(super) fn wire_frame_len_max(link: &LinkProperties) -> usize {
    ethernet::HEADER_BYTES + usize::from(link.mtu)
}

/// Bytes of the longest frame that the device takes.
pub(super) fn frame_len_max(link: &LinkProperties) -> usize {
    let packet = link.segment_bytes_max.min(u32::from(u16::MAX));
    ethernet::HEADER_BYTES + packet.max(u32::from(link.mtu)) as usize
}

/// Writes the headers before the payload. Returns the frame's length in bytes and what is left to the device.
pub(super) fn emit(room: &mut [u8], ends: &Ends<'_>, segment: &SegmentOut) -> (usize, Offload) {
    let header = FixedHeader {
        source: ends.flow.local_port,
        target: ends.flow.remote_port,
        seq: segment.seq,
        ack: segment.ack,
        flags: segment.flags,
        window: segment.window,
        urgent: segment.urgent,
    };
    let tcp_len = tcp::HEADER_BYTES + segment.options.len() + segment.len as usize;
    let end = ends.tcp_at + tcp_len;
    let pseudo_header = emit_ip(room, ends, segment, tcp_len);
    let bytes = room
        .get_mut(ends.tcp_at..end)
        .expect("a segment fits into the room that was reserved for the longest");
    let header_len = header.emit(&segment.options, bytes);
    let mut offload = Offload::default();
    let is_cut = segment.len > u32::from(segment.mss);
    if ends.link.completes_checksums || is_cut {
        fill_partial(pseudo_header, bytes, CHECKSUM_OFFSET);
        offload.checksum = Some(PartialChecksum {
            start: short(ends.tcp_at),
            offset: short(CHECKSUM_OFFSET),
        });
    } else {
        fill(pseudo_header, bytes, CHECKSUM_OFFSET);
    }
    if is_cut {
        offload.segmentation = Some(Segmentation {
            mss: segment.mss,
            header_len: short(ends.tcp_at + header_len),
            is_ipv6: ends.flow.remote.is_ipv6(),
        });
    }
    (end, offload)
}

/// Writes Ethernet and IP headers; gives the sum of the pseudo header.
fn emit_ip(room: &mut [u8], ends: &Ends<'_>, segment: &SegmentOut, tcp_len: usize) -> Sum {
    let (ethernet, ip) = room
        .split_at_mut_checked(ethernet::HEADER_BYTES)
        .expect("the room holds the headers");
    let mut link_header = EthernetHeader {
        target: ends.mac,
        source: MacAddress(ends.link.address),
        ether_type: EtherType::IPV4,
    };
    let ecn = ecn_of(segment.ecn);
    let sum = match (ends.flow.local, ends.flow.remote) {
        (IpAddr::V4(source), IpAddr::V4(target)) => {
            let header = PlainIpv4 {
                dscp: ends.dscp,
                ecn,
                total_len: short(ipv4::HEADER_BYTES + tcp_len),
                ttl: ipv4::TTL_DEFAULT,
                protocol: Protocol::TCP,
                source,
                target,
            };
            header.emit(ip);
            Sum::of_pseudo_header_v4(source, target, Protocol::TCP.0, tcp_len)
        }
        (IpAddr::V6(source), IpAddr::V6(target)) => {
            link_header.ether_type = EtherType::IPV6;
            let header = Ipv6Header {
                dscp: ends.dscp,
                ecn,
                payload_len: short(tcp_len),
                next_header: Protocol::TCP,
                source,
                target,
                ..Ipv6Header::default()
            };
            header.emit(ip);
            Sum::of_pseudo_header_v6(source, target, Protocol::TCP.0, tcp_len)
        }
        _ => {
            debug_assert!(false, "a flow has addresses of one family");
            Sum::ZERO
        }
    };
    link_header.emit(ethernet);
    sum
}

/// Makes of `piece`, which is a copy of a longer segment, the frame with the `len` bytes that begin `sent` bytes into its payload.
#[inline]
pub(super) fn cut(piece: &mut SegmentOut, segment: &SegmentOut, sent: u32, len: u32) {
    let mut flags = segment.flags;
    if sent + len < segment.len {
        flags = flags & !(Flags::FIN | Flags::PSH);
    }
    // RFC 3168 6.1.2: the window was reduced once.
    if sent > 0 {
        flags = flags & !Flags::CWR;
    }
    piece.seq = segment.seq + sent;
    piece.offset = segment.offset + sent;
    piece.len = len;
    piece.flags = flags;
}

const fn ecn_of(ecn: Ecn) -> ipv4::Ecn {
    match ecn {
        Ecn::NotCapable => ipv4::Ecn::NotCapable,
        Ecn::Capable1 => ipv4::Ecn::Capable1,
        Ecn::Capable0 => ipv4::Ecn::Capable0,
        Ecn::Congested => ipv4::Ecn::CongestionExperienced,
    }
}

fn short(len: usize) -> u16 {
    debug_assert!(len <= usize::from(u16::MAX));
    u16::try_from(len).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_wire::seq::SeqNumber;

    #[test]
    fn pieces_together_are_the_segment_and_only_the_last_ends_it() {
        let whole = SegmentOut {
            seq: SeqNumber(u32::MAX - 100),
            flags: Flags::ACK | Flags::PSH | Flags::FIN | Flags::CWR,
            offset: 7,
            len: 2500,
            mss: 1000,
            ..SegmentOut::default()
        };
        let (mut sent, mut piece) = (0, whole);
        let mut flags = alloc::vec::Vec::new();
        while sent < whole.len {
            cut(&mut piece, &whole, sent, (whole.len - sent).min(1000));
            assert_eq!(
                (piece.seq, piece.offset),
                (whole.seq + sent, whole.offset + sent)
            );
            flags.push((piece.len, piece.flags));
            sent += piece.len;
        }
        let expected = [
            (1000, Flags::ACK | Flags::CWR),
            (1000, Flags::ACK),
            (500, Flags::ACK | Flags::PSH | Flags::FIN),
        ];
        assert_eq!(flags, expected);
    }
}
