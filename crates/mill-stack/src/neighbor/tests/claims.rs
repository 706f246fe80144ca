//! Our own addresses: announced, probed before they are used, defended.

use super::*;

/// Everything sent until `end_ms`, each at its time.
fn run(neighbors: &mut Neighbors, end_ms: u64) -> Vec<(u64, Outgoing)> {
    let mut sent = Vec::new();
    while let Some(due) = neighbors.next_expiry().filter(|due| *due <= at(end_ms)) {
        neighbors.expire(due);
        while let Some(outgoing) = neighbors.next_outgoing() {
            sent.push((due.as_millis(), outgoing));
        }
    }
    sent
}

fn is_announcement(outgoing: &Outgoing) -> bool {
    match outgoing {
        Outgoing::Arp { packet, .. } => packet.sender == packet.target,
        Outgoing::Ndp { message, .. } => matches!(
            message,
            Ndp::NeighborAdvertisement {
                solicited: false,
                replaces: true,
                ..
            }
        ),
    }
}

#[test]
fn addresses_are_announced_twice_at_the_start() {
    let mut neighbors = neighbors(false, 8);
    assert!(neighbors.is_own(v4(2)) && neighbors.is_own(v6(2)));
    let sent = run(&mut neighbors, 60_000);
    assert!(sent.iter().all(|(_, outgoing)| is_announcement(outgoing)));
    let times: Vec<u64> = sent.iter().map(|(ms, _)| *ms).collect();
    // One address of IPv4 and two of IPv6, the link-local one included.
    assert_eq!(times, [0, 0, 0, 1000, 1000, 2000]);
    assert_eq!(neighbors.next_expiry(), None);
}

#[test]
fn with_detection_addresses_are_asked_for_first_and_used_afterwards() {
    let mut neighbors = neighbors(true, 8);
    assert!(!neighbors.is_own(v4(2)) && !neighbors.is_own(v6(2)));
    let sent = run(&mut neighbors, 60_000);
    let arps: Vec<(u64, bool)> = sent
        .iter()
        .filter(|(_, outgoing)| matches!(outgoing, Outgoing::Arp { .. }))
        .map(|(ms, outgoing)| (*ms, is_announcement(outgoing)))
        .collect();
    let [(a, false), (b, false), (c, false), (d, true), (e, true)] = arps[..] else {
        panic!("{arps:?}");
    };
    assert!(a < 1000, "{a}");
    assert!((1000..2000).contains(&(b - a)) && (1000..2000).contains(&(c - b)));
    assert_eq!((d - c, e - d), (2000, 2000));
    let ndps = sent
        .iter()
        .filter(|(_, outgoing)| matches!(outgoing, Outgoing::Ndp { .. }));
    assert_eq!(ndps.count(), 2 * 3);
    assert!(neighbors.is_own(v4(2)) && neighbors.is_own(v6(2)));
    assert_eq!(neighbors.duplicates().count(), 0);
}

#[test]
fn an_address_that_another_host_has_is_not_used() {
    let probe = arp(
        ArpOperation::Request,
        (PEER, "0.0.0.0".parse().unwrap()),
        (MacAddress::UNSPECIFIED, v4(2)),
    );
    let in_use = arp(
        ArpOperation::Reply,
        (PEER, v4(2)),
        (OURS, "0.0.0.0".parse().unwrap()),
    );
    for packet in [probe, in_use] {
        let mut neighbors = neighbors(true, 8);
        neighbors.on_arp(&packet, at(500));
        run(&mut neighbors, 60_000);
        assert!(!neighbors.is_own(v4(2)));
        assert_eq!(Vec::from_iter(neighbors.duplicates()), [v4(2)]);
        assert!(neighbors.is_own(v6(2)));
    }

    let ours = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
    let claim = Ndp::NeighborSolicitation {
        target: ours,
        source_mac: None,
    };
    let claim_envelope = Envelope {
        mac: PEER,
        source: Ipv6Addr::UNSPECIFIED,
        target: ndp::solicited_node(ours),
        hop_limit: 255,
    };
    let (envelope, in_use) = advertisement(PEER, v6(2), false, true);
    for (envelope, message) in [(claim_envelope, claim), (envelope, in_use)] {
        let mut neighbors = neighbors(true, 8);
        assert!(neighbors.on_ndp(&envelope, &message, at(500)));
        run(&mut neighbors, 60_000);
        assert_eq!(Vec::from_iter(neighbors.duplicates()), [v6(2)]);
    }
}

#[test]
fn a_question_for_an_address_that_is_not_ours_yet_gets_no_answer() {
    let mut neighbors = neighbors(true, 8);
    let request = arp(ArpOperation::Request, (PEER, v4(9)), (OURS, v4(2)));
    assert!(neighbors.on_arp(&request, at(500)));
    assert_eq!(sent_to(&mut neighbors), []);
    assert!(neighbors.is_empty());
}

#[test]
fn an_address_in_use_is_defended_every_ten_seconds_at_most() {
    let mut neighbors = quiet(8);
    let conflict = arp(ArpOperation::Request, (PEER, v4(2)), (OTHER, v4(9)));
    for (ms, defended) in [(20_000, 1), (20_001, 0), (29_999, 0), (30_000, 1)] {
        neighbors.on_arp(&conflict, at(ms));
        assert_eq!(sent_to(&mut neighbors).len(), defended, "{ms}");
        assert!(neighbors.is_own(v4(2)));
    }
    let (envelope, message) = advertisement(PEER, v6(2), false, true);
    assert!(neighbors.on_ndp(&envelope, &message, at(40_000)));
    assert_eq!(sent_to(&mut neighbors).len(), 1);
    assert!(neighbors.is_own(v6(2)));
    assert!(neighbors.is_empty(), "no neighbour has our addresses");
}

#[test]
fn our_own_packets_come_back_without_effect() {
    let mut neighbors = neighbors(true, 8);
    for (_, outgoing) in run(&mut neighbors, 60_000) {
        match outgoing {
            Outgoing::Arp { packet, .. } => assert!(!neighbors.on_arp(&packet, at(1))),
            Outgoing::Ndp {
                source,
                target,
                message,
                ..
            } => {
                let envelope = Envelope {
                    mac: OURS,
                    source,
                    target,
                    hop_limit: 255,
                };
                assert!(!neighbors.on_ndp(&envelope, &message, at(1)));
            }
        }
    }
    assert_eq!(neighbors.duplicates().count(), 0);
}
