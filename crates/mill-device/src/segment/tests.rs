//! Frames that are segmented, and the contents of the segments.

use super::*;
use mill_wire::checksum::Sum;
use std::net::IpAddr;

const ACK: u8 = 0x10;
const SEQUENCE: u32 = u32::MAX - 1000;

fn frame(is_ipv6: bool, flags: u8, payload: usize) -> (Vec<u8>, PartialChecksum) {
    let mut frame = vec![2; 12];
    let len = 20 + payload;
    if is_ipv6 {
        frame.extend_from_slice(&[0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend_from_slice(&u16::try_from(len).unwrap().to_be_bytes());
        frame.extend_from_slice(&[6, 64]);
        frame.extend_from_slice(&[1; 16]);
        frame.extend_from_slice(&[3; 16]);
    } else {
        frame.extend_from_slice(&[8, 0, 0x45, 0]);
        frame.extend_from_slice(&u16::try_from(20 + len).unwrap().to_be_bytes());
        frame.extend_from_slice(&[0xff, 0xff, 0x40, 0, 64, 6, 0xab, 0xcd]);
        frame.extend_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    }
    let start = u16::try_from(frame.len()).unwrap();
    frame.extend_from_slice(&[0, 80, 0x30, 0x39]);
    frame.extend_from_slice(&SEQUENCE.to_be_bytes());
    frame.extend_from_slice(&[0, 0, 0, 2, 0x50, flags, 1, 0, 0x12, 0x34, 0, 0]);
    frame.extend((0..payload).map(|at| u8::try_from(at % 251).unwrap()));
    (frame, PartialChecksum { start, offset: 16 })
}

fn pieces(is_ipv6: bool, flags: u8, payload: usize, mss: u16) -> Vec<Vec<u8>> {
    let (frame, checksum) = frame(is_ipv6, flags, payload);
    let segmentation = Segmentation {
        mss,
        header_len: checksum.start + 20,
        is_ipv6,
    };
    let mut found = Vec::new();
    cut(
        &frame,
        checksum,
        segmentation,
        &mut Vec::new(),
        |piece: &[u8]| found.push(piece.to_vec()),
    );
    found
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Checks all lengths and checksums; returns sequence number, flags and payload.
fn examine(piece: &[u8], is_ipv6: bool) -> (u32, u8, Vec<u8>) {
    let (start, source, target): (_, IpAddr, IpAddr) = if is_ipv6 {
        assert_eq!(usize::from(word(piece, 18)), piece.len() - 54);
        (54, [1; 16].into(), [3; 16].into())
    } else {
        assert_eq!(usize::from(word(piece, 16)), piece.len() - 14);
        assert_eq!(Sum::of(&piece[14..34]).checksum(), 0);
        (34, [10, 0, 0, 1].into(), [10, 0, 0, 2].into())
    };
    let tcp = &piece[start..];
    let sum = Sum::of_pseudo_header(source, target, 6, tcp.len()) + Sum::of(tcp);
    assert_eq!(sum.checksum(), 0);
    let sequence = u32::from_be_bytes(tcp[4..8].try_into().unwrap());
    (sequence, tcp[13], tcp[20..].to_vec())
}

#[test]
fn the_segments_are_the_whole() {
    for is_ipv6 in [false, true] {
        for (payload, count) in [(1, 1), (1460, 1), (1461, 2), (2920, 2), (64_000, 44)] {
            let pieces = pieces(is_ipv6, ACK | PSH | FIN | CWR, payload, 1460);
            assert_eq!(pieces.len(), count);
            let mut bytes = Vec::new();
            for (number, piece) in pieces.iter().enumerate() {
                let (sequence, flags, part) = examine(piece, is_ipv6);
                let before = u32::try_from(bytes.len()).unwrap();
                assert_eq!(sequence, SEQUENCE.wrapping_add(before));
                let mut expected = ACK;
                if number == 0 {
                    expected |= CWR;
                }
                if number + 1 == count {
                    expected |= PSH | FIN;
                }
                assert_eq!(flags, expected);
                bytes.extend(part);
            }
            let (whole, checksum) = frame(is_ipv6, ACK, payload);
            assert_eq!(bytes, whole[usize::from(checksum.start) + 20..]);
        }
    }
}

#[test]
fn identifications_go_on() {
    let pieces = pieces(false, ACK, 300, 100);
    let found: Vec<u16> = pieces.iter().map(|piece| word(piece, 18)).collect();
    assert_eq!(found, [0xffff, 0, 1]);
}

#[test]
fn invalid_frames_give_no_segments() {
    let (frame, checksum) = frame(false, ACK, 100);
    let check = |start, header_len, mss| {
        let segmentation = Segmentation {
            mss,
            header_len,
            is_ipv6: false,
        };
        let mut count = 0;
        let checksum = PartialChecksum { start, ..checksum };
        cut(&frame, checksum, segmentation, &mut Vec::new(), |_| {
            count += 1
        });
        count
    };
    assert_eq!(check(34, 54, 0), 100);
    assert_eq!(check(34, u16::MAX, 100), 0);
    assert_eq!(check(u16::MAX, 54, 100), 0);
    assert_eq!(check(3, 54, 100), 0);
}
