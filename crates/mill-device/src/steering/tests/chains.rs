//! IPv6 extension headers before TCP and UDP: which chains are passed over, and which are left to the kernel.

use super::bench::{Bench, Fate, of_udp};
use super::frames::{Frame, SYN, TCP, UDP, tcp, udp};
use super::{V4, V6};
use crate::steering::program::CHAIN_MAX;
use std::net::{IpAddr, SocketAddr};

const TARGET: &str = "[2001:db8::1]:80";

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION: u8 = 60;

/// A frame with extension headers, given by their kinds and lengths in units of eight bytes.
fn chained(frame: Frame, chain: &[(u8, u8)]) -> Vec<u8> {
    let mut bytes = frame.bytes();
    let mut named_at = frame.link_len() + 6;
    let mut at = frame.link_len() + 40;
    for (kind, units) in chain {
        let next = std::mem::replace(&mut bytes[named_at], *kind);
        let mut header = vec![next, *units - 1];
        header.resize(usize::from(*units) * 8, 0);
        let len = header.len();
        bytes.splice(at..at, header);
        named_at = at;
        at += len;
    }
    bytes
}

#[test]
fn chains_are_passed_over_up_to_their_number() {
    let Some(bench) = Bench::serving(&[TARGET]) else {
        return;
    };
    bench.table.serve(of_udp("[2001:db8::1]:53"), true);
    let cases: [(&[(u8, u8)], Fate); 12] = [
        (&[], Fate::Ours),
        (&[(HOP_BY_HOP, 1)], Fate::Ours),
        (&[(DESTINATION, 1)], Fate::Ours),
        (&[(ROUTING, 1)], Fate::Ours),
        (&[(ROUTING, 3)], Fate::Ours),
        (
            &[(DESTINATION, 2), (ROUTING, 1), (DESTINATION, 1)],
            Fate::Ours,
        ),
        (
            &[
                (HOP_BY_HOP, 1),
                (DESTINATION, 1),
                (ROUTING, 3),
                (DESTINATION, 1),
            ],
            Fate::Ours,
        ),
        (&[(DESTINATION, 1); 4], Fate::Ours),
        (&[(DESTINATION, 1); 5], Fate::Chain),
        (&[(DESTINATION, 1); 8], Fate::Chain),
        // RFC 8200, section 4.1: only at first.
        (&[(DESTINATION, 1), (HOP_BY_HOP, 1)], Fate::Chain),
        (&[(HOP_BY_HOP, 1), (HOP_BY_HOP, 1)], Fate::Chain),
    ];
    assert_eq!(CHAIN_MAX, 4);
    for (chain, expected) in cases {
        let check = |frame: Frame, expected| {
            assert_eq!(bench.fate(&chained(frame, chain)), expected, "{chain:?}");
        };
        check(tcp(V6, TARGET), expected);
        check(udp(V6, "[2001:db8::1]:53"), expected);
        let other = match expected {
            Fate::Ours => Fate::Passed,
            expected => expected,
        };
        check(tcp(V6, "[2001:db8::1]:81"), other);
        check(tcp(V6, "[2001:db8::2]:80"), other);
        check(udp(V6, TARGET), other);
    }
}

#[test]
fn headers_of_every_length_are_passed_over_and_may_end_anywhere() {
    let Some(bench) = Bench::serving(&[TARGET]) else {
        return;
    };
    for units in [1, 2, 3, 16, 17, 64, 128, 180] {
        let bytes = chained(tcp(V6, TARGET), &[(DESTINATION, units)]);
        assert_eq!(bench.fate(&bytes), Fate::Ours, "{units}");
        let needed = 14 + 40 + usize::from(units) * 8 + 4;
        assert_eq!(bench.fate(&bytes[..needed]), Fate::Ours, "{units}");
        assert_eq!(bench.fate(&bytes[..needed - 1]), Fate::Malformed, "{units}");
    }
    let bytes = chained(tcp(V6, TARGET), &[(HOP_BY_HOP, 1), (DESTINATION, 2)]);
    for len in 14..bytes.len() {
        let expected = match len {
            ..82 => Fate::Malformed,
            _ => Fate::Ours,
        };
        assert_eq!(bench.fate(&bytes[..len]), expected, "{len}");
    }
    // A length beyond the frame.
    let mut bytes = chained(tcp(V6, TARGET), &[(DESTINATION, 1)]);
    bytes[14 + 40 + 1] = 255;
    assert_eq!(bench.fate(&bytes), Fate::Malformed);
}

#[test]
fn every_order_of_kinds_has_one_fate_which_is_that_of_the_standard() {
    let Some(bench) = Bench::serving(&[TARGET]) else {
        return;
    };
    const KINDS: [u8; 6] = [HOP_BY_HOP, ROUTING, FRAGMENT, DESTINATION, TCP, 51];
    for number in 0..KINDS.len().pow(5) {
        let kinds: Vec<u8> = (0..5)
            .map(|place| KINDS[number / KINDS.len().pow(place) % KINDS.len()])
            .collect();
        // Each header is TCP's as well, with the served port.
        let mut bytes = tcp(V6, TARGET).bytes();
        bytes[14 + 6] = kinds[0];
        let headers = kinds.iter().skip(1).chain(&[TCP]);
        let headers: Vec<u8> = headers
            .flat_map(|next| [*next, 0, 0, 80, 0, 0, 0, 0])
            .collect();
        bytes.splice(54.., headers);
        let passed = kinds.iter().enumerate().take_while(|(place, kind)| {
            let is_option = matches!(**kind, ROUTING | DESTINATION);
            *place < 4 && (is_option || (*place == 0 && **kind == HOP_BY_HOP))
        });
        let expected = match kinds.get(passed.count()) {
            Some(&TCP) => Fate::Ours,
            // The served port is an offset as well: a later fragment.
            Some(&FRAGMENT) => Fate::Passed,
            _ => Fate::Chain,
        };
        // `fate` demands that exactly one counter has grown, with its verdict.
        assert_eq!(bench.fate(&bytes), expected, "{kinds:?}");
    }
}

#[test]
fn headers_that_the_program_does_not_pass_are_the_kernels_and_counted() {
    let Some(bench) = Bench::serving(&[TARGET]) else {
        return;
    };
    for kind in 0..=255 {
        let expected = match kind {
            HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION => Fate::Ours,
            50 | 51 | 135 | 139 | 140 => Fate::Chain,
            // TCP itself: the extension header is read as ports, 1536 and 0.
            _ => Fate::Passed,
        };
        let bytes = chained(tcp(V6, TARGET), &[(kind, 1)]);
        assert_eq!(bench.fate(&bytes), expected, "{kind}");
        let expected = match (kind, expected) {
            (HOP_BY_HOP, _) => Fate::Chain,
            (_, expected) => expected,
        };
        let bytes = chained(tcp(V6, TARGET), &[(DESTINATION, 1), (kind, 1)]);
        assert_eq!(bench.fate(&bytes), expected, "{kind}");
    }
}

#[test]
fn fragments_are_known_behind_other_headers() {
    let Some(bench) = Bench::serving(&[TARGET]) else {
        return;
    };
    let fragment = |chain: &[(u8, u8)], word: u16| {
        let mut bytes = chained(tcp(V6, TARGET), chain);
        let before = chain.iter().take_while(|(kind, _)| *kind != FRAGMENT);
        let len: usize = before.map(|(_, units)| usize::from(*units) * 8).sum();
        bytes[14 + 40 + len + 2..][..2].copy_from_slice(&word.to_be_bytes());
        bytes
    };
    let chains: [&[(u8, u8)]; 4] = [
        &[(FRAGMENT, 1)],
        &[(HOP_BY_HOP, 1), (FRAGMENT, 1)],
        &[
            (DESTINATION, 1),
            (ROUTING, 3),
            (DESTINATION, 1),
            (DESTINATION, 1),
            (FRAGMENT, 1),
        ],
        &[(HOP_BY_HOP, 2), (ROUTING, 3), (FRAGMENT, 1)],
    ];
    for chain in chains {
        for (word, expected) in [
            (0, Fate::Ours),
            (6, Fate::Ours),
            (1, Fate::Fragment),
            (7, Fate::Fragment),
            (8, Fate::Passed),
            (9, Fate::Passed),
        ] {
            let bytes = fragment(chain, word);
            assert_eq!(bench.fate(&bytes), expected, "{chain:?} {word}");
        }
    }
    // Headers behind it are not passed over.
    let chain = [(FRAGMENT, 1), (DESTINATION, 1)];
    assert_eq!(bench.fate(&fragment(&chain, 0)), Fate::Chain);
}

#[test]
fn a_flow_goes_to_the_same_worker_with_and_without_a_chain() {
    let Some(bench) = Bench::serving(&[TARGET]) else {
        return;
    };
    bench.table.set_workers(8);
    let hash = bench.table.flow_hash();
    let mut seen = 0;
    for port in 40000..40064 {
        let source = SocketAddr::new(IpAddr::V6("2001:db8::9".parse().unwrap()), port);
        // The first worker alone has a socket on this bench.
        let expected = match hash.worker(source, 80) {
            0 => Fate::Ours,
            _ => Fate::Unclaimed,
        };
        seen += usize::from(expected == Fate::Ours);
        let frame = tcp(&source.to_string(), TARGET);
        assert_eq!(bench.fate(&frame.bytes()), expected);
        let chain = [(HOP_BY_HOP, 1), (DESTINATION, 3)];
        assert_eq!(bench.fate(&chained(frame, &chain)), expected);
    }
    assert!(seen > 0 && seen < 64, "{seen}");
}

#[test]
fn what_holds_for_plain_segments_holds_behind_a_chain() {
    let Some(bench) = Bench::serving(&[TARGET]) else {
        return;
    };
    let chain = [(DESTINATION, 1)];
    let blocked = "2001:db8::9".parse().unwrap();
    bench.table.set_blocked(&[blocked]);
    assert_eq!(bench.fate(&chained(tcp(V6, TARGET), &chain)), Fate::Blocked);
    bench.table.set_blocked(&[]);
    // A listener that is closed: its connections go on, SYNs are the kernel's.
    bench.table.serve(super::of_tcp(TARGET), false);
    assert_eq!(bench.fate(&chained(tcp(V6, TARGET), &chain)), Fate::Ours);
    let syn = Frame {
        flags: SYN,
        ..tcp(V6, TARGET)
    };
    assert_eq!(bench.fate(&chained(syn, &chain)), Fate::Passed);
    // IPv4 knows no such headers.
    let protocols = [HOP_BY_HOP, ROUTING, FRAGMENT, DESTINATION, UDP];
    for protocol in protocols {
        let frame = tcp(V4, "192.0.2.1:80");
        bench.check(Frame { protocol, ..frame }, Fate::Passed);
    }
}
