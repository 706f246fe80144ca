//! Checksums against the definition, word by word.

use super::*;
use crate::random::Random;
use std::vec::Vec;

/// RFC 1071 1, as it is written: 16-bit words, the carry added at once.
fn naive(bytes: &[u8]) -> u16 {
    let mut sum = 0_u32;
    for pair in bytes.chunks(2) {
        let low = pair.get(1).copied().unwrap_or(0);
        sum += u32::from(u16::from_be_bytes([pair[0], low]));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    u16::try_from(sum).unwrap()
}

#[test]
fn the_sum_is_that_of_the_standards_example() {
    // RFC 1071 3.
    let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    assert_eq!(Sum::of(&bytes).folded(), 0xddf2);
    assert_eq!(Sum::of(&bytes).checksum(), 0x220d);
}

#[test]
fn the_wide_sum_is_the_naive_one_at_every_length_and_alignment() {
    let mut random = Random::new(1);
    let bytes: Vec<u8> = (0..2000).map(|_| random.byte()).collect();
    for start in 0..9 {
        for len in (0..200).chain([1000, 1460, 1461, 1990]) {
            let part = &bytes[start..start + len];
            assert_eq!(Sum::of(part).folded(), naive(part), "{start}+{len}");
        }
    }
    for fill in [0, 0xff] {
        let bytes = std::vec![fill; 70_000];
        for len in [0, 1, 2, 31, 32, 33, 65_535, 70_000] {
            assert_eq!(
                Sum::of(&bytes[..len]).folded(),
                naive(&bytes[..len]),
                "{fill} {len}"
            );
        }
    }
}

#[test]
fn bytes_beyond_what_the_lanes_hold_count_as_the_others_do() {
    let run_bytes = RUN_BLOCKS_MAX * BLOCK_BYTES;
    let mut bytes = std::vec![0xff; run_bytes + 40];
    for (at, byte) in bytes.iter_mut().enumerate().skip(run_bytes - 40) {
        *byte = u8::try_from(at % 256).unwrap();
    }
    for len in [run_bytes - 1, run_bytes, run_bytes + 1, run_bytes + 40] {
        assert_eq!(
            Sum::of(&bytes[..len]).folded(),
            naive(&bytes[..len]),
            "{len}"
        );
    }
    let full = &[0xff; BLOCK_BYTES][..].repeat(RUN_BLOCKS_MAX);
    assert_eq!(Sum::of(full).folded(), u16::MAX);
}

#[test]
fn the_sum_of_pieces_is_the_sum_of_the_whole() {
    let mut random = Random::new(3);
    for _ in 0..500 {
        let len = random.below(300);
        let bytes: Vec<u8> = (0..len).map(|_| random.byte()).collect();
        let cut = random.below(len + 1);
        let (front, back) = bytes.split_at(cut);
        let back = match cut % 2 {
            0 => Sum::of(back),
            _ => Sum::of(back).at_odd_offset(),
        };
        assert_eq!(Sum::of(front) + back, Sum::of(&bytes), "{cut} of {len}");
    }
}

#[test]
fn pseudo_headers_are_summed_as_their_bytes() {
    let (a, b) = (Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(255, 255, 3, 4));
    let mut bytes = Vec::new();
    bytes.extend(a.octets());
    bytes.extend(b.octets());
    bytes.extend([0, 6, 0xfe, 0xdc]);
    assert_eq!(
        Sum::of_pseudo_header(a.into(), b.into(), 6, 0xfedc),
        Sum::of(&bytes)
    );

    let a: Ipv6Addr = "fe80::1:ffff:fffe".parse().unwrap();
    let b: Ipv6Addr = "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff".parse().unwrap();
    let mut bytes = Vec::new();
    bytes.extend(a.octets());
    bytes.extend(b.octets());
    bytes.extend([0, 1, 0, 3, 0, 0, 0, 58]);
    assert_eq!(
        Sum::of_pseudo_header(a.into(), b.into(), 58, 0x1_0003),
        Sum::of(&bytes)
    );
}

#[test]
fn what_was_filled_is_verified_and_any_changed_bit_is_found() {
    let mut random = Random::new(4);
    for len in [2, 3, 20, 21, 40] {
        let mut segment: Vec<u8> = (0..len).map(|_| random.byte()).collect();
        let pseudo = Sum::of_word(0x1234);
        let offset = if len < 18 { 0 } else { 16 };
        fill(pseudo, &mut segment, offset);
        assert!(verify(pseudo, &segment));
        for bit in 0..len * 8 {
            segment[bit / 8] ^= 1 << (bit % 8);
            assert!(!verify(pseudo, &segment), "bit {bit} of {len} bytes");
            segment[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

#[test]
fn a_partial_checksum_is_recognised_and_becomes_the_whole_one() {
    let mut random = Random::new(5);
    for len in 18..60 {
        let mut segment: Vec<u8> = (0..len).map(|_| random.byte()).collect();
        let pseudo = Sum::of_pseudo_header_v4(
            Ipv4Addr::from_bits(random.long()),
            Ipv4Addr::from_bits(random.long()),
            6,
            len,
        );
        fill(pseudo, &mut segment, 16);
        let whole = segment.clone();
        assert!(!is_partial(pseudo, &segment, 16));
        fill_partial(pseudo, &mut segment, 16);
        assert!(is_partial(pseudo, &segment, 16));
        assert!(!verify(pseudo, &segment));
        complete(&mut segment, 16);
        assert_eq!(segment, whole);
    }
    assert!(!is_partial(Sum::ZERO, &[0; 17], 16), "a field cut off");
    assert!(!is_partial(Sum::ZERO, &[], 16), "no field");
}

#[test]
fn an_updated_checksum_is_the_one_computed_anew() {
    // RFC 1624 4: the case that the older equation gets wrong.
    assert_eq!(
        update(0xdd2f, Sum::of_word(0x5555), Sum::of_word(0x3285)),
        0x0000
    );
    let mut random = Random::new(6);
    for _ in 0..2000 {
        let mut bytes: Vec<u8> = (0..40).map(|_| random.byte()).collect();
        let before = Sum::of(&bytes).checksum();
        let at = random.below(18) * 2;
        let old = Sum::of(&bytes[at..at + 4]);
        let new = random.long();
        bytes[at..at + 4].copy_from_slice(&new.to_be_bytes());
        assert_eq!(
            update(before, old, Sum::of_long(new)),
            Sum::of(&bytes).checksum()
        );
    }
}
