//! Segments of an attacker that knows addresses and ports and guesses the rest (RFC 5961).

use crate::raw_peer::{RawPeer, Seen};
use crate::target::Target;
use mill_stack::drop_reason::DropReason;
use mill_stack::socket::SocketId;
use mill_tcp::arrived::SegmentDrop;
use mill_wire::tcp::Flags;
use std::time::Duration;

#[test]
fn a_storm_of_guesses_gets_a_limited_number_of_answers() {
    let mut target = Target::new(|_| {});
    let mut peer = RawPeer::new(1);
    let socket = peer.connect(&mut target);
    for offset in 1..=3000 {
        let mut reset = peer.segment(Flags::RST, &[]);
        reset.header.seq += offset;
        target.arrive(&reset);
    }
    target.turn();
    let answers = peer.take_seen(&mut target).len();
    assert!(answers <= 1500, "{answers} answers");
    let blind = DropReason::Segment(SegmentDrop::BlindReset);
    assert_eq!(target.host.counters().dropped(blind), 3000);
    peer.send(&mut target, Flags::ACK, b"still here");
    target.turn();
    assert_eq!(target.read(socket), b"still here");
}

/// An acknowledgement from another peer for a port without listener.
fn stray(number: u32) -> Seen {
    let mut segment = RawPeer::new(number).segment(Flags::ACK, &[]);
    segment.header.target = 81;
    segment
}

#[test]
fn segments_to_closed_ports_get_no_more_resets_than_the_limit_allows() {
    let mut target = Target::new(|config| config.limits.answers_per_second = 20);
    for tenth in 0..10 {
        for number in 0..10 {
            target.arrive(&stray(10 * tenth + number));
        }
        target.turn();
        target.wait(Duration::from_millis(100));
    }
    // How many of them varies from second to second.
    let resets = target.take_seen().len();
    assert!((10..=20).contains(&resets), "{resets}");
    let dropped = target.host.counters().dropped(DropReason::RateLimit);
    assert_eq!(dropped + resets as u64, 100);
}

#[test]
fn a_peer_whose_answer_fell_to_the_limit_gets_one_to_what_it_repeats_within_a_second() {
    let mut target = Target::new(|_| {});
    // A burst from all others, as after a restart.
    for number in 0..3000 {
        target.arrive(&stray(number));
        if number % 64 == 0 {
            target.turn();
        }
    }
    target.turn();
    let last = RawPeer::new(5000);
    let is_told = |target: &mut Target| {
        target.take_seen();
        target.arrive(&last.segment(Flags::ACK, b"more"));
        target.turn();
        let seen = last.take_seen(target);
        seen.iter().any(|seen| seen.is(Flags::RST))
    };
    assert!(!is_told(&mut target));
    // The least timeout with which a peer repeats.
    target.wait(Duration::from_millis(200));
    assert!(is_told(&mut target));
}

/// Ends connections, each of which the peer goes on to send to; how many resets each peer gets.
fn check_own_resets(end: fn(&mut Target, SocketId, &mut RawPeer)) {
    const CONNECTIONS: u32 = 300;
    let mut target = Target::new(|config| config.limits.answers_per_second = 20);
    let mut peers: Vec<_> = (0..CONNECTIONS).map(RawPeer::new).collect();
    let sockets: Vec<_> = peers
        .iter_mut()
        .map(|peer| peer.connect(&mut target))
        .collect();
    // Unknown flows have used up the limit.
    for number in 0..100 {
        target.arrive(&stray(number + 1000));
    }
    target.turn();
    let limited = target.host.counters().dropped(DropReason::RateLimit);
    assert!(limited > 0);
    target.take_seen();
    // All of them in one turn: their resets wait for the device together.
    for (socket, peer) in sockets.into_iter().zip(&mut peers) {
        end(&mut target, socket, peer);
    }
    target.turn();
    for peer in &peers {
        // An acknowledgement that was under way.
        target.arrive(&peer.segment(Flags::ACK, &[]));
        target.turn();
        let seen = peer.take_seen(&mut target);
        let resets = seen.iter().filter(|seen| seen.is(Flags::RST)).count();
        assert_eq!(resets, 2, "{peer:?}");
    }
    assert_eq!(
        target.host.counters().dropped(DropReason::RateLimit),
        limited
    );
    assert_eq!(target.host.counters().dropped(DropReason::DeviceFull), 0);
    // Later the flow is unknown again.
    target.wait(Duration::from_secs(61));
    for number in 0..100 {
        target.arrive(&stray(number + 1000));
    }
    target.turn();
    let limited = target.host.counters().dropped(DropReason::RateLimit);
    target.arrive(&peers[0].segment(Flags::ACK, &[]));
    target.turn();
    assert_eq!(
        target.host.counters().dropped(DropReason::RateLimit),
        limited + 1
    );
}

#[test]
fn resets_that_end_connections_of_ours_fall_under_no_limit() {
    check_own_resets(|target, socket, _| target.host.abort(socket));
    // Text that comes after the application has left.
    check_own_resets(|target, socket, peer| {
        target.host.close(socket);
        peer.send(target, Flags::ACK, b"too late");
    });
}
