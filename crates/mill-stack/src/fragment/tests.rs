//! Datagrams in pieces: in any order, with duplicates, overlaps, gaps, and too many of them.

use super::*;
use alloc::vec;
use mill_tcp::random::Random;
use mill_wire::Malformed;
use mill_wire::ipv4::Ipv4Header;
use mill_wire::ipv6::Ipv6Header;
use mill_wire::ipv6_extension::{FragmentHeader, Refused};

mod model;

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn source(is_ipv6: bool, last: u8) -> IpAddr {
    if is_ipv6 {
        IpAddr::from([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last])
    } else {
        IpAddr::from([10, 0, 0, last])
    }
}

/// The packet `payload[start..end]` of a datagram from `source`, as the network carries it.
fn packet(
    source: IpAddr,
    ident: u16,
    protocol: u8,
    range: (usize, usize),
    payload: &[u8],
) -> Vec<u8> {
    let (start, end) = range;
    let piece = &payload[start..end];
    let offset = u16::try_from(start).unwrap();
    let more_fragments = end < payload.len();
    let len = |bytes: usize| u16::try_from(bytes).unwrap();
    let mut bytes = vec![0; 48];
    match source {
        IpAddr::V4(source) => {
            let header = Ipv4Header {
                total_len: len(20 + piece.len()),
                ident,
                more_fragments,
                fragment_offset: offset,
                protocol: Protocol(protocol),
                source,
                target: [10, 0, 0, 2].into(),
                ..Ipv4Header::default()
            };
            header.emit(&mut bytes);
            bytes.truncate(20);
        }
        IpAddr::V6(source) => {
            let header = Ipv6Header {
                payload_len: len(8 + piece.len()),
                next_header: Protocol::FRAGMENT,
                source,
                target: [0xfd00, 0, 0, 0, 0, 0, 0, 2].into(),
                ..Ipv6Header::default()
            };
            header.emit(&mut bytes);
            let fragment = FragmentHeader {
                next_header: Protocol(protocol),
                offset,
                more_fragments,
                ident: ident.into(),
            };
            fragment.emit(&mut bytes[40..]);
        }
    }
    bytes.extend(piece);
    bytes
}

fn push(reassembler: &mut Reassembler, packet: &[u8], now: Instant) -> Pushed {
    reassembler.push(&Fragment::parse(packet).unwrap(), now)
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7).to_le_bytes()[0]).collect()
}

fn whole(pushed: Pushed) -> Option<Vec<u8>> {
    match pushed {
        Pushed::Complete(datagram) => Some(datagram.payload),
        _ => None,
    }
}

#[test]
fn pieces_in_any_order_are_the_datagram() {
    let payload = bytes(100);
    let ranges = [(0, 40), (40, 64), (64, 100)];
    let orders = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    for is_ipv6 in [false, true] {
        for order in orders {
            let mut reassembler = Reassembler::new(1 << 20);
            let mut found = Vec::new();
            for at_range in order {
                let packet = packet(source(is_ipv6, 9), 5, 17, ranges[at_range], &payload);
                found.push(push(&mut reassembler, &packet, at(0)));
            }
            assert_eq!(found[..2], [Pushed::Waiting, Pushed::Waiting]);
            let Some(Pushed::Complete(datagram)) = found.pop() else {
                panic!("{order:?}");
            };
            assert_eq!(datagram.payload, payload);
            assert_eq!(datagram.protocol, Protocol::UDP);
            assert_eq!(datagram.source, source(is_ipv6, 9));
            assert_eq!(reassembler.size_bytes(), 0);
        }
    }
}

#[test]
fn duplicates_are_passed_over_and_overlaps_refuse_the_whole() {
    let payload = bytes(64);
    let changed: Vec<u8> = payload.iter().map(|byte| byte ^ 1).collect();
    for is_ipv6 in [false, true] {
        let packet = |range, payload: &[u8]| packet(source(is_ipv6, 9), 5, 17, range, payload);
        let check = |second: &[u8], expected: Pushed, is_whole: bool| {
            let mut reassembler = Reassembler::new(1 << 20);
            push(&mut reassembler, &packet((16, 32), &payload), at(0));
            assert_eq!(push(&mut reassembler, second, at(0)), expected);
            let mut last = None;
            for range in [(0, 16), (32, 64)] {
                last = whole(push(&mut reassembler, &packet(range, &payload), at(0)));
            }
            assert_eq!(last.is_some(), is_whole, "{second:?}");
        };
        check(&packet((16, 32), &payload), Pushed::Waiting, true);
        check(&packet((16, 32), &changed), Pushed::Refused, false);
        check(&packet((8, 24), &payload), Pushed::Refused, false);
        check(&packet((8, 40), &payload), Pushed::Refused, false);
        check(&packet((16, 24), &payload), Pushed::Refused, false);
        check(&packet((24, 32), &payload), Pushed::Refused, false);
        check(&packet((24, 40), &payload), Pushed::Refused, false);
        check(&packet((24, 64), &payload), Pushed::Refused, false);
        // Another end, before and behind what is there.
        check(&packet((16, 32), &payload[..32]), Pushed::Refused, false);
        check(&packet((8, 16), &payload[..16]), Pushed::Refused, false);
    }
}

#[test]
fn nothing_lies_behind_the_end() {
    let payload = bytes(64);
    let longer = bytes(96);
    let mut reassembler = Reassembler::new(1 << 20);
    let peer = source(false, 9);
    push(
        &mut reassembler,
        &packet(peer, 5, 17, (32, 64), &payload),
        at(0),
    );
    let behind = packet(peer, 5, 17, (64, 72), &longer);
    assert_eq!(push(&mut reassembler, &behind, at(0)), Pushed::Refused);
    let first = packet(peer, 5, 17, (0, 32), &payload);
    assert_eq!(push(&mut reassembler, &first, at(0)), Pushed::Refused);
}

#[test]
fn what_belongs_together_is_told_by_source_number_and_in_ipv4_protocol() {
    let payload = bytes(64);
    for is_ipv6 in [false, true] {
        let first = packet(source(is_ipv6, 9), 5, 17, (0, 32), &payload);
        for (last, ident, protocol, together) in [
            (9, 5, 17, true),
            (8, 5, 17, false),
            (9, 6, 17, false),
            (9, 5, 200, is_ipv6),
        ] {
            let mut reassembler = Reassembler::new(1 << 20);
            push(&mut reassembler, &first, at(0));
            let second = packet(source(is_ipv6, last), ident, protocol, (32, 64), &payload);
            let found = push(&mut reassembler, &second, at(0));
            assert_eq!(
                whole(found).is_some(),
                together,
                "{last} {ident} {protocol}"
            );
        }
    }
}

#[test]
fn a_datagram_that_is_not_whole_in_time_is_reported_by_its_first_fragment() {
    let payload = bytes(64);
    for (is_ipv6, lifetime_ms) in [(false, 30_000), (true, 60_000)] {
        for (range, reported) in [((0, 32), 1), ((32, 64), 0)] {
            let mut reassembler = Reassembler::new(1 << 20);
            let first = packet(source(is_ipv6, 9), 5, 17, range, &payload);
            push(&mut reassembler, &first, at(1000));
            assert_eq!(reassembler.next_expiry(), Some(at(1000 + lifetime_ms)));
            let mut reports = Vec::new();
            assert_eq!(reassembler.expire(at(999 + lifetime_ms), |_| {}), 0);
            let count = reassembler.expire(at(1000 + lifetime_ms), |report| {
                reports.push(report.to_vec());
            });
            assert_eq!((count, reports.len()), (1, reported));
            assert!(reports.iter().all(|report| *report == first));
            assert_eq!(reassembler.size_bytes(), 0);
            assert_eq!(reassembler.next_expiry(), None);
        }
    }
}

#[test]
fn refused_datagrams_lapse_without_a_report() {
    let payload = bytes(64);
    let mut reassembler = Reassembler::new(1 << 20);
    for range in [(0, 32), (24, 40)] {
        let packet = packet(source(true, 9), 5, 17, range, &payload);
        push(&mut reassembler, &packet, at(0));
    }
    let count = reassembler.expire(at(60_000), |report| panic!("{report:?}"));
    assert_eq!((count, reassembler.size_bytes()), (0, 0));
}

#[test]
fn first_fragments_hold_the_header_that_counts() {
    let payload = bytes(64);
    for is_ipv6 in [false, true] {
        for (protocol, range, tiny) in [
            (6, (0, 16), true),
            (6, (0, 24), false),
            (17, (0, 8), false),
            (1, (0, 8), false),
            (58, (0, 8), false),
            (200, (0, 8), false),
            // A second fragment inside the header of TCP: in IPv6 the first one is refused already.
            (6, (8, 64), !is_ipv6),
            (6, (16, 64), !is_ipv6),
            (6, (24, 64), false),
            (17, (8, 64), false),
        ] {
            let packet = packet(source(is_ipv6, 9), 5, protocol, range, &payload);
            let found = Fragment::parse(&packet).map(|_| ());
            let expected = if tiny { Err(Refusal::Tiny) } else { Ok(()) };
            assert_eq!(found, expected, "{protocol} {range:?} {is_ipv6}");
        }
    }
}

#[test]
fn the_first_fragment_of_ipv6_holds_the_whole_chain_of_headers() {
    // Destination options of 16 bytes, then UDP.
    let mut payload = vec![17, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    payload.extend(bytes(48));
    for (end, expected) in [
        (8, Err(Refusal::Tiny)),
        (16, Err(Refusal::Tiny)),
        (24, Ok(())),
    ] {
        let packet = packet(source(true, 9), 5, 60, (0, end), &payload);
        assert_eq!(Fragment::parse(&packet).map(|_| ()), expected, "{end}");
    }
    payload[2] = 0xc2;
    let packet = packet(source(true, 9), 5, 60, (0, 24), &payload);
    assert!(matches!(
        Fragment::parse(&packet),
        Err(Refusal::Extension(Refused::Problem { code: 2, .. }))
    ));
}

#[test]
fn lengths_and_ends_that_cannot_be_are_refused() {
    let payload = bytes(64);
    for (is_ipv6, pointer) in [(false, 2), (true, 4)] {
        let uneven = packet(source(is_ipv6, 9), 5, 17, (0, 31), &payload);
        let empty = packet(source(is_ipv6, 9), 5, 17, (32, 32), &payload);
        for packet in [uneven, empty] {
            let found = Fragment::parse(&packet).map(|_| ());
            assert_eq!(found, Err(Refusal::Length { pointer }));
        }
    }
    let long = bytes(65_536);
    for is_ipv6 in [false, true] {
        let check = |range, fits: bool| {
            let packet = packet(source(is_ipv6, 9), 5, 17, range, &long[..range.1]);
            assert_eq!(Fragment::parse(&packet).is_ok(), fits, "{range:?}");
        };
        check((65_528, 65_535), true);
        check((65_528, 65_536), false);
    }
}

#[test]
fn whole_packets_and_other_bytes_are_no_fragments() {
    let payload = bytes(32);
    for is_ipv6 in [false, true] {
        let whole = packet(source(is_ipv6, 9), 5, 17, (0, 32), &payload);
        assert_eq!(
            Fragment::parse(&whole).map(|_| ()),
            Err(Refusal::NoFragment)
        );
    }
    assert_eq!(
        Fragment::parse(&[]).map(|_| ()),
        Err(Refusal::Malformed(Malformed::Version))
    );
}

#[test]
fn memory_is_bounded_for_each_source_and_for_all() {
    let payload = bytes(2000);
    let mut reassembler = Reassembler::new(64 << 10);
    let flood = |reassembler: &mut Reassembler, last: u8, count: u16| {
        for ident in 0..count {
            let packet = packet(source(false, last), ident, 17, (0, 1480), &payload);
            let now = at(u64::from(ident));
            assert_eq!(push(reassembler, &packet, now), Pushed::Waiting);
        }
    };
    flood(&mut reassembler, 9, 500);
    assert!(
        reassembler.size_bytes() <= 16 << 10,
        "{}",
        reassembler.size_bytes()
    );
    // Another source is not touched by it, and can finish.
    let first = packet(source(false, 8), 1, 17, (0, 1480), &payload);
    push(&mut reassembler, &first, at(600));
    flood(&mut reassembler, 9, 500);
    let second = packet(source(false, 8), 1, 17, (1480, 2000), &payload);
    assert_eq!(
        whole(push(&mut reassembler, &second, at(601))),
        Some(payload.clone())
    );
    for last in 10..30 {
        flood(&mut reassembler, last, 20);
        assert!(reassembler.size_bytes() <= 64 << 10);
    }
}

#[test]
fn a_datagram_in_too_many_pieces_is_refused() {
    let payload = bytes(8 * 140);
    let mut reassembler = Reassembler::new(1 << 20);
    for piece in 0..129 {
        let range = (piece * 8, piece * 8 + 8);
        let packet = packet(source(false, 9), 5, 17, range, &payload);
        let expected = if piece < 128 {
            Pushed::Waiting
        } else {
            Pushed::Refused
        };
        assert_eq!(push(&mut reassembler, &packet, at(0)), expected, "{piece}");
    }
}

#[test]
fn a_mark_on_one_piece_marks_the_whole() {
    let check = |first: Ecn, second: Ecn, expected: Option<Ecn>| {
        let payload = bytes(64);
        let mut reassembler = Reassembler::new(1 << 20);
        let mut last = None;
        for (range, ecn) in [((0, 32), first), ((32, 64), second)] {
            let packet = packet(source(true, 9), 5, 17, range, &payload);
            let fragment = Fragment {
                ecn,
                ..Fragment::parse(&packet).unwrap()
            };
            last = Some(reassembler.push(&fragment, at(0)));
        }
        let found = match last {
            Some(Pushed::Complete(datagram)) => Some(datagram.ecn),
            _ => None,
        };
        assert_eq!(found, expected, "{first:?} {second:?}");
        assert_eq!(reassembler.size_bytes(), 0);
    };
    let (none, one, zero, marked) = (
        Ecn::NotCapable,
        Ecn::Capable1,
        Ecn::Capable0,
        Ecn::CongestionExperienced,
    );
    check(none, none, Some(none));
    check(zero, zero, Some(zero));
    check(one, one, Some(one));
    check(zero, marked, Some(marked));
    check(marked, one, Some(marked));
    check(none, marked, None);
    check(none, zero, Some(none));
    check(zero, one, Some(none));
}
