//! Questions of ARP and neighbour discovery, before answers and instead of them.

use crate::packet::{icmp, message, packet};
use crate::world::{OURS, PEER, PEER_MAC, World};
use mill_stack::drop_reason::DropReason;
use mill_wire::ethernet::EtherType;
use mill_wire::ethernet::MacAddress;
use mill_wire::ndp::Ndp;
use mill_wire::protocol::Protocol;

#[test]
fn an_answer_waits_until_its_neighbour_is_known() {
    let mut world = World::new();
    let body = icmp("10.77.0.8", OURS[0], &[8, 0, 0, 0, 1, 2, 3, 4]);
    let sent = world.ip(&packet("10.77.0.8", OURS[0], Protocol::ICMPV4, &body));
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0][..8], [0, 1, 8, 0, 6, 4, 0, 1], "a question");
    assert_eq!(world.host.usage().waiting, 1);
    let mut reply = [0, 1, 8, 0, 6, 4, 0, 2].to_vec();
    reply.extend(PEER_MAC.0);
    reply.extend([10, 77, 0, 8, 2, 0, 0, 0, 0, 1, 10, 77, 0, 2]);
    let sent = world.exchange(EtherType::ARP, &reply);
    assert_eq!(message(&sent), (0, 0));
    assert!(world.host.usage().is_empty());
}

#[test]
fn a_host_that_looks_whether_our_address_is_free_learns_that_it_is_not() {
    let mut world = World::new();
    let ours = "fd00::2".parse().unwrap();
    let group = mill_wire::ndp::solicited_node(ours);
    let question = Ndp::NeighborSolicitation {
        target: ours,
        source_mac: None,
    };
    let mut bytes = [0; 24];
    question.emit(&mut bytes);
    let body = icmp("::", &group.to_string(), &bytes);
    let mut packet = packet("::", &group.to_string(), Protocol::ICMPV6, &body);
    packet[7] = 255;
    let target = MacAddress::of_multicast_v6(group);
    let sent = world.exchange_with(target, EtherType::IPV6, &packet);
    assert_eq!(message(&sent), (136, 0));
}

/// IEEE 802.1Q 9.6: number 0 is no network.
#[test]
fn a_tag_that_is_only_a_priority_is_passed_over() {
    let echo = icmp(PEER[0], OURS[0], &[8, 0, 0, 0, 1, 2, 3, 4]);
    let echo = packet(PEER[0], OURS[0], Protocol::ICMPV4, &echo);
    let mut request = [0, 1, 8, 0, 6, 4, 0, 1].to_vec();
    request.extend(PEER_MAC.0);
    request.extend([10, 77, 0, 9, 0, 0, 0, 0, 0, 0, 10, 77, 0, 2]);
    for (ether_type, payload) in [([8, 0], echo), ([8, 6], request)] {
        for (tag, expected) in [
            ([0, 0], 1),
            ([0xf0, 0], 1),
            ([0, 1], 0),
            ([1, 0], 0),
            ([0xff, 0xff], 0),
        ] {
            let mut world = World::new();
            let behind = [&tag[..], &ether_type, &payload].concat();
            let sent = world.exchange(EtherType::VLAN, &behind);
            assert_eq!(sent.len(), expected, "{tag:?} {ether_type:?}");
            assert_eq!(
                world.dropped(DropReason::UnknownProtocol),
                u64::from(expected == 0)
            );
        }
    }
    let mut world = World::new();
    assert_eq!(world.exchange(EtherType::VLAN, &[0, 0, 8]).len(), 0);
}
