//! Peers that vanish silently.

use crate::raw_peer::RawPeer;
use crate::target::Target;
use mill_stack::socket::SocketError;
use mill_wire::tcp::Flags;
use std::time::Duration;

#[test]
fn unacknowledged_data_ends_the_connection() {
    let mut target = Target::new(|_| {});
    let socket = RawPeer::new(1).connect(&mut target);
    target.write(socket, &[1; 50_000]);
    target.wait(Duration::from_secs(900));
    assert_eq!(target.host.readable(socket).error, None);
    // 924.6 s with a minimum of 200 ms and 15 retries, says Linux's documentation of tcp_retries2.
    target.wait(Duration::from_secs(300));
    assert_eq!(
        target.host.readable(socket).error,
        Some(SocketError::Unreachable)
    );
    assert!(target.host.queue(socket).is_none());
    target.host.close(socket);
    target.assert_empty();
}

#[test]
fn what_applications_have_closed_is_given_up_earlier() {
    let mut target = Target::new(|_| {});
    for number in 0..50 {
        let socket = RawPeer::new(number).connect(&mut target);
        target.write(socket, &[1; 50_000]);
        target.host.close(socket);
    }
    target.wait(Duration::from_secs(1));
    assert_eq!(target.host.usage().connections, 50);
    target.wait(Duration::from_secs(150));
    target.assert_empty();
}

#[test]
fn half_closed_connections_of_absent_applications_end_after_a_minute() {
    let mut target = Target::new(|_| {});
    let mut peer = RawPeer::new(1);
    let socket = peer.connect(&mut target);
    target.host.close(socket);
    target.turn();
    // The FIN is acknowledged, and then nothing more comes.
    peer.ack += 1;
    peer.send(&mut target, Flags::ACK, &[]);
    target.wait(Duration::from_secs(59));
    assert_eq!(target.host.usage().connections, 1);
    target.wait(Duration::from_secs(2));
    assert_eq!(target.host.usage().connections, 0);
    target.wait(Duration::from_secs(61));
    target.assert_empty();
}

#[test]
fn a_handshake_is_not_forgotten_just_behind_an_answer() {
    let mut target = Target::new(|_| {});
    let begin = |number: u32, target: &mut Target| {
        let mut peer = RawPeer::new(number);
        let syn = peer.syn();
        peer.begin(target).unwrap();
        target.wait(Duration::from_millis(62_900));
        // It asks once more, shortly before the server would forget it.
        target.arrive(&syn);
        target.turn();
        peer
    };
    // It takes a while to say something.
    let mut peer = begin(1, &mut target);
    target.wait(Duration::from_secs(30));
    peer.send(&mut target, Flags::ACK, &[]);
    target.turn();
    assert_eq!(target.host.usage().connections, 1);
    // Or nothing comes any more.
    begin(2, &mut target);
    target.wait(Duration::from_secs(31));
    assert_eq!(target.host.usage().half_open, 1);
    target.wait(Duration::from_secs(2));
    assert_eq!(target.host.usage().half_open, 0);
}

#[test]
fn handshakes_that_are_not_completed_end_after_63_seconds() {
    let mut target = Target::new(|_| {});
    for number in 0..100 {
        RawPeer::new(number).begin(&mut target).unwrap();
    }
    target.wait(Duration::from_secs(62));
    assert_eq!(target.host.usage().half_open, 100);
    let answers = target.take_seen().len();
    assert_eq!(answers, 500, "each SYN-ACK goes out five times more");
    target.wait(Duration::from_secs(2));
    target.assert_empty();
}

#[test]
fn an_unanswered_opening_fails_after_127_seconds() {
    let mut target = Target::new(|_| {});
    let address = "10.9.9.9:80".parse().unwrap();
    let socket = target.host.connect(address, None, true, 5).unwrap();
    target.wait(Duration::from_secs(126));
    assert_eq!(target.host.readable(socket).error, None);
    target.wait(Duration::from_secs(2));
    assert_eq!(
        target.host.readable(socket).error,
        Some(SocketError::Unreachable)
    );
    assert_eq!(target.take_seen().len(), 7);
    target.host.close(socket);
    target.assert_empty();
}
