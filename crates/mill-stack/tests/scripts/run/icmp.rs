//! Messages of routers about segments of the stack.

use crate::flow::Flow;
use crate::packet::{
    Ends, PROTOCOL_ICMP, PROTOCOL_ICMPV6, Packet, checksum, ip_header, pseudo_header,
};
use crate::script::{ACK, Icmp, IcmpKind};

/// The message as an IP packet; it quotes as much of the segment as RFC 792 and RFC 4443 ask for.
pub(super) fn to_bytes(icmp: &Icmp, flow: &Flow, ends: &Ends) -> Vec<u8> {
    let quoted = Packet {
        source_port: flow.local_port,
        target_port: flow.peer_port,
        seq: icmp.seq.wrapping_add(flow.iss()),
        flags: ACK,
        payload: vec![0; icmp.len as usize],
        ..Packet::default()
    };
    let quoted = quoted.to_bytes(ends, false);
    let kept = if ends.is_ipv6() {
        // As much as fits without making the message larger than the least MTU.
        1280 - 48
    } else {
        20 + 8
    };
    let quoted = &quoted[..kept.min(quoted.len())];
    if ends.is_ipv6() {
        to_bytes_v6(icmp.kind, quoted, ends)
    } else {
        to_bytes_v4(icmp.kind, quoted, ends)
    }
}

fn to_bytes_v4(kind: IcmpKind, quoted: &[u8], ends: &Ends) -> Vec<u8> {
    let (kind, code, mtu) = match kind {
        IcmpKind::TooBig(mtu) => (3, 4, mtu),
        IcmpKind::NetUnreachable => (3, 0, 0),
        IcmpKind::HostUnreachable => (3, 1, 0),
        IcmpKind::PortUnreachable => (3, 3, 0),
        IcmpKind::AdminProhibited => (3, 13, 0),
        IcmpKind::TimeExceeded => (11, 0, 0),
    };
    let mut message = vec![kind, code, 0, 0];
    message.extend(mtu.to_be_bytes());
    message.extend(quoted);
    let sum = checksum(&[&message]);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut packet = ip_header(ends.peer, ends.local, PROTOCOL_ICMP, 0, message.len());
    packet.extend(message);
    packet
}

fn to_bytes_v6(kind: IcmpKind, quoted: &[u8], ends: &Ends) -> Vec<u8> {
    let larger = u32::from(Ends::V6.header_bytes() - Ends::V4.header_bytes());
    let (kind, code, mtu) = match kind {
        // Scripts give the MTU of IPv4; what is left for TCP is the same.
        IcmpKind::TooBig(mtu) => (2, 0, mtu + larger),
        IcmpKind::NetUnreachable => (1, 0, 0),
        IcmpKind::HostUnreachable => (1, 3, 0),
        IcmpKind::PortUnreachable => (1, 4, 0),
        IcmpKind::AdminProhibited => (1, 1, 0),
        IcmpKind::TimeExceeded => (3, 0, 0),
    };
    let mut message = vec![kind, code, 0, 0];
    message.extend(mtu.to_be_bytes());
    message.extend(quoted);
    let pseudo = pseudo_header(ends.peer, ends.local, PROTOCOL_ICMPV6, message.len());
    let sum = checksum(&[&pseudo, &message]);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut packet = ip_header(ends.peer, ends.local, PROTOCOL_ICMPV6, 0, message.len());
    packet.extend(message);
    packet
}
