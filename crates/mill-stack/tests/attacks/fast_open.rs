//! Fast Open (RFC 7413): its effect, and how little attackers gain by it.

use crate::raw_peer::{RawPeer, Seen};
use crate::target::Target;
use mill_stack::socket::ListenOptions;
use mill_wire::tcp::Flags;
use mill_wire::tcp_option::FastOpenCookie;
use std::time::Duration;

fn target(waiting_max: u32) -> Target {
    let options = ListenOptions {
        fast_open: Some(waiting_max),
        ..ListenOptions::default()
    };
    Target::listening(&options, |_| {})
}

fn syn_with(peer: &RawPeer, cookie: &FastOpenCookie, payload: &[u8]) -> Seen {
    let mut syn = peer.syn();
    syn.header.options.fast_open = Some(*cookie);
    syn.payload = payload.to_vec();
    syn
}

/// The cookie that a peer gets for asking.
fn ask(target: &mut Target, peer: &mut RawPeer) -> FastOpenCookie {
    let empty = FastOpenCookie::new(&[]).expect("no bytes ask for one");
    target.arrive(&syn_with(peer, &empty, b""));
    target.turn();
    let answers = peer.take_seen(target);
    peer.on_syn_ack(&answers[0]);
    peer.send(target, Flags::ACK, &[]);
    target.turn();
    assert!(target.accept().is_some());
    answers[0]
        .header
        .options
        .fast_open
        .expect("a request gets a cookie")
}

#[test]
fn another_address_has_another_cookie() {
    let mut target = target(10);
    let cookie = ask(&mut target, &mut RawPeer::new(1));
    let other = RawPeer::new(5000);
    target.arrive(&syn_with(&other, &cookie, b"request"));
    target.turn();
    assert_eq!(target.host.counters().fast_opens, 0);
}

#[test]
fn no_more_than_the_limit_are_open_by_a_cookie_alone() {
    let mut target = target(3);
    let cookie = ask(&mut target, &mut RawPeer::new(1));
    for number in 10..20 {
        target.arrive(&syn_with(&RawPeer::new(number), &cookie, b"x"));
    }
    target.turn();
    assert_eq!(target.host.counters().fast_opens, 3);
    // The others make the whole handshake. A peer that opened and vanished makes room again.
    assert_eq!(target.host.usage().half_open, 7);
    target.wait(Duration::from_secs(200));
    target.arrive(&syn_with(&RawPeer::new(30), &cookie, b"x"));
    target.turn();
    assert_eq!(target.host.counters().fast_opens, 4);
}

/// What the device did not take of a cut segment is not sent with the bytes of the next connection in its place.
#[test]
fn the_rest_of_a_cut_segment_goes_with_its_connection() {
    let mut target = target(10);
    let cookie = ask(&mut target, &mut RawPeer::new(1));
    let mut peer = RawPeer::new(2);
    let socket = peer.connect(&mut target);
    target.write(socket, &[1; 100]);
    target.turn();
    peer.ack += 100;
    peer.send(&mut target, Flags::ACK, &[]);
    target.turn();
    target.take_seen();
    target.write(socket, &[1; 10_000]);
    target.link.sent_max = 3;
    assert!(target.host.transmit(&mut target.link, target.now));
    target.link.sent.clear();
    target.host.close(socket);
    // The flow is reset, and opened anew at once.
    target.arrive(&peer.segment(Flags::RST, &[]));
    peer.seq += 100_000;
    target.arrive(&syn_with(&peer, &cookie, b"request"));
    while target.host.receive(&mut target.link, target.now) > 0 {}
    let socket = target.accept().expect("the connection is there");
    assert_eq!(target.read(socket), b"request");
    target.write(socket, &[2; 5000]);
    target.link.sent_max = usize::MAX;
    target.turn();
    let seen = peer.take_seen(&mut target);
    assert!(seen[0].is(Flags::SYN | Flags::ACK));
    let first = seen[0].header.seq + 1;
    let sent: usize = seen.iter().map(|seen| seen.payload.len()).sum();
    assert_eq!(sent, 5000);
    for seen in &seen[1..] {
        assert!(seen.header.seq.is_within(first, 5000));
        assert!(seen.payload.iter().all(|byte| *byte == 2));
    }
}
