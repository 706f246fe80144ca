//! Frames as the peer makes and reads them: as plain as can be, and without the code that is tested but for the header
//! of TCP.

use mill_wire::tcp::TcpHeader;
use std::net::Ipv4Addr;

pub(super) const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub(super) const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const OUR_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const PEER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// The beginning of any frame from the peer to us.
pub(super) fn to_us() -> Vec<u8> {
    [OUR_MAC, PEER_MAC].concat()
}

/// A frame with IPv4 and TCP, its checksums right.
pub(super) fn frame(header: &TcpHeader, payload: &[u8]) -> Vec<u8> {
    let mut bytes = to_us();
    bytes.extend([8, 0]);
    let total = u16::try_from(20 + header.len() + payload.len()).expect("a frame is short");
    let mut ip = vec![0x45, 0];
    ip.extend(total.to_be_bytes());
    ip.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    ip.extend(PEER.octets());
    ip.extend(OURS.octets());
    let sum = !folded(&[&ip]);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut tcp = vec![0; header.len()];
    header.emit(&mut tcp);
    tcp.extend_from_slice(payload);
    let len = u16::try_from(tcp.len()).expect("a frame is short");
    let pseudo = [
        &PEER.octets()[..],
        &OURS.octets(),
        &[0, 6],
        &len.to_be_bytes(),
    ]
    .concat();
    let sum = !folded(&[&pseudo, &tcp]);
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
    [bytes, ip, tcp].concat()
}

/// The header and payload of a frame that holds a TCP segment over IPv4, whose checksum has to be right.
pub(super) fn parse(frame: &[u8]) -> Option<(TcpHeader, &[u8])> {
    let packet = frame.get(14..)?;
    if frame[12..14] != [8, 0] || packet[9] != 6 {
        return None;
    }
    let total = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
    let segment = &packet[20..total];
    let len = u16::try_from(segment.len()).expect("a frame is short");
    let pseudo = [&packet[12..20], &[0, 6], &len.to_be_bytes()].concat();
    assert_eq!(
        folded(&[&pseudo, segment]),
        0xffff,
        "a checksum that is wrong"
    );
    let (header, begin) = TcpHeader::parse(segment).expect("the stack's headers are well-formed");
    Some((header, &segment[begin..]))
}

/// The peer's answer, if the frame asks where it is on the wire (RFC 826).
pub(super) fn arp_answer(frame: &[u8]) -> Option<Vec<u8>> {
    let asks = frame.len() >= 42 && frame[12..14] == [8, 6] && frame[21] == 1;
    if !asks || frame[38..42] != PEER.octets() {
        return None;
    }
    let mut answer = to_us();
    answer.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 2]);
    answer.extend(PEER_MAC);
    answer.extend(PEER.octets());
    answer.extend(&frame[22..32]);
    Some(answer)
}

/// The ones' complement sum of RFC 1071, as slow and plain as can be.
fn folded(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u32;
    for pair in parts.concat().chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    u16::try_from(sum).expect("the sum was folded")
}
