//! The router that tells of packets that are too big.

use super::layout::{ETHERNET_BYTES, ICMP, ICMPV6, Layout, put_u16};

/// Makes the frame by which a router says that a packet does not fit: ICMP "fragmentation needed" (RFC 792, RFC 1191 4)
/// or ICMPv6 "packet too big" (RFC 4443 3.2). False for what gets no such answer: no IP, or ICMP itself.
pub(super) fn packet_too_big(frame: &[u8], mtu: u16, into: &mut Vec<u8>) -> bool {
    let Some(layout) = Layout::of(frame) else {
        return false;
    };
    if matches!(layout.protocol, ICMP | ICMPV6) {
        return false;
    }
    into.clear();
    into.extend_from_slice(frame.get(6..12).unwrap_or_default());
    into.extend_from_slice(&ROUTER_ETHERNET);
    into.extend_from_slice(frame.get(12..14).unwrap_or_default());
    let packet = frame.get(ETHERNET_BYTES..layout.end).unwrap_or_default();
    if layout.is_ipv6 {
        of_ipv6(packet, mtu, into);
    } else {
        of_ipv4(packet, mtu, into);
    }
    if let Some(answer) = Layout::of(into) {
        answer.complete_ip(into);
        answer.complete(into);
    }
    true
}

fn of_ipv4(packet: &[u8], mtu: u16, into: &mut Vec<u8>) {
    // RFC 1812 4.3.2.3: as much as fits 576 bytes.
    let quoted = packet.get(..packet.len().min(576 - 28)).unwrap_or_default();
    let total = u16::try_from(28 + quoted.len()).unwrap_or(0);
    into.extend_from_slice(&[0x45, 0, 0, 0, 0, 0, 0, 0, 64, ICMP, 0, 0]);
    put_u16(into, ETHERNET_BYTES + 2, total);
    into.extend_from_slice(&ROUTER_IPV4);
    into.extend_from_slice(packet.get(12..16).unwrap_or_default());
    // Destination unreachable, fragmentation needed.
    into.extend_from_slice(&[3, 4, 0, 0, 0, 0]);
    into.extend_from_slice(&mtu.to_be_bytes());
    into.extend_from_slice(quoted);
}

fn of_ipv6(packet: &[u8], mtu: u16, into: &mut Vec<u8>) {
    // RFC 4443 2.4 (c): as much as fits the least MTU.
    let quoted = packet
        .get(..packet.len().min(1280 - 48))
        .unwrap_or_default();
    let len = u16::try_from(8 + quoted.len()).unwrap_or(0);
    into.extend_from_slice(&[0x60, 0, 0, 0, 0, 0, ICMPV6, 64]);
    put_u16(into, ETHERNET_BYTES + 4, len);
    into.extend_from_slice(&ROUTER_IPV6);
    into.extend_from_slice(packet.get(8..24).unwrap_or_default());
    into.extend_from_slice(&[2, 0, 0, 0]);
    into.extend_from_slice(&u32::from(mtu).to_be_bytes());
    into.extend_from_slice(quoted);
}

/// A locally administered address that no station has.
const ROUTER_ETHERNET: [u8; 6] = [2, 0, 0, 0xff, 0xff, 0xfe];

/// From the ranges for documentation (RFC 5737, RFC 3849).
const ROUTER_IPV4: [u8; 4] = [192, 0, 2, 254];
const ROUTER_IPV6: [u8; 16] = [
    0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xfe,
];
