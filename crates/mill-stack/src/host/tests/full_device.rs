//! A device that takes less than there is to send: which frames leave first.

use super::pair::{Pair, SERVER_V4, pattern, read, write};
use crate::link::{Link, LinkProperties};
use crate::memory_link::MemoryLink;
use crate::queue::SendQueue;
use alloc::vec::Vec;
use mill_wire::ipv4::Ecn;

/// One connection has always something to send, and the device takes `room` frames a turn, so that it is full after
/// each. Data of another connection arrives nevertheless, after `turns_max` turns at most.
fn check_is_heard_beside_a_busy_one(mut link: MemoryLink, room: usize, turns_max: usize) {
    link.sent_max = room;
    let mut pair = Pair::over(link, MemoryLink::ethernet(2), |_| {});
    let listener = pair.listen(SERVER_V4);
    let (busy, busy_server) = pair.connect(listener, SERVER_V4);
    let (quiet, quiet_server) = pair.connect(listener, SERVER_V4);
    let bytes = pattern(100_000, 1);
    let mut turns = None;
    for turn in 0..1_000 {
        if pair.client.queue(busy).unwrap().len() < 50_000 {
            write(&mut pair.client, busy, &bytes);
        }
        if turn == 500 {
            write(&mut pair.client, quiet, b"quiet");
        }
        pair.turn();
        read(&mut pair.server, &mut pair.server_link, busy_server);
        if !read(&mut pair.server, &mut pair.server_link, quiet_server).is_empty() {
            turns = Some(turn - 500);
            break;
        }
    }
    assert!(
        turns.is_some_and(|turns| turns <= turns_max),
        "{turns:?} turns, room for {room} frames"
    );
}

#[test]
fn a_full_device_is_shared_by_all_connections_that_have_something_to_send() {
    let cutting = || {
        MemoryLink::new(LinkProperties {
            segment_bytes_max: 65_535,
            ..*MemoryLink::ethernet(1).properties()
        })
    };
    // What leaves first is the busy one's turn: up to four segments, which are 16 frames each where we cut them.
    for room in [1, 2, 3, 4, 5, 7, 16] {
        check_is_heard_beside_a_busy_one(cutting(), room, 4 / room + 1);
        check_is_heard_beside_a_busy_one(MemoryLink::ethernet(1), room, 4 * 16 / room + 1);
    }
}

/// The server's device takes `room` frames a turn, and `flood` makes more than that in each: data of a connection
/// arrives nevertheless.
fn check_is_heard_beside(flood: fn(&mut Pair), room: usize) {
    let mut pair = Pair::new();
    let listener = pair.listen(SERVER_V4);
    let (client, server) = pair.connect(listener, SERVER_V4);
    pair.server_link.sent_max = room;
    let bytes = pattern(20_000, 1);
    write(&mut pair.server, server, &bytes);
    let frames_before = pair.server.counters().frames_out;
    let (mut got, mut turns) = (Vec::new(), 0);
    while got.len() < bytes.len() {
        flood(&mut pair);
        pair.turn();
        got.extend(read(&mut pair.client, &mut pair.client_link, client));
        turns += 1;
        let came = got.len();
        assert!(turns < 100, "{came} bytes, room for {room} frames");
    }
    assert_eq!(got, bytes);
    assert!(pair.server.usage().waiting > 0, "there was no flood");
    // Nor does the connection keep the flood from leaving.
    let own = bytes.len().div_ceil(1_448) as u64;
    let others = pair.server.counters().frames_out - frames_before - own;
    assert!(others >= own / 2, "{others} frames, room for {room}");
}

#[test]
fn connections_go_on_beside_answers_and_datagrams_that_fill_the_device() {
    for room in [1, 2, 3, 4, 5, 7] {
        check_is_heard_beside(write_datagrams, room);
        check_is_heard_beside(open_connections, room);
    }
}

fn write_datagrams(pair: &mut Pair) {
    let [source, target] = ["10.0.0.1:9", "10.0.0.2:9"].map(|it| it.parse().unwrap());
    for _ in 0..10 {
        // What finds no room is not sent.
        let _ = pair
            .server
            .write_udp(source, source.ip(), target, Ecn::NotCapable, b"flood");
    }
}

/// Each SYN is answered.
fn open_connections(pair: &mut Pair) {
    for _ in 0..10 {
        let target = SERVER_V4.parse().unwrap();
        pair.client.connect(target, None, true, 1).unwrap();
    }
}
