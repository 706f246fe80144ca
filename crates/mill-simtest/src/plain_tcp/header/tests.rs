//! Frames by hand and back.

use super::*;

fn segment(source: &str, target: &str, payload: &[u8]) -> Segment {
    Segment {
        source: source.parse().unwrap(),
        target: target.parse().unwrap(),
        seq: 0xdead_beef,
        ack: 0x0102_0304,
        flags: ACK | PSH,
        window: 4321,
        urgent: 0,
        reserved: 0,
        ecn: 0,
        options: Vec::new(),
        payload: payload.to_vec(),
    }
}

const FROM: [u8; 6] = [2, 0, 0, 0, 0, 1];
const TO: [u8; 6] = [2, 0, 0, 0, 0, 2];

#[test]
fn what_is_written_is_read_again() {
    for (source, target) in [
        ("10.0.0.1:80", "10.0.0.2:40000"),
        ("[fd00::1]:80", "[fd00::2]:40000"),
    ] {
        for payload in [&b""[..], b"x", b"xyz", &[0xff; 1000]] {
            let written = segment(source, target, payload);
            let frame = written.write(FROM, TO);
            assert_eq!(Segment::read(&frame, false), Ok(Some(written)));
        }
    }
}

/// By hand: RFC 1071's example, and the header that many textbooks show.
#[test]
fn a_sum_is_as_rfc_1071_computes_it() {
    let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    assert_eq!(sum(&bytes, 0), 0xddf2);
    let header = [
        0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0x00,
        0x01, 0xc0, 0xa8, 0x00, 0xc7,
    ];
    assert_eq!(sum(&header, 0), 0xffff);
}

#[test]
fn each_flipped_bit_of_a_segment_is_noticed() {
    let frame = segment("10.0.0.1:80", "10.0.0.2:40000", b"odd").write(FROM, TO);
    for bit in 14 * 8..frame.len() * 8 {
        let mut wrong = frame.clone();
        wrong[bit / 8] ^= 0x80 >> (bit % 8);
        let read = Segment::read(&wrong, false);
        assert!(!matches!(read, Ok(Some(_))), "bit {bit}: {read:?}");
    }
}

#[test]
fn options_are_taken_apart() {
    let check = |options: &[u8], expected: Result<Vec<(u8, &[u8])>, Fault>| {
        let mut with = segment("10.0.0.1:80", "10.0.0.2:40000", b"");
        with.options = options.to_vec();
        assert_eq!(with.options(), expected, "{options:?}");
    };
    check(&[], Ok(vec![]));
    check(&[1, 1, 0, 9], Ok(vec![]));
    check(
        &[2, 4, 5, 0xb4, 1, 3, 3, 7],
        Ok(vec![(2, &[5, 0xb4]), (3, &[7])]),
    );
    check(&[2, 4, 5], Err(Fault::Options));
    check(&[8, 1, 5, 5], Err(Fault::Options));
    check(&[8], Err(Fault::Options));
}
