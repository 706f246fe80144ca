//! Tags of virtual networks (IEEE 802.1Q 9): which frames are those of a stack in a network, and of one in none.

use super::bench::{Bench, Fate};
use super::frames::{Frame, tcp};
use super::{V4, V6};
use crate::vlan::Vlan;

const SERVED: [&str; 2] = ["192.0.2.1:80", "[2001:db8::1]:80"];

const CUSTOMER: u16 = 0x8100;
const PROVIDER: u16 = 0x88a8;

/// A frame with these tags: EtherType, and priority and number in one.
fn tagged(frame: Frame, tags: &[(u16, u16)]) -> Vec<u8> {
    let mut bytes = frame.bytes();
    let tags = tags.iter().flat_map(|(kind, tag)| [*kind, *tag]);
    let tags: Vec<u8> = tags.flat_map(u16::to_be_bytes).collect();
    bytes.splice(12..12, tags);
    bytes
}

fn check(vlan: Option<u16>, cases: &[(&[(u16, u16)], Fate)]) {
    let vlan = vlan.map(|id| Vlan::new(id).unwrap());
    let Some(bench) = Bench::serving_in(vlan, &SERVED) else {
        return;
    };
    for (tags, expected) in cases {
        for frame in [tcp(V4, SERVED[0]), tcp(V6, SERVED[1])] {
            let bytes = tagged(frame, tags);
            assert_eq!(bench.fate(&bytes), *expected, "{tags:x?}");
        }
        let other = tagged(tcp(V4, "192.0.2.1:81"), tags);
        assert_eq!(bench.fate(&other), Fate::Passed, "{tags:x?}");
    }
}

#[test]
fn frames_of_the_network_alone_are_the_stacks() {
    check(
        Some(10),
        &[
            (&[(CUSTOMER, 10)], Fate::Ours),
            // Whatever the priority is.
            (&[(CUSTOMER, 0xf00a)], Fate::Ours),
            (&[], Fate::Passed),
            (&[(CUSTOMER, 0)], Fate::Passed),
            (&[(CUSTOMER, 9)], Fate::Passed),
            (&[(CUSTOMER, 11)], Fate::Passed),
            (&[(CUSTOMER, 0x10a)], Fate::Passed),
            (&[(PROVIDER, 10)], Fate::Passed),
            (&[(CUSTOMER, 10), (CUSTOMER, 10)], Fate::Passed),
            (&[(PROVIDER, 10), (CUSTOMER, 10)], Fate::Passed),
        ],
    );
    check(
        Some(4094),
        &[
            (&[(CUSTOMER, 4094)], Fate::Ours),
            (&[(CUSTOMER, 4095)], Fate::Passed),
            (&[(CUSTOMER, 0xfe)], Fate::Passed),
        ],
    );
}

/// As Linux does, a tag that is only a priority is passed over.
#[test]
fn without_a_network_tags_of_priority_alone_are_passed_over() {
    check(
        None,
        &[
            (&[], Fate::Ours),
            (&[(CUSTOMER, 0)], Fate::Ours),
            (&[(CUSTOMER, 0xf000)], Fate::Ours),
            (&[(CUSTOMER, 1)], Fate::Passed),
            (&[(CUSTOMER, 0x100)], Fate::Passed),
            (&[(CUSTOMER, 4095)], Fate::Passed),
            (&[(PROVIDER, 0)], Fate::Passed),
            (&[(CUSTOMER, 0), (CUSTOMER, 0)], Fate::Passed),
        ],
    );
}

#[test]
fn tagged_headers_may_end_anywhere() {
    let Some(bench) = Bench::serving_in(Vlan::new(10), &SERVED) else {
        return;
    };
    for (frame, needed) in [
        (tcp(V4, SERVED[0]), 18 + 20 + 4),
        (tcp(V6, SERVED[1]), 18 + 40 + 4),
    ] {
        let bytes = tagged(frame, &[(CUSTOMER, 10)]);
        for len in 14..bytes.len() {
            let expected = match len < needed {
                true => Fate::Malformed,
                false => Fate::Ours,
            };
            assert_eq!(bench.fate(&bytes[..len]), expected, "{len}");
        }
    }
}

/// Multicast, fragments and blocked addresses are what they are without a tag.
#[test]
fn behind_a_tag_everything_holds_that_holds_without() {
    let Some(bench) = Bench::serving_in(Vlan::new(10), &SERVED) else {
        return;
    };
    let fate = |frame: Frame| bench.fate(&tagged(frame, &[(CUSTOMER, 10)]));
    let frame = tcp(V4, SERVED[0]);
    assert_eq!(fate(frame.fragment(0x2000)), Fate::Fragment);
    assert_eq!(fate(tcp(V6, SERVED[1]).fragment(0)), Fate::Ours);
    let to_group = Frame {
        target_mac: [0xff; 6],
        ..frame
    };
    assert_eq!(fate(to_group), Fate::Passed);
    bench.table.set_blocked(&["192.0.2.9".parse().unwrap()]);
    assert_eq!(fate(frame), Fate::Blocked);
}
