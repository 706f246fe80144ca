//! Walks over chains of extension headers, and what stops them.

use super::*;
use crate::random::{Random, any_bytes, round_trip};
use std::vec::Vec;

const TCP: u8 = Protocol::TCP.0;
const OPTIONS: u8 = Protocol::DESTINATION_OPTIONS.0;
const FRAGMENT: u8 = Protocol::FRAGMENT.0;
const ROUTING: u8 = Protocol::ROUTING.0;
const HOPS: u8 = Protocol::HOP_BY_HOP.0;

fn check(first: u8, bytes: &[u8], expected: Result<(u8, usize, u32), Refused>) {
    let found = walk(Protocol(first), bytes, Start::Packet)
        .map(|upper| (upper.protocol.0, upper.offset, upper.named_at));
    assert_eq!(found, expected, "{first}: {bytes:?}");
}

const fn problem(code: u8, pointer: u32, also_multicast: bool) -> Refused {
    Refused::Problem {
        code,
        pointer,
        also_multicast,
    }
}

#[test]
fn fragment_headers_are_read_as_they_were_written() {
    let mut random = Random::new(1);
    for _ in 0..100 {
        let header = FragmentHeader {
            next_header: Protocol(random.byte()),
            offset: random.word() & !7,
            more_fragments: random.flag(),
            ident: random.long(),
        };
        round_trip(&header, 8, FragmentHeader::emit, FragmentHeader::parse);
    }
    any_bytes(2, |_, _| {}, FragmentHeader::emit, FragmentHeader::parse);
}

#[test]
fn chains_end_at_what_is_no_extension_header() {
    check(TCP, &[], Ok((TCP, 0, 6)));
    check(59, &[1, 2, 3], Ok((59, 0, 6)));
    check(200, &[], Ok((200, 0, 6)));
    check(OPTIONS, &[TCP, 0, 1, 4, 0, 0, 0, 0], Ok((TCP, 8, 40)));
    check(
        HOPS,
        &[
            OPTIONS, 0, 1, 4, 0, 0, 0, 0, TCP, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ],
        Ok((TCP, 24, 48)),
    );
}

#[test]
fn headers_that_do_not_fit_are_malformed() {
    let short = Err(Refused::Malformed(Malformed::Short));
    let length = Err(Refused::Malformed(Malformed::Length));
    for first in [HOPS, OPTIONS, ROUTING] {
        check(first, &[], short);
        check(first, &[TCP], short);
        check(first, &[TCP, 0, 0, 0, 0, 0, 0], length);
        check(first, &[TCP, 1, 0, 0, 0, 0, 0, 0], length);
    }
    check(FRAGMENT, &[TCP, 0, 0, 0, 0, 0, 0], short);
}

#[test]
fn options_fill_their_header_exactly() {
    let malformed = Err(Refused::Malformed(Malformed::Option));
    check(OPTIONS, &[TCP, 0, 1, 4, 0, 0, 0, 0], Ok((TCP, 8, 40)));
    check(OPTIONS, &[TCP, 0, 1, 5, 0, 0, 0, 0], malformed);
    check(OPTIONS, &[TCP, 0, 0, 0, 0, 0, 0, 0], Ok((TCP, 8, 40)));
    check(OPTIONS, &[TCP, 0, 0, 0, 0, 0, 0, 1], malformed);
    check(OPTIONS, &[TCP, 0, 5, 2, 0, 0, 1, 0], Ok((TCP, 8, 40)));
}

#[test]
fn unknown_options_are_met_as_their_highest_bits_say() {
    let options = |kind| [TCP, 0, 1, 0, kind, 2, 0, 0];
    for first in [HOPS, OPTIONS] {
        check(first, &options(0x1e), Ok((TCP, 8, 40)));
        check(first, &options(0x5e), Err(Refused::Option));
        check(first, &options(0x9e), Err(problem(2, 44, true)));
        check(first, &options(0xde), Err(problem(2, 44, false)));
    }
}

#[test]
fn hop_by_hop_options_stand_first_or_are_refused() {
    let bytes = [HOPS, 0, 1, 4, 0, 0, 0, 0, TCP, 0, 1, 4, 0, 0, 0, 0];
    check(OPTIONS, &bytes, Err(problem(1, 40, false)));
    check(HOPS, &bytes, Err(problem(1, 40, false)));
    assert_eq!(
        walk(Protocol::HOP_BY_HOP, &bytes, Start::Datagram),
        Err(problem(1, 6, false))
    );
}

#[test]
fn routing_that_goes_on_is_refused_at_its_type_whichever_it_is() {
    for kind in [0, 2, 4, 253] {
        let mut bytes = [TCP, 2, kind, 1, 0, 0, 0, 0].to_vec();
        bytes.resize(24, 0);
        check(ROUTING, &bytes, Err(problem(0, 42, false)));
        bytes[3] = 0;
        check(ROUTING, &bytes, Ok((TCP, 24, 40)));
    }
}

#[test]
fn a_walk_ends_at_a_fragment_and_passes_an_atomic_one() {
    let bytes = [OPTIONS, 0, 0, 1, 0, 0, 0, 9, TCP, 0, 1, 4, 0, 0, 0, 0];
    let upper = walk(Protocol::FRAGMENT, &bytes, Start::Packet).unwrap();
    let header = FragmentHeader {
        next_header: Protocol::DESTINATION_OPTIONS,
        offset: 0,
        more_fragments: true,
        ident: 9,
    };
    assert_eq!((upper.fragment, upper.offset), (Some(header), 8));
    assert_eq!(upper.protocol, Protocol::DESTINATION_OPTIONS);

    let mut atomic = bytes;
    atomic[3] = 0;
    check(FRAGMENT, &atomic, Ok((TCP, 16, 48)));
    let last = [TCP, 0, 0, 8, 0, 0, 0, 9];
    let upper = walk(Protocol::FRAGMENT, &last, Start::Packet).unwrap();
    assert_eq!(upper.fragment.map(|header| header.offset), Some(8));
}

#[test]
fn there_is_one_fragment_header_at_most() {
    let twice = [FRAGMENT, 0, 0, 0, 0, 0, 0, 9, TCP, 0, 0, 0, 0, 0, 0, 9];
    let refused = Err(Refused::Malformed(Malformed::Version));
    check(FRAGMENT, &twice, refused);
    let again = walk(Protocol::FRAGMENT, &twice[8..], Start::Datagram);
    assert_eq!(again.map(|_| (0, 0, 0)), refused);
}

#[test]
fn more_headers_or_options_than_are_needed_are_refused() {
    let chain = |count: usize| {
        let mut bytes: Vec<u8> = [OPTIONS, 0, 1, 4, 0, 0, 0, 0].repeat(count);
        bytes[(count - 1) * 8] = TCP;
        bytes
    };
    check(OPTIONS, &chain(6), Ok((TCP, 48, 80)));
    check(OPTIONS, &chain(7), Err(Refused::TooMany));

    let options = |count: usize| {
        let mut bytes = [TCP, 2].to_vec();
        bytes.extend([0x1e, 0].repeat(count));
        bytes.resize(24, 0);
        bytes
    };
    check(OPTIONS, &options(8), Ok((TCP, 24, 40)));
    check(OPTIONS, &options(9), Err(Refused::TooMany));
}

#[test]
fn no_bytes_panic_and_no_walk_leaves_them() {
    let mut random = Random::new(5);
    for _ in 0..5000 {
        let kinds = [HOPS, OPTIONS, ROUTING, FRAGMENT, TCP];
        let mut bytes: Vec<u8> = (0..random.below(100)).map(|_| random.byte()).collect();
        for header in bytes.chunks_mut(8) {
            header[0] = kinds[random.below(5)];
            if let Some(len) = header.get_mut(1) {
                *len &= 1;
            }
        }
        let first = Protocol(kinds[random.below(5)]);
        let start = [Start::Packet, Start::Datagram][random.below(2)];
        if let Ok(upper) = walk(first, &bytes, start) {
            assert!(upper.offset <= bytes.len());
            assert!(upper.offset.is_multiple_of(8));
        }
    }
}
