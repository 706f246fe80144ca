//! Tiny segments and tiny windows.

use crate::raw_peer::RawPeer;
use crate::target::Target;
use mill_wire::tcp::Flags;
use std::time::Duration;

#[test]
fn a_stream_of_single_bytes_arrives_and_takes_no_more_memory_than_it_is_long() {
    let mut target = Target::new(|_| {});
    let mut peer = RawPeer::new(1);
    let socket = peer.connect(&mut target);
    for turn in 0..100u8 {
        for _ in 0..100 {
            peer.send(&mut target, Flags::ACK, &[turn]);
        }
        target.turn();
    }
    let usage = target.host.usage();
    assert_eq!((usage.unread_bytes, usage.buffers), (10_000, 1));
    let bytes = target.read(socket);
    assert!(bytes.len() == 10_000 && bytes[0] == 0 && bytes[9999] == 99);
    assert_eq!(target.host.usage().buffers, 0);
}

#[test]
fn every_other_byte_is_kept_within_the_limit_of_ranges() {
    let ranges_max = 16;
    let mut target = Target::new(|config| config.tcp.reassembly_ranges_max = ranges_max);
    let mut peer = RawPeer::new(1);
    let socket = peer.connect(&mut target);
    let start = peer.seq;
    for byte in 0..1000u32 {
        peer.seq = start + 1 + byte * 2;
        target.arrive(&peer.segment(Flags::ACK, b"x"));
    }
    target.turn();
    assert_eq!(target.host.readable(socket).unread, 0);
    // The whole comes at last; what was dropped is no loss.
    peer.seq = start;
    peer.send(&mut target, Flags::ACK, &[b'x'; 1000]);
    peer.send(&mut target, Flags::ACK, &[b'x'; 1000]);
    target.turn();
    assert_eq!(target.read(socket), [b'x'; 2000]);
}

#[test]
fn a_window_of_a_few_bytes_is_not_filled_by_a_segment_for_each() {
    let mut target = Target::new(|_| {});
    let mut peer = RawPeer::new(1);
    peer.window = 65535;
    let socket = peer.connect(&mut target);
    peer.window = 0;
    peer.send(&mut target, Flags::ACK, &[]);
    target.turn();
    target.take_seen();
    target.write(socket, &[1; 10_000]);
    target.turn();
    assert_eq!(target.take_seen(), []);
    // RFC 9293 3.8.6.2.1: crumbs wait for the persist timer.
    for _ in 0..50 {
        peer.window = 1;
        peer.send(&mut target, Flags::ACK, &[]);
        target.turn();
    }
    let sent = target.take_seen().len();
    assert!(sent <= 2, "{sent} segments for a window of 8 bytes");
    target.wait(Duration::from_secs(10));
    let probes = target.take_seen().len();
    assert!((1..=8).contains(&probes), "{probes} probes in 10 s");
}

#[test]
fn a_peer_that_keeps_the_window_closed_after_the_application_left_is_given_up() {
    let mut target = Target::new(|_| {});
    let mut peer = RawPeer::new(1);
    let socket = peer.connect(&mut target);
    peer.window = 0;
    peer.send(&mut target, Flags::ACK, &[]);
    target.turn();
    target.write(socket, &[1; 10_000]);
    target.host.close(socket);
    // It answers each probe, and so could hold the memory for ever (CVE-2008-4609).
    for _ in 0..2000 {
        target.wait(Duration::from_secs(1));
        if !peer.take_seen(&mut target).is_empty() {
            peer.send(&mut target, Flags::ACK, &[]);
        }
        if target.host.usage().connections == 0 {
            break;
        }
    }
    target.assert_empty();
}
