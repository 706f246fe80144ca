//! Packets that cause an ICMP error, packets that are only dropped, and the effects of received errors.

use crate::packet::{datagram, icmp, message, packet, pseudo_header};
use crate::world::{OURS, PEER, World};
use mill_stack::drop_reason::DropReason;
use mill_stack::socket::ListenOptions;
use mill_stack::udp::UdpOptions;
use mill_wire::checksum;
use mill_wire::checksum::Sum;
use mill_wire::icmpv4::Icmpv4;
use mill_wire::icmpv6::Icmpv6;
use mill_wire::ipv4::Ecn;
use mill_wire::protocol::Protocol;
use mill_wire::tcp::{Flags, TcpHeader};
use std::net::SocketAddr;

#[test]
fn unknown_protocols_headers_and_options_are_answered() {
    let options = |kind| [17, 0, kind, 4, 0, 0, 0, 0, 0, 1, 0, 2, 0, 8, 0, 0];
    for (family, protocol, body, expected) in [
        (0, 200, &[0; 8][..], Some((3, 2))),
        (1, 200, &[0; 8], Some((4, 1))),
        (1, 59, &[], None),
        (1, 60, &options(0x5e), None),
        (1, 60, &options(0x9e), Some((4, 2))),
        (1, 60, &options(0xde), Some((4, 2))),
        (1, 43, &[17, 0, 0, 1, 0, 0, 0, 0], Some((4, 0))),
        (
            1,
            60,
            &[0, 0, 1, 4, 0, 0, 0, 0, 17, 0, 1, 4, 0, 0, 0, 0],
            Some((4, 1)),
        ),
    ] {
        let mut world = World::new();
        let packet = packet(PEER[family], OURS[family], Protocol(protocol), body);
        let sent = world.ip(&packet);
        let found = (!sent.is_empty()).then(|| message(&sent));
        assert_eq!(found, expected, "{protocol} {body:?}");
    }
}

#[test]
fn a_source_route_leads_nowhere_through_us() {
    let mut world = World::new();
    let mut bytes = packet(PEER[0], OURS[0], Protocol::UDP, &[0; 16]);
    bytes[0] = 0x47;
    bytes[20..28].copy_from_slice(&[131, 7, 4, 10, 77, 0, 3, 0]);
    checksum::fill(Sum::ZERO, &mut bytes[..28], 10);
    assert_eq!(world.ip(&bytes), Vec::<Vec<u8>>::new());
    assert_eq!(world.dropped(DropReason::NotForUs), 1);
}

#[test]
fn impossible_senders_are_dropped() {
    for (source, target, protocol) in [
        ("10.77.0.255", OURS[0], Protocol::UDP),
        ("127.0.0.1", OURS[0], Protocol::UDP),
        (OURS[0], OURS[0], Protocol::UDP),
        ("::", OURS[1], Protocol::UDP),
        ("::", OURS[1], Protocol::ICMPV6),
        ("ff02::1", OURS[1], Protocol::UDP),
    ] {
        let mut world = World::new();
        let body = match protocol {
            Protocol::UDP => datagram(source, target, (1, 2), b""),
            _ => icmp(source, target, &[128, 0, 0, 0, 1, 2, 3, 4]),
        };
        assert_eq!(
            world.ip(&packet(source, target, protocol, &body)),
            Vec::<Vec<u8>>::new()
        );
        assert_eq!(world.dropped(DropReason::BadSource), 1, "{source}");
    }
}

#[test]
fn a_smaller_path_is_kept_for_datagrams_of_open_sockets() {
    for (is_bound, expected) in [(false, 1), (true, 2)] {
        let mut world = World::new();
        let own: SocketAddr = "10.77.0.2:53".parse().unwrap();
        let peer: SocketAddr = "10.77.0.9:5000".parse().unwrap();
        if is_bound {
            world.host.bind_udp(own, UdpOptions::default()).unwrap();
        }
        let ours = datagram(OURS[0], PEER[0], (53, 5000), &[0; 1400]);
        let quoted = packet(OURS[0], PEER[0], Protocol::UDP, &ours);
        let mut bytes = vec![0; 8];
        let too_big = Icmpv4::Unreachable { code: 4, mtu: 1000 };
        too_big.emit(&mut bytes);
        bytes.extend(&quoted[..28]);
        let body = icmp(PEER[0], OURS[0], &bytes);
        world.ip(&packet(PEER[0], OURS[0], Protocol::ICMPV4, &body));
        let written = world
            .host
            .write_udp(own, own.ip(), peer, Ecn::NotCapable, &[0; 1400]);
        assert_eq!(written, Ok(()));
        assert_eq!(world.turn().len(), expected);
        // The host cannot tell whether such a datagram was ever sent: connections are not affected.
        let server = "10.77.0.9:80".parse().unwrap();
        world.host.connect(server, None, true, 5).unwrap();
        let syns = world.turn();
        let (header, _) = TcpHeader::parse(&syns[0][14 + 20..]).unwrap();
        assert_eq!(header.options.mss, Some(1460));
    }
}

#[test]
fn packets_that_must_not_cause_an_error_cause_none() {
    let mut world = World::new();
    let error = Icmpv6::Unreachable { code: 4 };
    let mut bytes = vec![0; 8];
    error.emit(&mut bytes);
    bytes.extend(packet(PEER[1], OURS[1], Protocol::UDP, &[0; 8]));
    let body = icmp(PEER[1], OURS[1], &bytes);
    let sent = world.ip(&packet(PEER[1], OURS[1], Protocol::ICMPV6, &body));
    assert_eq!(sent, Vec::<Vec<u8>>::new());
    assert_eq!(world.dropped(DropReason::NotForUs), 1);
}

#[test]
fn segments_behind_extension_headers_are_taken_or_answered_as_their_headers_say() {
    let chain = |headers: &[&[u8]]| headers.concat();
    let pad = |next| [next, 0, 1, 4, 0, 0, 0, 0];
    let routing = |kind, left| [6, 2, kind, left, 0, 0, 0, 0];
    let option = |kind| [6, 0, kind, 4, 0, 0, 0, 0];
    let rest = &[0; 16][..];
    for (first, headers, expected) in [
        (6, Vec::new(), Some(None)),
        (0, chain(&[&pad(6)]), Some(None)),
        (60, chain(&[&pad(6)]), Some(None)),
        (
            0,
            chain(&[&pad(60), &pad(43), &routing(0, 0), rest]),
            Some(None),
        ),
        // An atomic fragment (RFC 6946 4).
        (44, chain(&[&[6, 0, 0, 0, 0, 0, 0, 9]]), Some(None)),
        (60, chain(&[&option(0x1e)]), Some(None)),
        // RFC 8200 4.4, RFC 5095 3: a route that leads on, of any type.
        (43, chain(&[&routing(0, 1), rest]), Some(Some((4, 0, 42)))),
        (43, chain(&[&routing(2, 1), rest]), Some(Some((4, 0, 42)))),
        (
            60,
            chain(&[&pad(43), &routing(0, 1), rest]),
            Some(Some((4, 0, 50))),
        ),
        // RFC 8200 4.2.
        (60, chain(&[&option(0x5e)]), None),
        (60, chain(&[&option(0x9e)]), Some(Some((4, 2, 42)))),
        (60, chain(&[&option(0xde)]), Some(Some((4, 2, 42)))),
        (0, chain(&[&option(0xde)]), Some(Some((4, 2, 42)))),
        // RFC 8200 4.1.
        (60, chain(&[&pad(0), &pad(6)]), Some(Some((4, 1, 40)))),
    ] {
        let mut world = World::new();
        let (address, options) = (format!("[{}]:80", OURS[1]), ListenOptions::default());
        world
            .host
            .listen(address.parse().unwrap(), &options)
            .unwrap();
        let syn = TcpHeader {
            source: 5000,
            target: 80,
            flags: Flags::SYN,
            window: 60000,
            ..TcpHeader::default()
        };
        let mut segment = vec![0; 20];
        syn.emit(&mut segment);
        let sum = pseudo_header(PEER[1], OURS[1], Protocol::TCP, segment.len());
        checksum::fill(sum, &mut segment, 16);
        let body = [headers.as_slice(), &segment].concat();
        let sent = world.ip(&packet(PEER[1], OURS[1], Protocol(first), &body));
        let found = sent.first().map(|packet| {
            // Next header: ICMPv6 or TCP.
            (packet[6] == 58).then(|| (packet[40], packet[41], packet[47]))
        });
        assert_eq!(
            (found, sent.len()),
            (expected, expected.iter().count()),
            "{first} {headers:?}"
        );
    }
}
