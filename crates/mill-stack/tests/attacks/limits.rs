//! Each limit: what happens at it, and that it is counted.

use crate::raw_peer::RawPeer;
use crate::target::{ADDRESS, PORT, Target};
use mill_stack::drop_reason::DropReason;
use mill_stack::link::FRAMES_HELD_MAX;
use mill_stack::socket::{ConnectError, ListenOptions};
use mill_tcp::arrived::SegmentDrop;
use mill_wire::tcp::Flags;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

#[test]
fn beyond_the_connections_allowed_syns_are_dropped_and_opening_fails() {
    let mut target = Target::new(|config| config.limits.connections_max = 3);
    let sockets: Vec<_> = (0..3)
        .map(|number| RawPeer::new(number).connect(&mut target))
        .collect();
    assert_eq!(RawPeer::new(3).begin(&mut target), None);
    assert_eq!(target.host.counters().dropped(DropReason::NoMemory), 1);
    let address = "10.9.9.9:80".parse().unwrap();
    assert_eq!(
        target.host.connect(address, None, true, 5),
        Err(ConnectError::TooMany)
    );
    target.host.abort(sockets[0]);
    RawPeer::new(4).connect(&mut target);
}

#[test]
fn a_full_accept_queue_lets_handshakes_wait_until_there_is_room() {
    let options = ListenOptions {
        backlog: 1,
        ..ListenOptions::default()
    };
    let mut target = Target::listening(&options, |_| {});
    let mut peers: Vec<_> = (0..3).map(RawPeer::new).collect();
    for peer in &mut peers {
        peer.begin(&mut target).unwrap();
    }
    for peer in &mut peers {
        peer.send(&mut target, Flags::ACK, &[]);
    }
    target.turn();
    assert_eq!(
        target.host.counters().dropped(DropReason::ListenQueueFull),
        1
    );
    // A connection that begins now is not even answered.
    assert_eq!(RawPeer::new(9).begin(&mut target), None);
    assert_eq!(
        target.host.counters().dropped(DropReason::ListenQueueFull),
        2
    );
    assert!(target.accept().is_some() && target.accept().is_some() && target.accept().is_none());
    // The third is asked again, and answers.
    target.wait(Duration::from_millis(1100));
    let again = peers[2].take_seen(&mut target);
    assert!(again.iter().any(|seen| seen.is(Flags::SYN | Flags::ACK)));
    peers[2].send(&mut target, Flags::ACK, &[]);
    target.turn();
    assert!(target.accept().is_some());
}

#[test]
fn unread_bytes_of_all_connections_together_stay_within_the_budget() {
    let budget = 200_000;
    let mut target = Target::new(|config| config.limits.receive_bytes_max = budget);
    let mut peers: Vec<_> = (0..20).map(RawPeer::new).collect();
    let sockets: Vec<_> = peers
        .iter_mut()
        .map(|peer| peer.connect(&mut target))
        .collect();
    for _ in 0..40 {
        for peer in &mut peers {
            // A peer may send within its window: 60 000 bytes each, 1.2 MB in all.
            peer.send(&mut target, Flags::ACK, &[5; 1000]);
        }
        target.turn();
        let unread = target.host.usage().unread_bytes;
        assert!(unread <= budget + 1000, "{unread} bytes");
    }
    for socket in &sockets {
        target.read(*socket);
    }
    assert_eq!(target.host.usage().unread_bytes, 0);
    for socket in sockets {
        target.host.abort(socket);
    }
    target.turn();
    target.assert_empty();
}

/// What some do not read must not keep others from being read.
#[test]
fn a_connection_whose_reader_has_read_all_gets_a_segment_when_the_budget_is_used_up() {
    let budget = 100_000;
    let mut target = Target::new(|config| config.limits.receive_bytes_max = budget);
    let mut greedy: Vec<_> = (0..4).map(RawPeer::new).collect();
    let mut modest = RawPeer::new(4);
    for peer in &mut greedy {
        peer.connect(&mut target);
    }
    let socket = modest.connect(&mut target);
    for _ in 0..40 {
        for peer in &mut greedy {
            peer.send(&mut target, Flags::ACK, &[5; 1000]);
        }
        target.turn();
    }
    assert!(target.host.usage().unread_bytes >= budget);
    for _ in 0..3 {
        modest.send(&mut target, Flags::ACK, &[6; 1400]);
        target.turn();
        assert_eq!(target.read(socket), [6; 1400]);
    }
    // One segment, not two.
    modest.send(&mut target, Flags::ACK, &[7; 1400]);
    modest.send(&mut target, Flags::ACK, &[8; 1400]);
    target.turn();
    assert_eq!(target.read(socket), [7; 1400]);
}

/// Peers that send a byte into each page behind a hole would otherwise take all the room that filling the holes
/// needs, of their own and of other connections.
#[test]
fn bytes_out_of_order_leave_room_for_those_in_order() {
    let budget = 64 * 4096;
    let mut target = Target::new(|config| config.limits.receive_bytes_max = budget);
    let mut peers: Vec<_> = (0..20).map(RawPeer::new).collect();
    let sockets: Vec<_> = peers
        .iter_mut()
        .map(|peer| peer.connect(&mut target))
        .collect();
    for page in 1..16 {
        for peer in &peers {
            let mut ahead = peer.segment(Flags::ACK, b"x");
            ahead.header.seq += page * 4096;
            target.arrive(&ahead);
        }
        target.turn();
    }
    let dropped = DropReason::Segment(SegmentDrop::NoBuffer);
    assert!(target.host.counters().dropped(dropped) > 0);
    for (peer, socket) in peers.iter_mut().zip(&sockets) {
        peer.send(&mut target, Flags::ACK, b"in order");
        target.turn();
        assert_eq!(target.read(*socket), b"in order");
    }
    for socket in sockets {
        target.host.abort(socket);
    }
    target.turn();
    target.assert_empty();
}

#[test]
fn receiving_goes_on_while_readers_hold_all_the_frames_they_may() {
    let count = FRAMES_HELD_MAX + 200;
    let mut target = Target::new(|_| {});
    let mut peers: Vec<_> = (0..count).map(RawPeer::new).collect();
    let sockets: Vec<_> = peers
        .iter_mut()
        .map(|peer| peer.connect(&mut target))
        .collect();
    // One more than may be held, as the smallest device might have.
    target.link.held_max = FRAMES_HELD_MAX as usize + 1;
    for peer in &mut peers {
        peer.send(
            &mut target,
            Flags::ACK | Flags::PSH,
            &peer.port.to_be_bytes(),
        );
    }
    // One turn, whose end would give frames back.
    while target.host.receive(&mut target.link, target.now) > 0 {}
    assert!(target.link.arrived.is_empty());
    assert_eq!(target.link.held(), FRAMES_HELD_MAX as usize);
    for (peer, socket) in peers.iter().zip(sockets) {
        assert_eq!(target.read(socket), peer.port.to_be_bytes());
    }
    target.turn();
}

#[test]
fn when_too_many_wait_in_time_wait_the_oldest_is_forgotten() {
    let mut target = Target::new(|config| config.limits.time_wait_max = 5);
    for number in 0..8 {
        let mut peer = RawPeer::new(number);
        let socket = peer.connect(&mut target);
        target.host.close(socket);
        target.turn();
        peer.ack += 1;
        peer.send(&mut target, Flags::ACK | Flags::FIN, &[]);
        target.turn();
    }
    assert_eq!(target.host.usage().time_wait, 5);
    assert_eq!(target.host.counters().time_waits_forgotten, 3);
    target.wait(Duration::from_secs(61));
    target.assert_empty();
}

/// A connection of the peer's that the host has closed first: in TIME-WAIT.
fn wait_with(target: &mut Target, peer: &mut RawPeer) {
    let socket = peer.connect(target);
    target.host.close(socket);
    target.turn();
    peer.ack += 1;
    peer.send(target, Flags::ACK | Flags::FIN, &[]);
    target.turn();
    target.take_seen();
}

#[test]
fn a_prolonged_time_wait_does_not_delay_others() {
    let mut target = Target::new(|_| {});
    let mut peers: Vec<_> = (0..3).map(RawPeer::new).collect();
    for peer in &mut peers {
        wait_with(&mut target, peer);
    }
    for (wait_secs, expected) in [(50, 3), (9, 3), (2, 1), (40, 1), (30, 1), (58, 1), (3, 0)] {
        target.wait(Duration::from_secs(wait_secs));
        assert_eq!(target.host.usage().time_wait, expected, "{wait_secs} s");
        if wait_secs >= 30 && wait_secs != 58 {
            // The FIN again: the wait begins anew.
            let mut fin = peers[0].segment(Flags::ACK | Flags::FIN, &[]);
            fin.header.seq -= 1;
            target.arrive(&fin);
            target.turn();
            assert_eq!(peers[0].take_seen(&mut target).len(), 1);
        }
    }
    target.assert_empty();
}

#[test]
fn flows_that_are_opened_anew_again_and_again_leave_no_memory_behind() {
    let count_max = 10;
    let mut target = Target::new(|config| config.limits.time_wait_max = count_max);
    wait_with(&mut target, &mut RawPeer::new(0));
    let mut peer = RawPeer::new(1);
    for _ in 0..1000 {
        wait_with(&mut target, &mut peer);
        peer.seq += 1000;
    }
    assert_eq!(target.host.counters().time_waits_reopened, 999);
    let bytes = target.host.tables_bytes();
    assert!(bytes < 4096, "{bytes} bytes of tables for one or two waits");
}

#[test]
fn each_target_has_all_ports_and_then_there_are_none() {
    let mut target = Target::new(|config| config.ephemeral_ports = 5000..=5099);
    let address: SocketAddr = "10.9.9.9:80".parse().unwrap();
    let mut sockets = Vec::new();
    for _ in 0..100 {
        sockets.push(target.host.connect(address, None, true, 5).unwrap());
    }
    assert_eq!(
        target.host.connect(address, None, true, 5),
        Err(ConnectError::NoPort)
    );
    let own = target.host.local(sockets[0]).unwrap();
    assert_eq!(
        target.host.connect(address, Some(own), true, 5),
        Err(ConnectError::InUse)
    );
    // Another target has its own.
    assert!(
        target
            .host
            .connect("10.9.9.9:81".parse().unwrap(), None, true, 5)
            .is_ok()
    );
    target.host.abort(sockets[17]);
    assert!(target.host.connect(address, None, true, 5).is_ok());
    assert_eq!(
        target.host.connect(address, None, true, 5),
        Err(ConnectError::NoPort)
    );
}

#[test]
fn connections_are_opened_from_ports_that_steering_accepts() {
    let mut target = Target::new(|_| {});
    let address: SocketAddr = "10.9.9.9:80".parse().unwrap();
    for _ in 0..50 {
        let steer = |flow: &mill_stack::flow::Flow| flow.local_port % 4 == 3;
        let socket = target
            .host
            .connect_steered(address, None, true, 5, steer)
            .unwrap();
        assert_eq!(target.host.local(socket).unwrap().port() % 4, 3);
    }
    let never = |_: &mill_stack::flow::Flow| false;
    let refused = target.host.connect_steered(address, None, true, 5, never);
    assert_eq!(refused, Err(ConnectError::NoPort));
}

#[test]
fn a_port_in_time_wait_is_opened_anew_beyond_the_old_numbers() {
    let mut target = Target::new(|_| {});
    let mut peer = RawPeer::new(1);
    let socket = peer.connect(&mut target);
    target.host.close(socket);
    target.turn();
    peer.ack += 1;
    peer.send(&mut target, Flags::ACK | Flags::FIN, &[]);
    target.turn();
    target.take_seen();
    assert_eq!(target.host.usage().time_wait, 1);
    let old = peer.ack;
    peer.seq += 1000;
    let syn_ack = peer.begin(&mut target).unwrap();
    assert!(syn_ack.header.seq.is_after(old));
    peer.send(&mut target, Flags::ACK, &[]);
    target.turn();
    assert!(target.accept().is_some());
    assert_eq!(target.host.usage().time_wait, 0);
    assert_eq!(target.host.counters().time_waits_reopened, 1);
}

#[test]
fn a_deferred_listener_reports_connections_with_data_or_after_a_second() {
    let options = ListenOptions {
        deferred: true,
        ..ListenOptions::default()
    };
    let mut target = Target::listening(&options, |_| {});
    let mut peer = RawPeer::new(1);
    peer.begin(&mut target).unwrap();
    peer.send(&mut target, Flags::ACK, &[]);
    target.turn();
    assert_eq!(target.accept(), None);
    peer.send(&mut target, Flags::ACK, b"GET");
    target.turn();
    let socket = target.accept().unwrap();
    assert_eq!(target.read(socket), b"GET");
    let mut silent = RawPeer::new(2);
    silent.begin(&mut target).unwrap();
    silent.send(&mut target, Flags::ACK, &[]);
    target.wait(Duration::from_millis(1100));
    assert_eq!(target.accept(), None);
    silent.send(&mut target, Flags::ACK, &[]);
    target.turn();
    assert!(target.accept().is_some());
}

#[test]
fn closing_a_listener_resets_connections_that_wait_and_hands_on_half_open_ones() {
    let options = ListenOptions {
        share: true,
        ..ListenOptions::default()
    };
    let mut target = Target::listening(&options, |_| {});
    let address = SocketAddr::new(IpAddr::V4(ADDRESS), PORT);
    let mut waiting = RawPeer::new(1);
    waiting.begin(&mut target).unwrap();
    waiting.send(&mut target, Flags::ACK, &[]);
    let mut half_open = RawPeer::new(2);
    half_open.begin(&mut target).unwrap();
    let heir = target.host.listen(address, &options).unwrap();
    target.host.close_listener(target.listener);
    target.turn();
    assert!(
        waiting
            .take_seen(&mut target)
            .iter()
            .any(|seen| seen.is(Flags::RST))
    );
    half_open.send(&mut target, Flags::ACK, &[]);
    target.turn();
    assert!(target.host.accept(heir, 1).is_some());
    // Without another listener they are dropped.
    RawPeer::new(3).begin(&mut target).unwrap();
    target.host.close_listener(heir);
    assert_eq!(target.host.usage().half_open, 0);
}
