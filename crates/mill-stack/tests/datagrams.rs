//! A host on a link, and frames from a peer that a test writes byte by byte: echo, UDP, fragments, extension headers,
//! neighbours, and errors.
#![expect(clippy::unwrap_used, reason = "what can't be made fails its test")]

use mill_stack::config::{HostConfig, Prefix};
use mill_stack::drop_reason::DropReason;
use mill_stack::host::Host;
use mill_stack::link::Offload;
use mill_stack::memory_link::{Frame, MemoryLink};
use mill_stack::queue::ByteQueue;
use mill_stack::tcp::time::Instant;
use mill_stack::wire::checksum::{self, Sum};
use mill_stack::wire::ethernet::{EtherType, EthernetHeader, MacAddress};
use mill_stack::wire::icmpv4::Icmpv4;
use mill_stack::wire::icmpv6::Icmpv6;
use mill_stack::wire::ipv4::{Ecn, Ipv4Header};
use mill_stack::wire::ipv6::Ipv6Header;
use mill_stack::wire::ndp::Ndp;
use mill_stack::wire::protocol::Protocol;
use mill_stack::wire::udp::{self, UdpHeader};
use std::net::{IpAddr, SocketAddr};

const OURS: [&str; 2] = ["10.77.0.2", "fd00::2"];
const PEER: [&str; 2] = ["10.77.0.9", "fd00::9"];
const PEER_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);

struct World {
    host: Host<ByteQueue>,
    link: MemoryLink,
    now: Instant,
}

impl World {
    /// A host whose announcements are over, and that knows the peer.
    fn new() -> Self {
        let link = MemoryLink::ethernet(1);
        let addresses = [(OURS[0], 24), (OURS[1], 64)].map(|(text, len)| Prefix {
            address: text.parse().unwrap(),
            len,
        });
        let now = at(1000);
        let properties = *mill_stack::link::Link::properties(&link);
        let host = Host::new(
            HostConfig::new(addresses.to_vec(), [7; 16]),
            &properties,
            now,
        );
        let mut world = Self { host, link, now };
        for second in 1..8 {
            world.now = at(second * 1000);
            world.turn();
        }
        for family in 0..2 {
            world.introduce(family);
        }
        world
    }

    /// The peer asks for us, so that we know it.
    fn introduce(&mut self, family: usize) {
        let answers = match family {
            0 => {
                let mut request = [0, 1, 8, 0, 6, 4, 0, 1].to_vec();
                request.extend(PEER_MAC.0);
                request.extend([10, 77, 0, 9, 0, 0, 0, 0, 0, 0, 10, 77, 0, 2]);
                self.exchange(EtherType::ARP, &request)
            }
            _ => {
                let question = Ndp::NeighborSolicitation {
                    target: "fd00::2".parse().unwrap(),
                    source_mac: Some(PEER_MAC),
                };
                let mut bytes = [0; 32];
                question.emit(&mut bytes);
                let body = icmp(PEER[1], OURS[1], &bytes);
                let mut packet = packet(PEER[1], OURS[1], Protocol::ICMPV6, &body);
                packet[7] = 255;
                self.exchange(EtherType::IPV6, &packet)
            }
        };
        assert_eq!(answers.len(), 1, "{answers:?}");
    }

    fn turn(&mut self) -> Vec<Vec<u8>> {
        while self.host.receive(&mut self.link, self.now) > 0 {}
        self.host.expire(self.now);
        self.host.transmit(&mut self.link, self.now);
        self.host.settle(&mut self.link);
        assert_eq!(self.link.held(), 0);
        self.link.sent.drain(..).map(|frame| frame.bytes).collect()
    }

    /// Gives the host a packet of the peer; the packets that it sends to the peer.
    fn exchange(&mut self, ether_type: EtherType, packet: &[u8]) -> Vec<Vec<u8>> {
        let target = MacAddress([2, 0, 0, 0, 0, 1]);
        self.exchange_with(target, ether_type, packet)
    }

    fn exchange_with(
        &mut self,
        target: MacAddress,
        ether_type: EtherType,
        packet: &[u8],
    ) -> Vec<Vec<u8>> {
        let mut bytes = vec![0; 14];
        let header = EthernetHeader {
            target,
            source: PEER_MAC,
            ether_type,
        };
        header.emit(&mut bytes);
        bytes.extend(packet);
        self.link.arrived.push_back(Frame {
            bytes,
            offload: Offload::default(),
        });
        let sent = self.turn();
        sent.into_iter().map(|frame| frame[14..].to_vec()).collect()
    }

    fn ip(&mut self, packet: &[u8]) -> Vec<Vec<u8>> {
        let ether_type = [EtherType::IPV4, EtherType::IPV6][usize::from(packet[0] >> 4 == 6)];
        self.exchange(ether_type, packet)
    }

    fn dropped(&self, reason: DropReason) -> u64 {
        self.host.counters().dropped(reason)
    }
}

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn packet(source: &str, target: &str, protocol: Protocol, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 40];
    let len = match (source.parse().unwrap(), target.parse().unwrap()) {
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

fn pseudo_header(source: &str, target: &str, protocol: Protocol, len: usize) -> Sum {
    let (source, target) = (source.parse().unwrap(), target.parse().unwrap());
    Sum::of_pseudo_header(source, target, protocol.0, len)
}

fn icmp(source: &str, target: &str, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let pseudo_header = if source.contains(':') {
        pseudo_header(source, target, Protocol::ICMPV6, bytes.len())
    } else {
        Sum::ZERO
    };
    checksum::fill(pseudo_header, &mut bytes, 2);
    bytes
}

fn datagram(source: &str, target: &str, ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 8];
    let header = UdpHeader {
        source: ports.0,
        target: ports.1,
        len: u16::try_from(8 + payload.len()).unwrap(),
    };
    header.emit(&mut bytes);
    bytes.extend(payload);
    let pseudo_header = pseudo_header(source, target, Protocol::UDP, bytes.len());
    udp::fill(pseudo_header, &mut bytes);
    bytes
}

/// Type and code of the only message that was sent.
fn message(sent: &[Vec<u8>]) -> (u8, u8) {
    let [packet] = sent else {
        panic!("{sent:?}");
    };
    let at = if packet[0] >> 4 == 6 { 40 } else { 20 };
    (packet[at], packet[at + 1])
}

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
fn datagrams_go_to_their_socket_and_answers_come_back() {
    for family in 0..2 {
        let mut world = World::new();
        let own = SocketAddr::new(OURS[family].parse().unwrap(), 53);
        let socket = world.host.bind_udp(own).unwrap();
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
        let is_taken = world
            .host
            .write_udp(socket, arrived.source, Ecn::NotCapable, b"answer");
        assert!(is_taken);
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
fn to_everybody_only_who_listens_is_spoken_to() {
    let mut world = World::new();
    let all = "10.77.0.255";
    let bytes = datagram(PEER[0], all, (5000, 67), b"hello");
    let packet = packet(PEER[0], all, Protocol::UDP, &bytes);
    let sent = world.exchange_with(MacAddress::BROADCAST, EtherType::IPV4, &packet);
    assert_eq!(sent, Vec::<Vec<u8>>::new());
    let socket = world.host.bind_udp("0.0.0.0:67".parse().unwrap()).unwrap();
    world.exchange_with(MacAddress::BROADCAST, EtherType::IPV4, &packet);
    assert_eq!(world.host.read_udp(socket).unwrap().payload, b"hello");
}

/// Pieces of `body` of 600 bytes or so.
fn fragments(family: usize, protocol: Protocol, body: &[u8]) -> Vec<Vec<u8>> {
    let pieces = body.chunks(600);
    let last = pieces.len() - 1;
    pieces
        .enumerate()
        .map(|(number, piece)| {
            let (more, offset) = (number < last, u16::try_from(number * 75).unwrap());
            if family == 0 {
                let mut bytes = packet(PEER[0], OURS[0], protocol, piece);
                bytes[4..6].copy_from_slice(&[1, 2]);
                bytes[6..8].copy_from_slice(&(offset | (u16::from(more) << 13)).to_be_bytes());
                checksum::fill(Sum::ZERO, &mut bytes[..20], 10);
                bytes
            } else {
                let mut behind = [protocol.0, 0, 0, 0, 0, 0, 1, 2].to_vec();
                behind[2..4].copy_from_slice(&((offset << 3) | u16::from(more)).to_be_bytes());
                behind.extend(piece);
                packet(PEER[1], OURS[1], Protocol::FRAGMENT, &behind)
            }
        })
        .collect()
}

#[test]
fn datagrams_in_pieces_arrive_whole() {
    for family in 0..2 {
        let mut world = World::new();
        let own = SocketAddr::new(OURS[family].parse().unwrap(), 53);
        let socket = world.host.bind_udp(own).unwrap();
        let payload: Vec<u8> = (0..2000_usize).map(|at| at.to_le_bytes()[0]).collect();
        let bytes = datagram(PEER[family], OURS[family], (5000, 53), &payload);
        let mut pieces = fragments(family, Protocol::UDP, &bytes);
        pieces.reverse();
        for piece in &pieces {
            assert_eq!(world.host.read_udp(socket), None);
            world.ip(piece);
        }
        assert_eq!(world.host.read_udp(socket).unwrap().payload, payload);
        assert!(world.host.usage().is_empty());
    }
}

#[test]
fn a_segment_in_pieces_is_answered_like_one_that_came_whole() {
    for family in 0..2 {
        let mut world = World::new();
        // An acknowledgement of nothing, which earns a reset.
        let mut bytes = vec![0; 1300];
        bytes[..16].copy_from_slice(&[0x12, 0x34, 0, 80, 0, 0, 0, 1, 0, 0, 0, 9, 0x50, 0x10, 1, 1]);
        let pseudo_header = pseudo_header(PEER[family], OURS[family], Protocol::TCP, bytes.len());
        checksum::fill(pseudo_header, &mut bytes, 16);
        let mut sent = Vec::new();
        for piece in fragments(family, Protocol::TCP, &bytes) {
            sent.extend(world.ip(&piece));
        }
        let at = [20, 40][family];
        assert_eq!(sent.len(), 1);
        assert_eq!(sent[0][at + 13], 4, "a reset");
        assert_eq!(sent[0][at + 4..at + 8], [0, 0, 0, 9]);
    }
}

#[test]
fn a_datagram_that_stays_in_pieces_is_reported_in_time() {
    for (family, lifetime_ms, head) in [(0, 30_000, (11, 1)), (1, 60_000, (3, 1))] {
        let mut world = World::new();
        let bytes = datagram(PEER[family], OURS[family], (5000, 53), &[0; 1000]);
        let pieces = fragments(family, Protocol::UDP, &bytes);
        world.ip(&pieces[0]);
        assert!(world.host.usage().fragment_bytes > 0);
        let begun = world.now;
        world.now = begun + std::time::Duration::from_millis(lifetime_ms - 1);
        assert_eq!(world.turn(), Vec::<Vec<u8>>::new());
        world.now = begun + std::time::Duration::from_millis(lifetime_ms);
        let sent = world.turn();
        let sent: Vec<Vec<u8>> = sent.iter().map(|frame| frame[14..].to_vec()).collect();
        assert_eq!(message(&sent), head);
        assert_eq!(world.host.usage().fragment_bytes, 0);
        assert_eq!(world.dropped(DropReason::Fragment), 1);
    }
}

#[test]
fn overlapping_pieces_are_dropped_with_their_datagram() {
    for family in 0..2 {
        let mut world = World::new();
        let own = SocketAddr::new(OURS[family].parse().unwrap(), 53);
        let socket = world.host.bind_udp(own).unwrap();
        let bytes = datagram(PEER[family], OURS[family], (5000, 53), &[0; 1000]);
        let pieces = fragments(family, Protocol::UDP, &bytes);
        let mut other = bytes.clone();
        other[100] = 1;
        world.ip(&pieces[0]);
        world.ip(&fragments(family, Protocol::UDP, &other)[0]);
        world.ip(&pieces[1]);
        assert_eq!(world.host.read_udp(socket), None);
        assert_eq!(world.dropped(DropReason::Fragment), 2);
    }
}

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
fn a_host_that_looks_whether_our_address_is_free_learns_that_it_is_not() {
    let mut world = World::new();
    let ours = "fd00::2".parse().unwrap();
    let group = mill_stack::wire::ndp::solicited_node(ours);
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

#[test]
fn a_smaller_path_is_remembered_for_who_has_a_socket() {
    for (is_bound, expected) in [(false, 1), (true, 2)] {
        let mut world = World::new();
        let own: SocketAddr = "10.77.0.2:53".parse().unwrap();
        let peer: SocketAddr = "10.77.0.9:5000".parse().unwrap();
        if is_bound {
            world.host.bind_udp(own).unwrap();
        }
        let ours = datagram(OURS[0], PEER[0], (53, 5000), &[0; 1400]);
        let quoted = packet(OURS[0], PEER[0], Protocol::UDP, &ours);
        let mut bytes = vec![0; 8];
        let too_big = Icmpv4::Unreachable { code: 4, mtu: 1000 };
        too_big.emit(&mut bytes);
        bytes.extend(&quoted[..28]);
        let body = icmp(PEER[0], OURS[0], &bytes);
        world.ip(&packet(PEER[0], OURS[0], Protocol::ICMPV4, &body));
        assert!(world.host.write_udp(own, peer, Ecn::NotCapable, &[0; 1400]));
        assert_eq!(world.turn().len(), expected);
    }
}

#[test]
fn what_no_error_is_about_earns_no_error() {
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
