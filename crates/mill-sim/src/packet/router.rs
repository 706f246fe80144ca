//! The router that tells of packets that are too big, or does not, or lies.

use super::layout::{ETHERNET_BYTES, ICMP, ICMPV6, Layout, put_u16};
use mill_runtime::time::Duration;

/// What the router before a wire says of packets that are longer than the wire's MTU (RFC 1191, RFC 8201).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Router {
    /// In a million packets it says nothing of so many, or the message is lost; all are a black hole's.
    pub silent_per_million: u32,
    /// Messages take so much longer than the wire's delay.
    pub late: Duration,
    pub says: Says,
    /// In a million packets that do fit it says of so many that they do not, and carries them all the same.
    pub slanders_per_million: u32,
}

/// What it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// The wire's MTU; of packets that fit, that they are too long for what they are.
    Truth,
    /// This MTU, whatever the wire's is.
    Mtu(u16),
    /// The wire's MTU, about a packet that was never sent.
    OfForeignFlow,
}

impl Router {
    /// Every packet's sender is told the truth, as soon as the wire's delay allows.
    pub const TRUTHFUL: Self = Self {
        silent_per_million: 0,
        late: Duration::ZERO,
        says: Says::Truth,
        slanders_per_million: 0,
    };

    /// No ICMP is sent.
    pub const SILENT: Self = Self {
        silent_per_million: 1_000_000,
        ..Self::TRUTHFUL
    };
}

/// One message, before it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooBig {
    pub(super) mtu: u16,
    /// It quotes a packet with another port.
    pub(super) is_foreign: bool,
    /// It arrives so much later.
    pub(super) after: Duration,
}

/// Makes the frame by which a router says that a packet does not fit: ICMP "fragmentation needed" (RFC 792, RFC 1191 4)
/// or ICMPv6 "packet too big" (RFC 4443 3.2). False for what gets no such answer: no IP, or ICMP itself.
pub(super) fn packet_too_big(frame: &[u8], message: &TooBig, into: &mut Vec<u8>) -> bool {
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
        of_ipv6(packet, message.mtu, into);
    } else {
        of_ipv4(packet, message.mtu, into);
    }
    if message.is_foreign {
        let headers = if layout.is_ipv6 { 48 } else { 28 };
        // The quoted packet begins behind these, its source port where the packet's lies.
        if let Some(port) = into.get_mut(layout.transport + headers + 1) {
            *port ^= 1;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The quoted ports of what is said about an IPv4 packet from port 0x1234 to port 80.
    fn check(message: TooBig, expected_mtu: u16, expected_ports: [u8; 4]) {
        let mut frame = vec![0; ETHERNET_BYTES + 40];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14] = 0x45;
        frame[17] = 40;
        frame[23] = super::super::layout::TCP;
        frame[34..38].copy_from_slice(&[0x12, 0x34, 0, 80]);
        let mut said = Vec::new();
        assert!(packet_too_big(&frame, &message, &mut said));
        let layout = Layout::of(&said).unwrap();
        assert!(layout.is_transport_sum_right(&said) && layout.is_ip_sum_right(&said));
        let icmp = &said[layout.transport..];
        assert_eq!(icmp[6..8], expected_mtu.to_be_bytes(), "{message:?}");
        assert_eq!(icmp[28..32], expected_ports, "{message:?}");
    }

    #[test]
    fn a_router_quotes_the_packet_it_reports_or_one_that_was_never_sent() {
        let message = |is_foreign| TooBig {
            mtu: 1280,
            is_foreign,
            after: Duration::ZERO,
        };
        check(message(false), 1280, [0x12, 0x34, 0, 80]);
        check(message(true), 1280, [0x12, 0x35, 0, 80]);
    }
}
