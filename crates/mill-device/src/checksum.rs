//! Completes checksums in captured frames: where a frame has not left the machine, its TCP or UDP checksum field may
//! have no more than the pseudo header's sum.

use mill_wire::checksum::Sum;
use std::net::IpAddr;

/// Writes the right checksum into the TCP or UDP header of a whole packet. Other frames stay as they are: fragments,
/// other protocols, UDP without a checksum, frames shorter than their headers say.
pub(crate) fn complete(frame: &mut [u8]) {
    let _ = try_complete(frame);
}

fn try_complete(frame: &mut [u8]) -> Option<()> {
    let packet = transport(frame)?;
    let field = match packet.protocol {
        TCP => 16,
        UDP => 6,
        _ => return None,
    };
    let segment = frame.get_mut(packet.start..packet.end)?;
    let len = segment.len();
    let place = segment.get_mut(field..)?.first_chunk_mut::<2>()?;
    if packet.protocol == UDP && *place == [0, 0] {
        // RFC 768: zero means that there is no checksum.
        return None;
    }
    *place = [0, 0];
    let (source, target) = packet.addresses;
    let pseudo = Sum::of_pseudo_header(source, target, packet.protocol, len);
    let checksum = match (pseudo + Sum::of(segment)).checksum() {
        // RFC 768: a computed zero is sent as all ones.
        0 if packet.protocol == UDP => u16::MAX,
        checksum => checksum,
    };
    *segment.get_mut(field..)?.first_chunk_mut()? = checksum.to_be_bytes();
    Some(())
}

/// The transport payload of an IP packet.
struct Transport {
    addresses: (IpAddr, IpAddr),
    protocol: u8,
    /// Its start and end in the frame, without Ethernet padding.
    start: usize,
    end: usize,
}

fn transport(frame: &[u8]) -> Option<Transport> {
    let mut at = ETHERTYPE_OFFSET;
    let mut ethertype = word(frame, at)?;
    while ethertype == VLAN {
        at += VLAN_TAG_BYTES;
        ethertype = word(frame, at)?;
    }
    match ethertype {
        IPV4 => ipv4(frame, at + 2),
        IPV6 => ipv6(frame, at + 2),
        _ => None,
    }
}

fn ipv4(frame: &[u8], at: usize) -> Option<Transport> {
    let header = frame.get(at..)?.first_chunk::<20>()?;
    let more_or_offset = u16::from_be_bytes([header[6], header[7]]) & 0x3fff;
    if header[0] >> 4 != 4 || more_or_offset != 0 {
        return None;
    }
    let address = |from: usize| {
        let bytes = header.get(from..)?.first_chunk::<4>()?;
        Some(IpAddr::from(*bytes))
    };
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    Some(Transport {
        addresses: (address(12)?, address(16)?),
        protocol: header[9],
        start: at + 4 * usize::from(header[0] & 0x0f),
        end: at + total,
    })
}

fn ipv6(frame: &[u8], at: usize) -> Option<Transport> {
    let header = frame.get(at..)?.first_chunk::<40>()?;
    if header[0] >> 4 != 6 {
        return None;
    }
    let address = |from: usize| {
        let bytes = header.get(from..)?.first_chunk::<16>()?;
        Some(IpAddr::from(*bytes))
    };
    let payload = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let mut protocol = header[6];
    let mut start = at + 40;
    while matches!(protocol, HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS) {
        let extension = frame.get(start..)?.first_chunk::<2>()?;
        protocol = extension[0];
        start += 8 + 8 * usize::from(extension[1]);
    }
    Some(Transport {
        addresses: (address(8)?, address(24)?),
        protocol,
        start,
        end: at + 40 + payload,
    })
}

fn word(frame: &[u8], at: usize) -> Option<u16> {
    let bytes = frame.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_be_bytes(*bytes))
}

/// Bytes before the EtherType, and of an 802.1Q tag before it.
const ETHERTYPE_OFFSET: usize = 12;
const VLAN_TAG_BYTES: usize = 4;

// EtherTypes and protocols (IANA).
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN: u16 = 0x8100;
const TCP: u8 = 6;
const UDP: u8 = 17;
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const DESTINATION_OPTIONS: u8 = 60;

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 frame with this protocol, transport header and payload.
    fn v4(protocol: u8, fragment: u16, transport: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend_from_slice(&[8, 0, 0x45, 0]);
        let total = u16::try_from(20 + transport.len()).unwrap();
        frame.extend_from_slice(&total.to_be_bytes());
        frame.extend_from_slice(&[0, 1]);
        frame.extend_from_slice(&fragment.to_be_bytes());
        frame.extend_from_slice(&[64, protocol, 0, 0, 10, 77, 0, 2, 10, 77, 0, 1]);
        frame.extend_from_slice(transport);
        frame
    }

    fn v6(protocol: u8, extensions: &[u8], transport: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend_from_slice(&[0x86, 0xdd, 0x60, 0, 0, 0]);
        let payload = u16::try_from(extensions.len() + transport.len()).unwrap();
        frame.extend_from_slice(&payload.to_be_bytes());
        let next = if extensions.is_empty() { protocol } else { 0 };
        frame.extend_from_slice(&[next, 64]);
        for last in [2, 1] {
            frame.extend_from_slice(&[0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        }
        frame.extend_from_slice(extensions);
        frame.extend_from_slice(transport);
        frame
    }

    /// Port 80 to port 12345, and something in the field; RFC 9293 3.1.
    fn tcp(payload: &[u8]) -> Vec<u8> {
        let mut segment = vec![0, 80, 0x30, 0x39, 0, 0, 0, 1, 0, 0, 0, 2];
        segment.extend_from_slice(&[0x50, 0x10, 0x01, 0xf6, 0xab, 0xcd, 0, 0]);
        segment.extend_from_slice(payload);
        segment
    }

    fn check(mut frame: Vec<u8>, field: usize, expected: u16) {
        complete(&mut frame);
        assert_eq!(word(&frame, field), Some(expected), "{frame:x?}");
    }

    #[test]
    fn checksums_of_whole_packets_are_made_right() {
        // Expected values were computed by another implementation of RFC 1071.
        check(v4(TCP, 0, &tcp(b"")), 50, 0x68b6);
        check(v4(TCP, 0x4000, &tcp(b"")), 50, 0x68b6);
        check(v4(TCP, 0, &tcp(b"x")), 50, 0xf0b4);
        check(v6(TCP, &[], &tcp(b"")), 70, 0x834e);
        let padding = [TCP, 0, 1, 4, 0, 0, 0, 0];
        check(v6(TCP, &padding, &tcp(b"")), 78, 0x834e);
        check(v4(UDP, 0, &[0, 1, 0, 2, 0, 8, 9, 9]), 40, 0xeb3e);
    }

    #[test]
    fn ethernet_padding_does_not_count() {
        let mut padded = v4(TCP, 0, &tcp(b""));
        padded.extend_from_slice(&[0xee; 6]);
        check(padded, 50, 0x68b6);
        let mut tagged = v4(TCP, 0, &tcp(b""));
        tagged.splice(12..12, [0x81, 0, 0, 5]);
        check(tagged, 54, 0x68b6);
    }

    #[test]
    fn everything_else_stays_as_it_is() {
        let unchanged = |frame: Vec<u8>| {
            let mut seen = frame.clone();
            complete(&mut seen);
            assert_eq!(seen, frame);
        };
        unchanged(v4(TCP, 0x2000, &tcp(b"")));
        unchanged(v4(TCP, 0x00b9, &tcp(b"")));
        unchanged(v4(1, 0, &tcp(b"")));
        unchanged(v6(44, &[], &tcp(b"")));
        unchanged(v4(UDP, 0, &[0, 1, 0, 2, 0, 8, 0, 0]));
        let whole = v4(TCP, 0, &tcp(b"abc"));
        for len in 0..whole.len() {
            unchanged(whole.get(..len).unwrap().to_vec());
        }
        let whole = v6(TCP, &[TCP, 0, 1, 4, 0, 0, 0, 0], &tcp(b""));
        for len in 0..whole.len() {
            unchanged(whole.get(..len).unwrap().to_vec());
        }
        let mut long = v4(TCP, 0, &tcp(b""));
        long[14] = 0x4f;
        unchanged(long);
    }
}
