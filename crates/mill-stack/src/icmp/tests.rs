//! Echo replies, errors about bad packets and when none is sent, and errors that arrive.

use super::*;
use crate::config::Prefix;
use crate::outbox::Offered;
use alloc::vec::Vec;
use mill_wire::ethernet::MacAddress;
use mill_wire::ipv4::Ipv4Header;
use mill_wire::ipv6::Ipv6Header;
use mill_wire::seq::SeqNumber;

const OURS: [&str; 2] = ["10.77.0.2", "fd00::2"];
const PEER: [&str; 2] = ["10.77.0.9", "fd00::9"];

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn routes() -> Routes {
    let addresses = [(OURS[0], 24), (OURS[1], 64)].map(|(text, len)| Prefix {
        address: address(text),
        len,
    });
    Routes::new(MacAddress([2, 0, 0, 0, 0, 1]), &addresses, &[])
}

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// An IP packet with `body`.
fn packet(source: &str, target: &str, protocol: Protocol, body: &[u8]) -> Vec<u8> {
    let mut bytes = [0; 40].to_vec();
    let len = match (address(source), address(target)) {
        (IpAddr::V4(source), IpAddr::V4(target)) => Ipv4Header {
            total_len: u16::try_from(20 + body.len()).unwrap(),
            protocol,
            source,
            target,
            ..Ipv4Header::default()
        }
        .emit(&mut bytes),
        (IpAddr::V6(source), IpAddr::V6(target)) => Ipv6Header {
            payload_len: u16::try_from(body.len()).unwrap(),
            next_header: protocol,
            source,
            target,
            ..Ipv6Header::default()
        }
        .emit(&mut bytes),
        other => panic!("{other:?}"),
    };
    bytes.truncate(len);
    bytes.extend(body);
    bytes
}

/// A message with its checksum.
fn message(source: &str, target: &str, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let message = Message {
        source: address(source),
        target: address(target),
        bytes: &bytes,
    };
    let pseudo_header = pseudo_header(&message);
    checksum::fill(pseudo_header, &mut bytes, 2);
    bytes
}

fn receive(
    icmp: &mut Icmp,
    outbox: &mut Outbox,
    source: &str,
    target: &str,
    bytes: &[u8],
) -> Received {
    let message = Message {
        source: address(source),
        target: address(target),
        bytes,
    };
    icmp.on_message(&message, &routes(), 1500, outbox, at(0))
}

fn sent(outbox: &mut Outbox) -> Vec<Vec<u8>> {
    let mut sent = Vec::new();
    outbox.transmit(|_, bytes| {
        sent.push(bytes.to_vec());
        Offered::Sent
    });
    sent
}

#[test]
fn broadcast_and_group_echo_requests_are_answered_in_ipv6_only() {
    let check = |source: &str, target: &str, kind: u8, expected: Received| {
        let (mut icmp, mut outbox) = (Icmp::new(1000, 1), Outbox::new(1));
        let request = message(source, target, &[kind, 0, 0, 0, 1, 2, 3, 4]);
        let found = receive(&mut icmp, &mut outbox, source, target, &request);
        assert_eq!(found, expected, "{target}");
        sent(&mut outbox).pop()
    };
    let dropped = Received::Dropped(DropReason::UnknownProtocol);
    for target in ["10.77.0.255", "255.255.255.255", "224.0.0.1"] {
        check(PEER[0], target, 8, dropped);
    }
    let reply = check("fe80::9", "ff02::1", 128, Received::Answered).unwrap();
    let (header, _) = Ipv6Header::parse(&reply).unwrap();
    assert_eq!(header.source, MacAddress([2, 0, 0, 0, 0, 1]).link_local());
}

#[test]
fn echo_replies_are_limited_and_wrong_checksums_dropped() {
    let (mut icmp, mut outbox) = (Icmp::new(100, 1), Outbox::new(1));
    let mut request = message(PEER[0], OURS[0], &[8, 0, 0, 0, 1, 2, 3, 4]);
    let mut answered = 0;
    for _ in 0..50 {
        match receive(&mut icmp, &mut outbox, PEER[0], OURS[0], &request) {
            Received::Answered => answered += 1,
            other => assert_eq!(other, Received::Dropped(DropReason::RateLimit)),
        }
    }
    assert!((5..=10).contains(&answered), "{answered}");
    request[7] ^= 1;
    let found = receive(&mut icmp, &mut outbox, PEER[0], OURS[0], &request);
    assert_eq!(found, Received::Dropped(DropReason::Checksum));
}

#[test]
fn a_long_echo_goes_back_in_fragments() {
    let (mut icmp, mut outbox) = (Icmp::new(1000, 1), Outbox::new(1));
    let mut bytes = [8, 0, 0, 0, 1, 2, 3, 4].to_vec();
    bytes.resize(4000, 7);
    let request = message(PEER[0], OURS[0], &bytes);
    let found = receive(&mut icmp, &mut outbox, PEER[0], OURS[0], &request);
    assert_eq!(found, Received::Answered);
    assert_eq!(sent(&mut outbox).len(), 3);
}

#[test]
fn messages_of_neighbour_discovery_are_handed_on() {
    let (mut icmp, mut outbox) = (Icmp::new(1000, 1), Outbox::new(1));
    let mut bytes = [135, 0, 0, 0, 0, 0, 0, 0].to_vec();
    bytes.extend([0xfd; 16]);
    let solicitation = message(PEER[1], OURS[1], &bytes);
    let found = receive(&mut icmp, &mut outbox, PEER[1], OURS[1], &solicitation);
    assert!(matches!(
        found,
        Received::Ndp(Ndp::NeighborSolicitation { .. })
    ));
    let short = message(PEER[1], OURS[1], &bytes[..20]);
    let found = receive(&mut icmp, &mut outbox, PEER[1], OURS[1], &short);
    assert_eq!(found, Received::Dropped(DropReason::Malformed));
}

/// The error `head` about a segment of ours that had `total` bytes.
fn error(family: usize, head: [u8; 8], local: &str) -> Received {
    let (mut icmp, mut outbox) = (Icmp::new(1000, 1), Outbox::new(1));
    let segment = [0x12, 0x34, 0, 80, 1, 2, 3, 4];
    let remote = ["192.0.2.7", "2001:db8::7"][family];
    let mut quoted = packet(local, remote, Protocol::TCP, &segment);
    if family == 0 {
        quoted[2..4].copy_from_slice(&1500_u16.to_be_bytes());
    }
    let mut bytes = head.to_vec();
    bytes.extend(quoted);
    let bytes = message(PEER[family], OURS[family], &bytes);
    receive(&mut icmp, &mut outbox, PEER[family], OURS[family], &bytes)
}

#[test]
fn errors_say_what_became_of_a_segment_of_ours() {
    let too_big = |mtu| FlowErrorKind::PacketTooBig { mtu };
    let unreachable = |hard| FlowErrorKind::Unreachable { hard };
    for (family, head, kind) in [
        (0, [3, 4, 0, 0, 0, 0, 5, 0x78], too_big(1400)),
        (0, [3, 4, 0, 0, 0, 0, 0, 0], too_big(1492)),
        (0, [3, 0, 0, 0, 0, 0, 0, 0], unreachable(false)),
        (0, [3, 1, 0, 0, 0, 0, 0, 0], unreachable(false)),
        (0, [3, 2, 0, 0, 0, 0, 0, 0], unreachable(true)),
        (0, [3, 3, 0, 0, 0, 0, 0, 0], unreachable(true)),
        (0, [3, 5, 0, 0, 0, 0, 0, 0], unreachable(false)),
        (0, [3, 13, 0, 0, 0, 0, 0, 0], unreachable(true)),
        (0, [11, 0, 0, 0, 0, 0, 0, 0], unreachable(false)),
        (0, [12, 0, 0, 0, 9, 0, 0, 0], unreachable(false)),
        (1, [2, 0, 0, 0, 0, 0, 5, 0], too_big(1280)),
        (1, [1, 0, 0, 0, 0, 0, 0, 0], unreachable(false)),
        (1, [1, 1, 0, 0, 0, 0, 0, 0], unreachable(true)),
        (1, [1, 4, 0, 0, 0, 0, 0, 0], unreachable(true)),
        (1, [3, 0, 0, 0, 0, 0, 0, 0], unreachable(false)),
        (1, [4, 0, 0, 0, 0, 0, 0, 6], unreachable(false)),
        (1, [4, 1, 0, 0, 0, 0, 0, 6], unreachable(true)),
    ] {
        let Received::Error(found) = error(family, head, OURS[family]) else {
            panic!("{head:?}");
        };
        assert_eq!(found.kind, kind, "{head:?}");
        assert_eq!(found.flow.local, address(OURS[family]));
        assert_eq!(
            (found.flow.local_port, found.flow.remote_port),
            (0x1234, 80)
        );
        assert_eq!(found.seq, SeqNumber(0x0102_0304));
        assert_eq!(found.protocol, Protocol::TCP);
    }
}

#[test]
fn errors_about_others_packets_and_unreadable_ones_are_dropped() {
    let head = [3, 3, 0, 0, 0, 0, 0, 0];
    let found = error(0, head, "10.77.0.3");
    assert_eq!(found, Received::Dropped(DropReason::NotForUs));
    let (mut icmp, mut outbox) = (Icmp::new(1000, 1), Outbox::new(1));
    let bytes = message(PEER[0], OURS[0], &head);
    let found = receive(&mut icmp, &mut outbox, PEER[0], OURS[0], &bytes);
    assert_eq!(found, Received::Dropped(DropReason::Malformed));
    // RFC 8201 4.
    let found = error(1, [2, 0, 0, 0, 0, 0, 4, 0xff], OURS[1]);
    assert_eq!(found, Received::Dropped(DropReason::Malformed));
    // A redirect changes no route here.
    let bytes = message(PEER[0], OURS[0], &[5, 1, 0, 0, 10, 77, 0, 1]);
    let found = receive(&mut icmp, &mut outbox, PEER[0], OURS[0], &bytes);
    assert_eq!(found, Received::Dropped(DropReason::UnknownProtocol));
}

fn complain(problem: Problem, packet: &[u8], to_group: bool) -> Option<Vec<u8>> {
    let (mut icmp, mut outbox) = (Icmp::new(1000, 1), Outbox::new(1));
    let offending = Offending { packet, to_group };
    let is_sent = icmp.send_error(problem, &offending, &routes(), &mut outbox, at(0));
    let sent = sent(&mut outbox).pop();
    assert_eq!(sent.is_some(), is_sent);
    sent
}

#[test]
fn errors_quote_the_packet_and_go_back_to_its_sender() {
    let parameter = Problem::Parameter {
        code: 2,
        pointer: 42,
        also_multicast: false,
    };
    for (family, problem, head) in [
        (0, Problem::PortUnreachable, [3, 3, 0, 0]),
        (
            0,
            Problem::ProtocolUnreachable { named_at: 9 },
            [3, 2, 0, 0],
        ),
        (0, Problem::ReassemblyTimeout, [11, 1, 0, 0]),
        (0, parameter, [12, 0, 42, 0]),
        (1, Problem::PortUnreachable, [1, 4, 0, 0]),
        (
            1,
            Problem::ProtocolUnreachable { named_at: 6 },
            [4, 1, 0, 6],
        ),
        (1, Problem::ReassemblyTimeout, [3, 1, 0, 0]),
        (1, parameter, [4, 2, 0, 42]),
    ] {
        let datagram = [0, 1, 0, 2, 0, 12, 0, 0, 1, 2, 3, 4];
        let offending = packet(PEER[family], OURS[family], Protocol::UDP, &datagram);
        let error = complain(problem, &offending, false).unwrap();
        let [kind, code, first, last] = head;
        let rest = if family == 0 {
            [first, 0, 0, 0]
        } else {
            [0, 0, 0, last]
        };
        let rest = if kind == 12 { [first, 0, 0, 0] } else { rest };
        let mut body = [kind, code, 0, 0, rest[0], rest[1], rest[2], rest[3]].to_vec();
        body.extend(&offending);
        let body = message(OURS[family], PEER[family], &body);
        let protocol = [Protocol::ICMPV4, Protocol::ICMPV6][family];
        assert_eq!(error, packet(OURS[family], PEER[family], protocol, &body));
    }
}

#[test]
fn errors_are_as_long_as_every_host_takes_and_no_longer() {
    for (family, len) in [(0, 576), (1, 1280)] {
        let offending = packet(PEER[family], OURS[family], Protocol::UDP, &[7; 1400]);
        let error = complain(Problem::PortUnreachable, &offending, false).unwrap();
        assert_eq!(error.len(), len);
    }
}

#[test]
fn no_error_is_sent_about_errors_groups_later_fragments_and_impossible_senders() {
    let problem = Problem::PortUnreachable;
    let body = [0, 1, 0, 2, 0, 8, 0, 0];
    for (source, target, to_group, expected) in [
        (PEER[0], OURS[0], false, true),
        (PEER[0], OURS[0], true, false),
        (PEER[0], "10.77.0.255", false, false),
        (PEER[0], "224.0.0.1", false, false),
        ("10.77.0.255", OURS[0], false, false),
        ("127.0.0.1", OURS[0], false, false),
        ("0.0.0.0", OURS[0], false, false),
        (OURS[0], OURS[0], false, false),
        (PEER[1], OURS[1], false, true),
        (PEER[1], "ff02::1", true, false),
        ("::", OURS[1], false, false),
        ("ff02::1", OURS[1], false, false),
    ] {
        let offending = packet(source, target, Protocol::UDP, &body);
        let found = complain(problem, &offending, to_group).is_some();
        assert_eq!(found, expected, "{source} {target}");
    }
    for (family, protocol, kind, expected) in [
        (0, Protocol::ICMPV4, 3, false),
        (0, Protocol::ICMPV4, 5, false),
        (0, Protocol::ICMPV4, 8, true),
        (1, Protocol::ICMPV6, 1, false),
        (1, Protocol::ICMPV6, 137, false),
        (1, Protocol::ICMPV6, 128, true),
    ] {
        let body = [kind, 0, 0, 0, 0, 0, 0, 0];
        let offending = packet(PEER[family], OURS[family], protocol, &body);
        assert_eq!(
            complain(problem, &offending, false).is_some(),
            expected,
            "{kind}"
        );
    }
    let mut first = packet(PEER[0], OURS[0], Protocol::UDP, &body);
    first[6] = 0x20;
    assert!(complain(problem, &first, false).is_some());
    first[7] = 1;
    assert!(complain(problem, &first, false).is_none());
    for (offset, expected) in [(1, true), (9, false)] {
        let body = [17, 0, 0, offset, 0, 0, 0, 1, 0, 1, 0, 2, 0, 8, 0, 0];
        let fragment = packet(PEER[1], OURS[1], Protocol::FRAGMENT, &body);
        assert_eq!(complain(problem, &fragment, false).is_some(), expected);
    }
    assert!(complain(problem, &[], false).is_none());
}

#[test]
fn an_option_may_ask_for_an_answer_to_a_group() {
    let parameter = |also_multicast| Problem::Parameter {
        code: 2,
        pointer: 42,
        also_multicast,
    };
    let offending = packet(PEER[1], "ff02::1", Protocol::UDP, &[0; 8]);
    assert!(complain(parameter(false), &offending, true).is_none());
    assert!(complain(parameter(true), &offending, true).is_some());
}

#[test]
fn errors_are_limited() {
    let (mut icmp, mut outbox) = (Icmp::new(100, 1), Outbox::new(1));
    let packet = packet(PEER[0], OURS[0], Protocol::UDP, &[0; 8]);
    let offending = Offending {
        packet: &packet,
        to_group: false,
    };
    let sent = (0..50)
        .filter(|_| {
            icmp.send_error(
                Problem::PortUnreachable,
                &offending,
                &routes(),
                &mut outbox,
                at(0),
            )
        })
        .count();
    assert!((5..=10).contains(&sent), "{sent}");
}
