//! Datagrams and segments that come in fragments.

use crate::packet::{datagram, message, packet, pseudo_header};
use crate::world::{OURS, PEER, World};
use mill_stack::drop_reason::DropReason;
use mill_stack::udp::UdpOptions;
use mill_wire::checksum;
use mill_wire::checksum::Sum;
use mill_wire::protocol::Protocol;
use std::net::SocketAddr;

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
        let socket = world.host.bind_udp(own, UdpOptions::default()).unwrap();
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
        assert_eq!(world.dropped(DropReason::FragmentTimeout), 1);
    }
}

#[test]
fn overlapping_pieces_are_dropped_with_their_datagram() {
    for family in 0..2 {
        let mut world = World::new();
        let own = SocketAddr::new(OURS[family].parse().unwrap(), 53);
        let socket = world.host.bind_udp(own, UdpOptions::default()).unwrap();
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
