//! Capture files as tcpdump(8) writes them: the classic pcap format, and the TCP segments in it.
//!
//! draft-ietf-opsawg-pcap-04; both byte orders, micro- and nanoseconds.

use std::net::IpAddr;

/// One TCP segment as it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// Since the epoch.
    pub nanos: u64,
    pub from: (IpAddr, u16),
    pub to: (IpAddr, u16),
    pub sequence: u32,
    pub acknowledgment: u32,
    pub flags: u8,
    pub window: u16,
    /// Bytes of payload on the wire, captured or not.
    pub payload: u32,
}

pub(super) const FIN: u8 = 0x01;
pub(super) const SYN: u8 = 0x02;
pub(super) const RST: u8 = 0x04;
pub(super) const ACK: u8 = 0x10;

/// The segments of a capture, and how many packets were something else.
pub(super) fn parse(bytes: &[u8]) -> Result<(Vec<Segment>, usize), String> {
    let header: &[u8; HEADER] = bytes
        .first_chunk()
        .ok_or_else(|| String::from("the capture has no header"))?;
    let magic = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
    let (swapped, nanos_a_unit) = match magic {
        0xa1b2_c3d4 => (false, 1000),
        0xa1b2_3c4d => (false, 1),
        0xd4c3_b2a1 => (true, 1000),
        0x4d3c_b2a1 => (true, 1),
        _ => return Err(String::from("the capture is not in the pcap format")),
    };
    let number = |bytes: &[u8]| {
        let bytes: [u8; 4] = bytes.try_into().unwrap_or_default();
        if swapped {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        }
    };
    // The upper bits tell of a frame check sequence.
    let link = number(&header[20..24]) & 0x0fff_ffff;
    let mut segments = Vec::new();
    let mut others = 0;
    let mut rest = &bytes[HEADER..];
    while let Some((head, after)) = rest.split_at_checked(RECORD) {
        let captured = usize::try_from(number(&head[8..12])).unwrap_or(usize::MAX);
        // A capture that was cut off in the middle of a packet ends before it.
        let Some((packet, after)) = after.split_at_checked(captured) else {
            break;
        };
        let nanos = u64::from(number(&head[0..4])) * 1_000_000_000
            + u64::from(number(&head[4..8])) * nanos_a_unit;
        match network(link, packet).and_then(|packet| segment(packet, nanos)) {
            Some(segment) => segments.push(segment),
            None => others += 1,
        }
        rest = after;
    }
    Ok((segments, others))
}

/// Of the file, and of each packet.
const HEADER: usize = 24;
const RECORD: usize = 16;

/// The IP packet in a frame; none if it holds something else.
fn network(link: u32, frame: &[u8]) -> Option<&[u8]> {
    match link {
        // LINKTYPE_ETHERNET, with one VLAN tag or none.
        1 => match frame.get(12..14)? {
            [0x81, 0x00] | [0x88, 0xa8] => ip_type(frame.get(16..18)?).then(|| &frame[18..]),
            kind => ip_type(kind).then(|| &frame[14..]),
        },
        // LINKTYPE_NULL: an address family of four bytes.
        0 => frame.get(4..),
        // LINKTYPE_RAW.
        101 => Some(frame),
        // LINKTYPE_LINUX_SLL and SLL2, what tcpdump -i any writes.
        113 => ip_type(frame.get(14..16)?).then(|| &frame[16..]),
        276 => ip_type(frame.get(0..2)?).then(|| frame.get(20..)).flatten(),
        _ => None,
    }
}

fn ip_type(kind: &[u8]) -> bool {
    matches!(kind, [0x08, 0x00] | [0x86, 0xdd])
}

fn segment(packet: &[u8], nanos: u64) -> Option<Segment> {
    let short = |at: usize| Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]));
    let (from, to, tcp, length) = match packet.first()? >> 4 {
        4 => {
            let header = usize::from(packet[0] & 0x0f) * 4;
            let fragment = short(6)? & 0x1fff;
            if *packet.get(9)? != TCP || fragment != 0 {
                return None;
            }
            let from: [u8; 4] = *packet.get(12..16)?.first_chunk()?;
            let to: [u8; 4] = *packet.get(16..20)?.first_chunk()?;
            // Offloaded segments longer than 64 KiB have a length of zero.
            let total = usize::from(short(2)?);
            let length = if total == 0 {
                None
            } else {
                Some(total.checked_sub(header)?)
            };
            (IpAddr::from(from), IpAddr::from(to), header, length)
        }
        6 => {
            if *packet.get(6)? != TCP {
                return None;
            }
            let from: [u8; 16] = *packet.get(8..24)?.first_chunk()?;
            let to: [u8; 16] = *packet.get(24..40)?.first_chunk()?;
            let length = usize::from(short(4)?);
            let length = if length == 0 { None } else { Some(length) };
            (IpAddr::from(from), IpAddr::from(to), 40, length)
        }
        _ => return None,
    };
    let long = |at: usize| {
        let bytes: [u8; 4] = *packet.get(at..at + 4)?.first_chunk()?;
        Some(u32::from_be_bytes(bytes))
    };
    let header = usize::from(packet.get(tcp + 12)? >> 4) * 4;
    let length = length.unwrap_or(header);
    Some(Segment {
        nanos,
        from: (from, short(tcp)?),
        to: (to, short(tcp + 2)?),
        sequence: long(tcp + 4)?,
        acknowledgment: long(tcp + 8)?,
        flags: *packet.get(tcp + 13)?,
        window: short(tcp + 14)?,
        payload: u32::try_from(length.checked_sub(header)?).ok()?,
    })
}

/// The number of TCP in IP headers.
const TCP: u8 = 6;

#[cfg(test)]
pub(super) mod tests;
