//! Captures made by hand.

use super::*;

/// A capture file in one of the four forms, around packets of IP.
pub(in super::super) fn capture(link: u32, packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = 0xa1b2_3c4d_u32.to_le_bytes().to_vec();
    for short in [2_u16, 4] {
        bytes.extend(short.to_le_bytes());
    }
    for long in [0, 0, 96, link] {
        bytes.extend(long.to_le_bytes());
    }
    for (nanos, packet) in packets {
        let length = u32::try_from(packet.len()).unwrap();
        let seconds = u32::try_from(nanos / 1_000_000_000).unwrap();
        let rest = u32::try_from(nanos % 1_000_000_000).unwrap();
        for number in [seconds, rest, length, length] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(packet);
    }
    bytes
}

/// An IPv4 packet with a TCP segment from 10.0.0.`from.0` to 10.0.0.`to.0`; its payload is not captured.
pub(in super::super) fn packet(
    from: (u8, u16),
    to: (u8, u16),
    sequence: u32,
    acknowledgment: u32,
    flags: u8,
    payload: u16,
) -> Vec<u8> {
    let mut bytes = vec![0x45, 0];
    bytes.extend((40 + payload).to_be_bytes());
    bytes.extend([0, 1, 0x40, 0, 64, 6, 0, 0]);
    bytes.extend([10, 0, 0, from.0, 10, 0, 0, to.0]);
    bytes.extend(from.1.to_be_bytes());
    bytes.extend(to.1.to_be_bytes());
    bytes.extend(sequence.to_be_bytes());
    bytes.extend(acknowledgment.to_be_bytes());
    bytes.extend([0x50, flags, 0x10, 0, 0, 0, 0, 0]);
    bytes
}

fn one() -> Segment {
    Segment {
        nanos: 1_000_000_002,
        from: (IpAddr::from([10, 0, 0, 1]), 40000),
        to: (IpAddr::from([10, 0, 0, 2]), 80),
        sequence: 7,
        acknowledgment: 9,
        flags: ACK,
        window: 0x1000,
        payload: 100,
    }
}

#[test]
fn a_segment_is_read_below_every_link_layer() {
    let ip = packet((1, 40000), (2, 80), 7, 9, ACK, 100);
    let with = |head: &[u8]| [head, ip.as_slice()].concat();
    let frames = [
        (1, with(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0])),
        (
            1,
            with(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x81, 0, 0, 5, 8, 0]),
        ),
        (0, with(&[2, 0, 0, 0])),
        (101, ip.clone()),
        (113, with(&[0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0])),
        (
            276,
            with(&[8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0]),
        ),
    ];
    for (link, frame) in frames {
        let (segments, others) = parse(&capture(link, &[(1_000_000_002, frame)])).unwrap();
        assert_eq!((segments, others), (vec![one()], 0), "link {link}");
    }
}

#[test]
fn both_byte_orders_and_microseconds_are_read() {
    let ip = packet((1, 40000), (2, 80), 7, 9, ACK, 100);
    let mut bytes = 0xa1b2_c3d4_u32.to_be_bytes().to_vec();
    bytes.extend([0, 2, 0, 4]);
    for number in [0_u32, 0, 96, 101, 1, 5, 40, 140] {
        bytes.extend(number.to_be_bytes());
    }
    bytes.extend(&ip);
    let (segments, _) = parse(&bytes).unwrap();
    let expected = Segment {
        nanos: 1_000_005_000,
        ..one()
    };
    assert_eq!(segments, [expected]);
}

#[test]
fn ipv6_is_read_too() {
    let four = packet((1, 40000), (2, 80), 7, 9, ACK, 0);
    let mut six = vec![0x60, 0, 0, 0];
    six.extend(120_u16.to_be_bytes());
    six.extend([6, 64]);
    six.extend([0xfd; 16]);
    six.extend([0xfe; 16]);
    six.extend(&four[20..]);
    let (segments, _) = parse(&capture(101, &[(0, six)])).unwrap();
    assert_eq!(segments[0].payload, 100);
    assert_eq!(segments[0].from, (IpAddr::from([0xfd; 16]), 40000));
}

#[test]
fn what_is_not_tcp_is_counted_and_what_is_cut_off_is_the_end() {
    let mut udp = packet((1, 53), (2, 53), 0, 0, 0, 0);
    udp[9] = 17;
    let whole = capture(101, &[(0, udp), (1, packet((1, 1), (2, 2), 0, 0, SYN, 0))]);
    assert_eq!(
        parse(&whole).map(|(found, others)| (found.len(), others)),
        Ok((1, 1))
    );
    let cut = &whole[..whole.len() - 1];
    assert_eq!(
        parse(cut).map(|(found, others)| (found.len(), others)),
        Ok((0, 1))
    );
}

#[test]
fn bytes_that_are_no_capture_are_refused_and_none_panics() {
    assert!(parse(b"").is_err());
    assert!(parse(&[0; 24]).is_err());
    let whole = capture(
        1,
        &[(0, vec![0; 14]), (0, vec![0x45; 30]), (0, vec![0x60; 41])],
    );
    for length in 24..whole.len() {
        assert!(parse(&whole[..length]).is_ok(), "{length}");
    }
    for link in [0, 1, 101, 113, 276, 999] {
        for length in 0..60 {
            for byte in [0x00, 0x08, 0x45, 0x4f, 0x60, 0xff] {
                let bytes = capture(link, &[(0, vec![byte; length])]);
                assert!(parse(&bytes).is_ok());
            }
        }
    }
}
