//! The states of a neighbour, and limits. Further files: which packets are learnt from, our own addresses, and random
//! events against the real state of the neighbours.

use super::receive::Envelope;
use super::*;
use alloc::string::ToString;
use core::net::{Ipv4Addr, Ipv6Addr};
use mill_wire::arp::{ArpOperation, ArpPacket};
use mill_wire::ndp::{self, Ndp};

mod claims;
mod events;
mod learning;

const OURS: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const PEER: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);
const OTHER: MacAddress = MacAddress([2, 0, 0, 0, 0, 10]);

fn v4(last: u8) -> IpAddr {
    Ipv4Addr::new(10, 77, 0, last).into()
}

fn v6(last: u16) -> IpAddr {
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last).into()
}

/// Milliseconds from the beginning.
fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn neighbors(detect_duplicates: bool, count_max: u32) -> Neighbors {
    let addresses = [(v4(2), 24), (v6(2), 64)].map(|(address, len)| Prefix { address, len });
    let limits = Limits {
        neighbors_max: count_max,
        ..Limits::default()
    };
    Neighbors::new(OURS, &addresses, detect_duplicates, &limits, 7, at(0))
}

/// One whose announcements are over.
fn quiet(count_max: u32) -> Neighbors {
    let mut neighbors = neighbors(false, count_max);
    for second in 0..6 {
        neighbors.expire(at(second * 1000));
    }
    while neighbors.next_outgoing().is_some() {}
    assert_eq!(neighbors.next_expiry(), None);
    neighbors
}

fn arp(
    operation: ArpOperation,
    sender: (MacAddress, IpAddr),
    target: (MacAddress, IpAddr),
) -> ArpPacket {
    let address = |address: IpAddr| match address {
        IpAddr::V4(address) => address,
        IpAddr::V6(address) => panic!("{address} in ARP"),
    };
    ArpPacket {
        operation,
        sender_mac: sender.0,
        sender: address(sender.1),
        target_mac: target.0,
        target: address(target.1),
    }
}

fn reply(mac: MacAddress, address: IpAddr) -> ArpPacket {
    arp(ArpOperation::Reply, (mac, address), (OURS, v4(2)))
}

fn advertisement(
    mac: MacAddress,
    address: IpAddr,
    solicited: bool,
    replaces: bool,
) -> (Envelope, Ndp) {
    let (IpAddr::V6(source), IpAddr::V6(target)) = (address, v6(2)) else {
        panic!("{address} in neighbour discovery");
    };
    let message = Ndp::NeighborAdvertisement {
        router: false,
        solicited,
        replaces,
        target: source,
        target_mac: Some(mac),
    };
    let envelope = Envelope {
        mac,
        source,
        target,
        hop_limit: 255,
    };
    (envelope, message)
}

/// The peer answers, over the protocol of its address.
fn answer(neighbors: &mut Neighbors, mac: MacAddress, address: IpAddr, now: Instant) {
    if address.is_ipv4() {
        assert!(neighbors.on_arp(&reply(mac, address), now));
    } else {
        let (envelope, message) = advertisement(mac, address, true, true);
        assert!(neighbors.on_ndp(&envelope, &message, now));
    }
}

/// The destination of each waiting frame.
fn sent_to(neighbors: &mut Neighbors) -> Vec<MacAddress> {
    let mut sent = Vec::new();
    while let Some(outgoing) = neighbors.next_outgoing() {
        let (Outgoing::Arp { to, .. } | Outgoing::Ndp { to, .. }) = outgoing;
        sent.push(to);
    }
    sent
}

/// Those that have answered, and those whose resolution was dropped.
fn resolved(neighbors: &mut Neighbors) -> (Vec<IpAddr>, Vec<IpAddr>) {
    let (mut resolved, mut failed) = (Vec::new(), Vec::new());
    neighbors.take_resolved(&mut resolved);
    neighbors.take_failed(&mut failed);
    neighbors.take_forgotten(&mut failed);
    (resolved, failed)
}

/// The destination of a broadcast or multicast request.
fn broadcast_of(address: IpAddr) -> MacAddress {
    match address {
        IpAddr::V4(_) => MacAddress::BROADCAST,
        IpAddr::V6(address) => MacAddress::of_multicast_v6(ndp::solicited_node(address)),
    }
}

#[test]
fn an_answer_makes_a_neighbour_known_and_wakes_the_flows_that_wait() {
    for peer in [v4(9), v6(9)] {
        let mut neighbors = quiet(8);
        assert_eq!(neighbors.resolve(peer, at(10_000)), Resolution::Asking);
        assert_eq!(neighbors.resolve(peer, at(10_000)), Resolution::Asking);
        assert_eq!(sent_to(&mut neighbors), [broadcast_of(peer)]);
        let epoch = neighbors.epoch();
        answer(&mut neighbors, PEER, peer, at(10_001));
        assert_ne!(neighbors.epoch(), epoch);
        assert_eq!(resolved(&mut neighbors), (alloc::vec![peer], Vec::new()));
        assert_eq!(neighbors.resolve(peer, at(10_002)), Resolution::Known(PEER));
        assert_eq!(sent_to(&mut neighbors), []);
    }
}

#[test]
fn three_questions_a_second_apart_then_failure_for_a_second() {
    for peer in [v4(9), v6(9)] {
        let mut neighbors = quiet(8);
        neighbors.resolve(peer, at(10_000));
        for (ms, sent) in [(0, 1), (999, 0), (1000, 1), (1999, 0), (2000, 1), (2999, 0)] {
            neighbors.expire(at(10_000 + ms));
            assert_eq!(sent_to(&mut neighbors).len(), sent, "{ms}");
            assert!(resolved(&mut neighbors).1.is_empty());
        }
        neighbors.expire(at(13_000));
        assert_eq!(resolved(&mut neighbors).1, [peer]);
        assert_eq!(neighbors.resolve(peer, at(13_999)), Resolution::Failed);
        assert_eq!(sent_to(&mut neighbors), []);
        assert_eq!(neighbors.resolve(peer, at(14_000)), Resolution::Asking);
        assert_eq!(sent_to(&mut neighbors).len(), 1);
    }
}

#[test]
fn an_unused_failure_is_forgotten() {
    let mut neighbors = quiet(8);
    neighbors.resolve(v4(9), at(10_000));
    for second in 11..=14 {
        neighbors.expire(at(second * 1000));
    }
    assert!(neighbors.is_empty());
    assert_eq!(neighbors.next_expiry(), None);
}

/// Makes the peer known and lets it become stale, which changes the epoch, so that cached look-ups are repeated.
/// Returns when that is.
fn stale(neighbors: &mut Neighbors, peer: IpAddr) -> Instant {
    neighbors.resolve(peer, at(10_000));
    answer(neighbors, PEER, peer, at(10_000));
    sent_to(neighbors);
    resolved(neighbors);
    let epoch = neighbors.epoch();
    let mut due = at(10_000);
    while neighbors.epoch() == epoch {
        due = neighbors.next_expiry().unwrap();
        neighbors.expire(due);
    }
    // 15 to 45 s after the answer.
    assert!(due >= at(25_000) && due < at(55_000), "{due:?}");
    assert_eq!(sent_to(neighbors), []);
    due
}

#[test]
fn a_stale_neighbour_is_used_probed_by_itself_and_then_asked_for_again() {
    for peer in [v4(9), v6(9)] {
        let mut neighbors = quiet(8);
        let stale = stale(&mut neighbors, peer);
        assert_eq!(neighbors.next_expiry(), None, "unused, it stays as it is");
        assert_eq!(neighbors.resolve(peer, stale), Resolution::Known(PEER));
        let after = |ms| stale + Duration::from_millis(ms);
        for (ms, sent) in [
            (4999, None),
            (5000, Some(PEER)),
            (6000, Some(PEER)),
            (7000, Some(PEER)),
            (7999, None),
        ] {
            neighbors.expire(after(ms));
            assert_eq!(sent_to(&mut neighbors), Vec::from_iter(sent), "{ms}");
            assert_eq!(neighbors.resolve(peer, after(ms)), Resolution::Known(PEER));
        }
        neighbors.expire(after(8000));
        assert_eq!(sent_to(&mut neighbors), [broadcast_of(peer)]);
        assert_eq!(neighbors.resolve(peer, after(8000)), Resolution::Asking);
        answer(&mut neighbors, OTHER, peer, after(8001));
        assert_eq!(
            neighbors.resolve(peer, after(8002)),
            Resolution::Known(OTHER)
        );
    }
}

#[test]
fn an_answer_to_a_probe_or_progress_above_confirms() {
    for peer in [v4(9), v6(9)] {
        for by_answer in [true, false] {
            let mut neighbors = quiet(8);
            let stale = stale(&mut neighbors, peer);
            neighbors.resolve(peer, stale);
            let probed = stale + Duration::from_secs(5);
            neighbors.expire(probed);
            assert_eq!(sent_to(&mut neighbors), [PEER]);
            let epoch = neighbors.epoch();
            if by_answer {
                answer(&mut neighbors, PEER, peer, probed);
            } else {
                neighbors.confirm(peer, probed);
            }
            assert_eq!(neighbors.epoch(), epoch, "the address is the same");
            for second in 1..15 {
                neighbors.expire(probed + Duration::from_secs(second));
            }
            assert_eq!(sent_to(&mut neighbors), []);
        }
    }
}

#[test]
fn progress_does_not_confirm_an_unknown_neighbour() {
    let mut neighbors = quiet(8);
    neighbors.confirm(v4(9), at(10_000));
    assert!(neighbors.is_empty());
    neighbors.resolve(v4(9), at(10_000));
    neighbors.confirm(v4(9), at(10_000));
    assert_eq!(neighbors.resolve(v4(9), at(10_000)), Resolution::Asking);
}

#[test]
fn groups_have_addresses_without_a_question() {
    let mut neighbors = quiet(8);
    for (address, mac) in [
        ("255.255.255.255", "ff:ff:ff:ff:ff:ff"),
        ("224.0.0.251", "01:00:5e:00:00:fb"),
        ("ff02::fb", "33:33:00:00:00:fb"),
    ] {
        let Resolution::Known(found) = neighbors.resolve(address.parse().unwrap(), at(0)) else {
            panic!("{address} was asked for");
        };
        assert_eq!(found.to_string(), mac);
    }
    assert!(neighbors.is_empty());
}

#[test]
fn there_are_no_more_neighbours_than_allowed_and_those_in_use_stay() {
    let mut neighbors = quiet(4);
    for last in [20, 21] {
        neighbors.resolve(v4(last), at(10_000));
        answer(&mut neighbors, PEER, v4(last), at(10_000));
    }
    resolved(&mut neighbors);
    for last in 100..110 {
        neighbors.resolve(v4(last), at(10_000 + u64::from(last)));
        assert!(neighbors.len() <= 4);
    }
    // The unanswered ones were dropped, and the flows that wait for them are woken.
    assert_eq!(resolved(&mut neighbors).1.len(), 8);
    // Many that announce themselves displace those, too, but none in use.
    for last in 120..140 {
        let request = arp(ArpOperation::Request, (OTHER, v4(last)), (OURS, v4(2)));
        neighbors.on_arp(&request, at(11_000));
        assert!(neighbors.len() <= 4);
    }
    for last in [20, 21] {
        let found = neighbors.resolve(v4(last), at(11_000));
        assert_eq!(found, Resolution::Known(PEER), "{last}");
    }
}

#[test]
fn queued_frames_are_bounded() {
    let mut neighbors = quiet(8);
    let request = arp(ArpOperation::Request, (PEER, v4(9)), (OURS, v4(2)));
    for _ in 0..300 {
        neighbors.on_arp(&request, at(10_000));
    }
    assert_eq!(sent_to(&mut neighbors).len(), OUTGOING_MAX);
    assert_eq!(neighbors.dropped, 44);
}

#[test]
fn frames_for_us_are_unicast_broadcast_and_those_to_our_groups() {
    let neighbors = quiet(8);
    let link_local = OURS.link_local();
    for (group, expected) in [
        (ndp::ALL_NODES, true),
        (ndp::solicited_node(link_local), true),
        ("ff02::1:ff00:2".parse().unwrap(), true),
        ("ff02::1:ff00:3".parse().unwrap(), false),
        (ndp::ALL_ROUTERS, false),
    ] {
        assert_eq!(neighbors.accepts_group(group.into()), expected, "{group}");
        let mac = MacAddress::of_multicast_v6(group);
        assert_eq!(neighbors.accepts_mac(mac), expected, "{group}");
    }
    assert!(neighbors.accepts_group("224.0.0.1".parse().unwrap()));
    assert!(!neighbors.accepts_group("224.0.0.2".parse().unwrap()));
    assert!(neighbors.accepts_mac(OURS) && neighbors.accepts_mac(MacAddress::BROADCAST));
    assert!(!neighbors.accepts_mac(PEER));
}
