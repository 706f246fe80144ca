//! Echoes and UDP: what arrives is answered, delivered or dropped.

use crate::packet::{datagram, icmp, message, packet};
use crate::world::{OURS, PEER, World};
use mill_stack::drop_reason::DropReason;
use mill_stack::udp::UdpOptions;
use mill_wire::ethernet::EtherType;
use mill_wire::ethernet::MacAddress;
use mill_wire::ipv4::Ecn;
use mill_wire::protocol::Protocol;
use std::net::SocketAddr;

#[test]
fn an_echo_comes_back() {
    for (family, kind, reply) in [(0, 8, 0), (1, 128, 129)] {
        let mut world = World::new();
        let protocol = [Protocol::ICMPV4, Protocol::ICMPV6][family];
        let body = icmp(PEER[family], OURS[family], &[kind, 0, 0, 0, 1, 2, 3, 4, 5]);
        let sent = world.ip(&packet(PEER[family], OURS[family], protocol, &body));
        let expected = icmp(OURS[family], PEER[family], &[reply, 0, 0, 0, 1, 2, 3, 4, 5]);
        assert_eq!(
            sent,
            [packet(OURS[family], PEER[family], protocol, &expected)]
        );
    }
}

#[test]
fn datagrams_go_to_their_socket_and_answers_come_back() {
    for family in 0..2 {
        let mut world = World::new();
        let own = SocketAddr::new(OURS[family].parse().unwrap(), 53);
        let socket = world.host.bind_udp(own, UdpOptions::default()).unwrap();
        let question = datagram(PEER[family], OURS[family], (5000, 53), b"question");
        let sent = world.ip(&packet(
            PEER[family],
            OURS[family],
            Protocol::UDP,
            &question,
        ));
        assert_eq!(sent, Vec::<Vec<u8>>::new());
        let mut readable = Vec::new();
        world.host.take_readable_udp(&mut readable);
        assert_eq!(readable, [socket]);
        let arrived = world.host.read_udp(socket).unwrap();
        assert_eq!(arrived.payload, b"question");
        let local = socket.ip();
        let written =
            world
                .host
                .write_udp(socket, local, arrived.source, Ecn::NotCapable, b"answer");
        assert_eq!(written, Ok(()));
        world.host.recycle_udp(arrived);
        let answer = datagram(OURS[family], PEER[family], (53, 5000), b"answer");
        let sent: Vec<Vec<u8>> = world
            .turn()
            .iter()
            .map(|frame| frame[14..].to_vec())
            .collect();
        assert_eq!(
            sent,
            [packet(OURS[family], PEER[family], Protocol::UDP, &answer)]
        );
        world.host.close_udp(socket);
        let sent = world.ip(&packet(
            PEER[family],
            OURS[family],
            Protocol::UDP,
            &question,
        ));
        assert_eq!(message(&sent), [(3, 3), (1, 4)][family]);
        assert_eq!(world.dropped(DropReason::NoListener), 1);
    }
}

#[test]
fn a_datagram_with_a_wrong_checksum_is_dropped_without_an_answer() {
    let mut world = World::new();
    let mut bytes = datagram(PEER[0], OURS[0], (5000, 53), b"question");
    bytes[10] ^= 1;
    let sent = world.ip(&packet(PEER[0], OURS[0], Protocol::UDP, &bytes));
    assert_eq!(sent, Vec::<Vec<u8>>::new());
    assert_eq!(world.dropped(DropReason::Checksum), 1);
}

#[test]
fn a_broadcast_is_delivered_to_sockets_and_gets_no_error() {
    let mut world = World::new();
    let all = "10.77.0.255";
    let bytes = datagram(PEER[0], all, (5000, 67), b"hello");
    let packet = packet(PEER[0], all, Protocol::UDP, &bytes);
    let sent = world.exchange_with(MacAddress::BROADCAST, EtherType::IPV4, &packet);
    assert_eq!(sent, Vec::<Vec<u8>>::new());
    let socket = world
        .host
        .bind_udp("0.0.0.0:67".parse().unwrap(), UdpOptions::default())
        .unwrap();
    world.exchange_with(MacAddress::BROADCAST, EtherType::IPV4, &packet);
    assert_eq!(world.host.read_udp(socket).unwrap().payload, b"hello");
}
