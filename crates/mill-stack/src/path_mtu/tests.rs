//! Path MTUs that are kept, for how long, and how larger ones are found.

use super::*;

const fn at(secs: u64) -> Instant {
    Instant::from_nanos(secs * 1_000_000_000)
}

#[test]
fn a_path_carries_less_for_ten_minutes() {
    let target = "10.0.0.1".parse().unwrap();
    let mut paths = PathMtus::new(1500, 1024);
    assert_eq!(paths.path_mtu(target, at(0)), 1500);
    assert_eq!(paths.on_packet_too_big(target, 1400, at(1)), Some(1400));
    assert_eq!(paths.path_mtu(target, at(600)), 1400);
    assert_eq!(paths.path_mtu(target, at(601)), 1500);
    assert_eq!(paths.path_mtu("10.0.0.2".parse().unwrap(), at(1)), 1500);
}

#[test]
fn an_icmp_message_cannot_make_a_path_larger() {
    let target = "10.0.0.1".parse().unwrap();
    let mut paths = PathMtus::new(1500, 1024);
    for (mtu, expected) in [
        (1500, None),
        (u32::MAX, None),
        (1499, Some(1499)),
        (1499, None),
        (1500, None),
        (1000, Some(1000)),
    ] {
        let found = paths.on_packet_too_big(target, mtu, at(1));
        assert_eq!(found, expected, "{mtu}");
    }
}

#[test]
fn no_path_carries_less_than_the_minimum_of_its_family() {
    let mut paths = PathMtus::new(1500, 1024);
    for (target, mtu, expected) in [
        ("10.0.0.1", 553, 553),
        ("10.0.0.1", 552, 552),
        ("10.0.0.2", 551, 552),
        ("10.0.0.3", 0, 552),
        ("fd00::1", 1281, 1281),
        ("fd00::1", 1280, 1280),
        ("fd00::2", 1279, 1500),
    ] {
        let target = target.parse().unwrap();
        paths.on_packet_too_big(target, mtu, at(1));
        assert_eq!(paths.path_mtu(target, at(1)), expected, "{target} {mtu}");
    }
    // A link that carries no more than the minimum has no smaller paths.
    let mut small = PathMtus::new(1280, 1024);
    assert_eq!(
        small.on_packet_too_big("fd00::1".parse().unwrap(), 1000, at(1)),
        None
    );
}

#[test]
fn paths_are_bounded_and_the_oldest_goes_first() {
    let mut paths = PathMtus::new(1500, 1024);
    let target = |number: u32| IpAddr::V4(core::net::Ipv4Addr::from_bits(number));
    for number in 0..1025 {
        paths.on_packet_too_big(target(number), 1000, at(u64::from(number)).min(at(500)));
    }
    assert_eq!((paths.len(), paths.forgotten()), (1024, 1));
    assert_eq!(paths.path_mtu(target(0), at(500)), 1500);
    assert_eq!(paths.path_mtu(target(1), at(500)), 1000);
}

#[test]
fn a_router_without_a_size_means_the_next_usual_one() {
    for (total_len, expected) in [
        (9000, 8166),
        (1500, 1492),
        (1492, 1280),
        (1006, 552),
        (1007, 1006),
        (0, 552),
        (u16::MAX, 32_000),
    ] {
        assert_eq!(plateau_below(total_len), expected, "{total_len}");
    }
}

/// What a path of `carries` bytes is found to carry, from a black hole on, and by how many probes.
fn search(carries: u16, link_mtu: u16) -> (u16, u32) {
    let target = "10.0.0.1".parse().unwrap();
    let mut paths = PathMtus::new(link_mtu, 1024);
    paths.on_black_hole(target, 1272, link_mtu, at(1));
    let mut probes = 0;
    while let Some(size) = paths.next_probe(target, at(1)) {
        probes += 1;
        paths.note_probe(target, at(1));
        assert_eq!(paths.next_probe(target, at(1)), None);
        paths.on_probe(target, size, size <= carries, at(1));
    }
    (paths.path_mtu(target, at(1)), probes)
}

#[test]
fn a_search_finds_what_a_silent_path_carries() {
    for (carries, link_mtu) in [
        (1272, 1500),
        (1280, 1500),
        (1400, 1500),
        (1492, 1500),
        (1499, 1500),
        (1500, 9000),
        (8999, 9000),
        (65_521, 65_521),
    ] {
        let (found, probes) = search(carries, link_mtu);
        assert!(
            found <= carries && carries - found < 8,
            "{carries}: {found}"
        );
        assert!(probes <= 14, "{carries} of {link_mtu}: {probes}");
    }
    // It was no black hole.
    assert_eq!(search(1500, 1500).1, 1);
}

#[test]
fn ten_minutes_after_a_search_larger_packets_are_tried_again() {
    let target = "10.0.0.1".parse().unwrap();
    let mut paths = PathMtus::new(1500, 1024);
    paths.on_black_hole(target, 1272, 1500, at(0));
    while let Some(size) = paths.next_probe(target, at(1)) {
        paths.on_probe(target, size, size <= 1400, at(1));
    }
    let found = paths.path_mtu(target, at(1));
    assert_eq!(paths.next_probe(target, at(600)), None);
    assert_eq!(paths.next_probe(target, at(601)), Some(1500));
    paths.on_probe(target, 1500, false, at(601));
    // The path is as it was; and then it carries all that the link does.
    assert_eq!(paths.path_mtu(target, at(601)), found);
    while let Some(size) = paths.next_probe(target, at(601)) {
        paths.on_probe(target, size, size <= 1400, at(601));
    }
    paths.on_probe(target, 1500, true, at(1201));
    assert_eq!(paths.path_mtu(target, at(1201)), 1500);
    assert!(paths.is_empty());
}

#[test]
fn what_was_found_is_remembered_for_an_hour_after_the_last_search() {
    let target = "10.0.0.1".parse().unwrap();
    let mut paths = PathMtus::new(1500, 1024);
    paths.on_black_hole(target, 1272, 1500, at(0));
    assert_eq!(paths.path_mtu(target, at(3599)), 1272);
    assert_eq!(paths.path_mtu(target, at(3600)), 1500);
    // What arrived all the same is no less than before.
    paths.on_black_hole(target, 1500, 1500, at(4000));
    assert_eq!(paths.path_mtu(target, at(4000)), 1500);
}

#[test]
fn a_message_of_a_router_ends_a_search() {
    let target = "10.0.0.1".parse().unwrap();
    let mut paths = PathMtus::new(1500, 1024);
    paths.on_black_hole(target, 1272, 1500, at(0));
    assert_eq!(paths.on_packet_too_big(target, 1300, at(0)), None);
    assert_eq!(paths.next_probe(target, at(0)), Some(1500));
    assert_eq!(paths.on_packet_too_big(target, 1000, at(0)), Some(1000));
    assert_eq!(paths.next_probe(target, at(0)), None);
    assert_eq!(paths.path_mtu(target, at(600)), 1500);
}
