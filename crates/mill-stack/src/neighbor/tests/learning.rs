//! Which packets are learnt from, and which are answered.

use super::*;

#[test]
fn a_neighbour_that_requests_our_address_is_answered_and_learnt() {
    let mut neighbors = quiet(8);
    let request = arp(
        ArpOperation::Request,
        (PEER, v4(9)),
        (MacAddress::UNSPECIFIED, v4(2)),
    );
    assert!(neighbors.on_arp(&request, at(10_000)));
    let expected = arp(ArpOperation::Reply, (OURS, v4(2)), (PEER, v4(9)));
    assert_eq!(
        neighbors.next_outgoing(),
        Some(Outgoing::Arp {
            to: PEER,
            packet: expected
        })
    );
    assert_eq!(
        neighbors.resolve(v4(9), at(10_000)),
        Resolution::Known(PEER)
    );
}

#[test]
fn questions_and_answers_between_others_teach_nothing() {
    let mut neighbors = quiet(8);
    for operation in [ArpOperation::Request, ArpOperation::Reply] {
        neighbors.on_arp(&arp(operation, (PEER, v4(9)), (OTHER, v4(10))), at(10_000));
        // An announcement.
        neighbors.on_arp(&arp(operation, (PEER, v4(9)), (PEER, v4(9))), at(10_000));
    }
    neighbors.on_arp(&reply(PEER, v4(9)), at(10_000));
    let off_link = "192.168.0.1".parse().unwrap();
    neighbors.on_arp(
        &arp(ArpOperation::Request, (PEER, off_link), (OURS, v4(2))),
        at(10_000),
    );
    let (envelope, message) = advertisement(PEER, v6(9), true, true);
    neighbors.on_ndp(&envelope, &message, at(10_000));
    assert!(neighbors.is_empty());
}

#[test]
fn a_known_address_is_changed_by_its_owner_but_not_within_a_second() {
    let mut neighbors = quiet(8);
    neighbors.resolve(v4(9), at(10_000));
    answer(&mut neighbors, PEER, v4(9), at(10_000));
    neighbors.on_arp(&reply(OTHER, v4(9)), at(10_999));
    assert_eq!(
        neighbors.resolve(v4(9), at(10_999)),
        Resolution::Known(PEER)
    );
    neighbors.on_arp(&reply(OTHER, v4(9)), at(11_000));
    assert_eq!(
        neighbors.resolve(v4(9), at(11_000)),
        Resolution::Known(OTHER)
    );
    // It is not trusted before it has answered by itself.
    sent_to(&mut neighbors);
    neighbors.expire(at(16_000));
    assert_eq!(sent_to(&mut neighbors), [OTHER]);
}

#[test]
fn an_advertisement_without_override_casts_doubt_only() {
    let mut neighbors = quiet(8);
    neighbors.resolve(v6(9), at(10_000));
    answer(&mut neighbors, PEER, v6(9), at(10_000));
    for (solicited, replaces, expected) in [
        (false, false, PEER),
        (true, false, PEER),
        (false, true, OTHER),
        (true, true, PEER),
    ] {
        let mac = if expected == PEER && replaces {
            PEER
        } else {
            OTHER
        };
        let (envelope, message) = advertisement(mac, v6(9), solicited, replaces);
        assert!(neighbors.on_ndp(&envelope, &message, at(20_000)));
        assert_eq!(
            neighbors.resolve(v6(9), at(20_000)),
            Resolution::Known(expected),
            "{solicited} {replaces}"
        );
    }
}

#[test]
fn invalid_messages_of_neighbour_discovery_are_refused() {
    let mut neighbors = quiet(8);
    neighbors.resolve(v6(9), at(10_000));
    sent_to(&mut neighbors);
    let (envelope, valid) = advertisement(PEER, v6(9), true, true);
    let ours = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
    let question = Ndp::NeighborSolicitation {
        target: ours,
        source_mac: Some(PEER),
    };
    let anonymous = Envelope {
        source: Ipv6Addr::UNSPECIFIED,
        ..envelope
    };
    let group = Ndp::NeighborSolicitation {
        target: ndp::ALL_NODES,
        source_mac: None,
    };
    let quiet_question = Ndp::NeighborSolicitation {
        target: ours,
        source_mac: None,
    };
    let far = Envelope {
        hop_limit: 254,
        ..envelope
    };
    let to_everybody = Envelope {
        target: ndp::ALL_NODES,
        ..envelope
    };
    for (envelope, message) in [
        (far, valid),
        (far, question),
        (to_everybody, valid),
        (anonymous, question),
        (anonymous, quiet_question),
        (envelope, group),
    ] {
        assert!(
            !neighbors.on_ndp(&envelope, &message, at(10_000)),
            "{message:?}"
        );
    }
    assert_eq!(sent_to(&mut neighbors), []);
    assert_eq!(neighbors.resolve(v6(9), at(10_000)), Resolution::Asking);
    assert!(neighbors.on_ndp(&envelope, &valid, at(10_000)));
}

#[test]
fn solicitations_are_answered_to_the_sender_or_to_all_nodes() {
    let mut neighbors = quiet(8);
    let ours = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
    let (envelope, _) = advertisement(PEER, v6(9), true, true);
    let anonymous = Envelope {
        source: Ipv6Addr::UNSPECIFIED,
        target: ndp::solicited_node(ours),
        ..envelope
    };
    for (envelope, source_mac, to, solicited) in [
        (envelope, Some(PEER), PEER, true),
        (envelope, None, PEER, true),
        (
            anonymous,
            None,
            MacAddress::of_multicast_v6(ndp::ALL_NODES),
            false,
        ),
    ] {
        let question = Ndp::NeighborSolicitation {
            target: ours,
            source_mac,
        };
        assert!(neighbors.on_ndp(&envelope, &question, at(10_000)));
        let Some(Outgoing::Ndp {
            to: sent_to,
            source,
            message,
            ..
        }) = neighbors.next_outgoing()
        else {
            panic!("no answer");
        };
        assert_eq!((sent_to, source), (to, ours));
        let expected = Ndp::NeighborAdvertisement {
            router: false,
            solicited,
            replaces: true,
            target: ours,
            target_mac: Some(OURS),
        };
        assert_eq!(message, expected);
    }
}
