//! Two hosts joined back to back in memory.

use super::*;
use crate::host::status::Usage;
use crate::memory_link::MemoryLink;
use crate::socket::{Ready, SocketError};
use core::time::Duration;
use pair::{Pair, SERVER_V4, SERVER_V6, pattern, read, write};

mod changing;
mod draining;
mod external;
mod farewell;
mod fast_opening;
mod full_device;
mod grouping;
mod handing;
mod moving;
mod pair;
mod replies;
mod reusing;
mod services;
mod succession;
mod young;

/// A request of one size, an answer of another, then both ends close: all bytes are right and nothing is left.
fn check_exchange(mut pair: Pair, target: &str, request: usize, response: usize) {
    let listener = pair.listen(target);
    let (client, server) = pair.connect(listener, target);
    let (request, response) = (pattern(request, 1), pattern(response, 2));
    write(&mut pair.client, client, &request);
    let mut got_request = Vec::new();
    let mut got_response = Vec::new();
    let mut answered = false;
    for _ in 0..100_000 {
        pair.turn();
        got_request.extend(read(&mut pair.server, &mut pair.server_link, server));
        got_response.extend(read(&mut pair.client, &mut pair.client_link, client));
        if got_request.len() == request.len() && !answered {
            answered = true;
            write(&mut pair.server, server, &response);
            pair.server.shutdown(server);
        }
        if pair.client.readable(client).finished && pair.client.readable(client).unread == 0 {
            break;
        }
        pair.now = pair.now + Duration::from_micros(50);
    }
    assert!(got_request == request && got_response == response);
    pair.client.close(client);
    pair.run();
    assert!(pair.server.readable(server).finished);
    pair.server.close(server);
    pair.wait(Duration::from_secs(61));
    assert_eq!(pair.usages(), [Usage::default(); 2]);
}

#[test]
fn requests_and_responses_of_all_sizes_arrive_whole_and_leave_nothing() {
    for target in [SERVER_V4, SERVER_V6] {
        for (request, response) in [
            (1, 1),
            (100, 0),
            (100, 1448),
            (100, 1449),
            (3000, 70_000),
            (1_000_000, 3_000_000),
        ] {
            check_exchange(Pair::new(), target, request, response);
        }
    }
}

#[test]
fn a_device_that_cuts_and_sums_gets_long_segments_with_partial_checksums() {
    let link = |number| {
        let properties = LinkProperties {
            address: [2, 0, 0, 0, 0, number],
            mtu: 1500,
            completes_checksums: true,
            segment_bytes_max: 65_535,
            cut_bytes_min: 0,
            sends_external: true,
            frames_per_turn: usize::MAX,
        };
        MemoryLink::new(properties)
    };
    for target in [SERVER_V4, SERVER_V6] {
        check_exchange(
            Pair::over(link(1), link(2), |_| {}),
            target,
            100_000,
            1_000_000,
        );
    }
}

#[test]
fn a_device_with_little_room_gets_everything_in_the_end() {
    for room in [1, 2, 3, 7] {
        let mut links = [MemoryLink::ethernet(1), MemoryLink::ethernet(2)];
        links[0].sent_max = room;
        links[1].sent_max = room;
        let [client, server] = links;
        check_exchange(
            Pair::over(client, server, |_| {}),
            SERVER_V4,
            50_000,
            200_000,
        );
    }
}

#[test]
fn changes_are_reported_once_with_the_owners_number() {
    let mut pair = Pair::new();
    let listener = pair.listen(SERVER_V4);
    let mut acceptable = Vec::new();
    let (client, server) = pair.connect(listener, SERVER_V4);
    let mut ready = Vec::new();
    pair.client.take_ready(&mut ready);
    assert_eq!(
        ready,
        [Ready {
            token: 7,
            socket: client
        }]
    );
    ready.clear();
    pair.client.take_ready(&mut ready);
    pair.server.take_ready(&mut ready);
    assert_eq!(ready, []);
    write(&mut pair.client, client, b"hello");
    write(&mut pair.client, client, b" world");
    pair.run();
    pair.server.take_ready(&mut ready);
    assert_eq!(
        ready,
        [Ready {
            token: 9,
            socket: server
        }]
    );
    assert_eq!(pair.server.readable(server).unread, 11);
    assert_eq!(pair.server.accept(listener, 1), None);
    pair.server.take_acceptable(&mut acceptable);
    assert_eq!(acceptable, []);
}

#[test]
fn a_connection_to_a_port_without_listener_is_refused() {
    let mut pair = Pair::new();
    let socket = pair
        .client
        .connect(SERVER_V4.parse().unwrap(), None, true, 1)
        .unwrap();
    pair.run();
    assert_eq!(
        pair.client.readable(socket).error,
        Some(SocketError::Refused)
    );
    assert!(pair.client.queue(socket).is_none());
    assert_eq!(pair.server.counters().dropped(DropReason::NoListener), 1);
    pair.client.close(socket);
    assert_eq!(pair.client.readable(socket).error, Some(SocketError::Stale));
    assert_eq!(pair.usages(), [Usage::default(); 2]);
}

#[test]
fn a_syn_that_comes_before_its_listener_waits_for_it_where_one_is_expected() {
    let mut pair = Pair::new();
    pair.server.keep_unclaimed_syns();
    let targets = [SERVER_V4, "10.0.0.1:81", "10.0.0.1:82"];
    let sockets = targets.map(|target| {
        let target = target.parse().unwrap();
        pair.client.connect(target, None, true, 1).unwrap()
    });
    pair.run();
    assert!(pair.server.has_unclaimed());
    let (server, link) = (&mut pair.server, &mut pair.server_link);
    server.settle_unclaimed(link, |local| local.port() != 82);
    assert!(!server.has_unclaimed());
    pair.run();
    let errors = |pair: &Pair| sockets.map(|socket| pair.client.readable(socket).error);
    assert_eq!(errors(&pair), [None, None, Some(SocketError::Refused)]);
    let listener = pair.listen(SERVER_V4);
    let (server, link) = (&mut pair.server, &mut pair.server_link);
    server.settle_unclaimed(link, |_| false);
    pair.run();
    assert!(pair.client.is_established(sockets[0]));
    assert!(pair.server.accept(listener, 1).is_some());
    // Where nothing listens in time, the peer's next one is asked for anew.
    pair.wait(Duration::from_millis(1100));
    let (server, link) = (&mut pair.server, &mut pair.server_link);
    server.settle_unclaimed(link, |_| false);
    pair.run();
    assert_eq!(errors(&pair)[1], Some(SocketError::Refused));
}

#[test]
fn a_syn_that_has_waited_too_long_for_its_listener_is_forgotten() {
    let mut pair = Pair::new();
    pair.server.keep_unclaimed_syns();
    let target = SERVER_V4.parse().unwrap();
    let socket = pair.client.connect(target, None, true, 1).unwrap();
    pair.run();
    let (server, link) = (&mut pair.server, &mut pair.server_link);
    server.settle_unclaimed(link, |_| true);
    // The peer does not send it again.
    pair.client.abort(socket);
    pair.wait(Duration::from_millis(1100));
    pair.listen(SERVER_V4);
    let (server, link) = (&mut pair.server, &mut pair.server_link);
    server.settle_unclaimed(link, |_| false);
    assert_eq!(server.usage().half_open, 0);
    assert_eq!(server.counters().dropped(DropReason::NoListener), 1);
}

#[test]
fn a_connection_fails_when_arp_gets_no_answer() {
    let mut pair = Pair::new();
    let target = "10.0.0.77:80".parse().unwrap();
    let socket = pair.client.connect(target, None, true, 1).unwrap();
    pair.wait(Duration::from_millis(2900));
    assert_eq!(pair.client.readable(socket).error, None);
    pair.wait(Duration::from_millis(200));
    assert_eq!(
        pair.client.readable(socket).error,
        Some(SocketError::Unreachable)
    );
    pair.client.close(socket);
    assert_eq!(pair.client.usage(), Usage::default());
}

#[test]
fn a_neighbour_displaced_from_a_full_table_is_not_requested_again_at_once() {
    let [client, server] = [MemoryLink::ethernet(1), MemoryLink::ethernet(2)];
    let mut pair = Pair::over(client, server, |config| config.limits.neighbors_max = 1);
    pair.run();
    let before = pair.client.counters().frames_out;
    for target in ["10.0.0.77:80", "10.0.0.78:80", "10.0.0.79:80"] {
        let target = target.parse().unwrap();
        pair.client.connect(target, None, true, 1).unwrap();
    }
    for _ in 0..100 {
        pair.turn();
    }
    let asked = pair.client.counters().frames_out - before;
    assert_eq!(asked, 3, "each of them has asked once");
}

#[test]
fn bytes_that_a_reader_leaves_stay_readable_in_later_turns() {
    let mut pair = Pair::new();
    let listener = pair.listen(SERVER_V4);
    let (client, server) = pair.connect(listener, SERVER_V4);
    let bytes = pattern(5000, 3);
    write(&mut pair.client, client, &bytes);
    pair.run();
    assert_eq!(pair.server.readable(server).unread, 5000);
    let mut got = Vec::new();
    while got.len() < bytes.len() {
        let some = pair.server.read(server, &mut pair.server_link, |unread| {
            (unread.len().min(7), unread[..unread.len().min(7)].to_vec())
        });
        got.extend(some);
        pair.run();
    }
    assert_eq!(got, bytes);
    assert_eq!(pair.server.usage().buffers, 0);
    assert!(pair.server.counters().bytes_left > 0);
}

#[test]
fn one_segment_is_read_where_it_lies() {
    let mut pair = Pair::new();
    let listener = pair.listen(SERVER_V4);
    let (client, server) = pair.connect(listener, SERVER_V4);
    write(&mut pair.client, client, b"request");
    pair.client.transmit(&mut pair.client_link, pair.now);
    pair.client_link.carry(&mut pair.server_link);
    pair.server.receive(&mut pair.server_link, pair.now);
    assert_eq!(
        (pair.server_link.held(), pair.server.usage().held_frames),
        (1, 1)
    );
    assert_eq!(
        read(&mut pair.server, &mut pair.server_link, server),
        b"request"
    );
    pair.server.settle(&mut pair.server_link);
    assert_eq!(
        (pair.server_link.held(), pair.server.usage().held_frames),
        (0, 0)
    );
    let counters = pair.server.counters();
    assert_eq!((counters.bytes_left, counters.bytes_gathered), (0, 0));
}

#[test]
fn a_long_segment_that_the_device_took_half_of_is_finished_after_the_owner_left() {
    let mut pair = Pair::new();
    let listener = pair.listen(SERVER_V4);
    let (client, server) = pair.connect(listener, SERVER_V4);
    let bytes = pattern(14_000, 4);
    pair.client_link.sent_max = 3;
    write(&mut pair.client, client, &bytes);
    assert!(pair.client.transmit(&mut pair.client_link, pair.now));
    pair.client.close(client);
    pair.run();
    assert_eq!(read(&mut pair.server, &mut pair.server_link, server), bytes);
    assert_eq!(pair.client.tcp_counters().retransmitted, 0);
}

#[test]
fn a_share_of_the_frames_leaves_and_the_rest_when_asked_again() {
    let mut pair = Pair::new();
    let listener = pair.listen(SERVER_V4);
    let sockets: Vec<_> = (0..8).map(|_| pair.connect(listener, SERVER_V4)).collect();
    let bytes = pattern(10 * 1448, 2);
    for (client, _) in &sockets {
        write(&mut pair.client, *client, &bytes);
    }
    let mut transmit = |frames| {
        let before = pair.client.counters().frames_out;
        let sent = pair
            .client
            .transmit_some(&mut pair.client_link, pair.now, frames);
        (sent, pair.client.counters().frames_out - before)
    };
    assert_eq!(transmit(0), (Sent::Share, 0));
    // The turn of the connection at which they are reached is finished.
    assert_eq!(transmit(12), (Sent::Share, 20));
    assert_eq!(transmit(20), (Sent::Share, 20));
    assert_eq!(transmit(1000), (Sent::All, 40));
    pair.run();
    for (_, server) in sockets {
        assert_eq!(read(&mut pair.server, &mut pair.server_link, server), bytes);
    }
}

#[test]
fn ten_thousand_idle_connections_take_less_than_400_bytes_each() {
    let mut pair = Pair::new();
    let count = 10_000;
    let listener = pair.listen(SERVER_V4);
    let mut sockets = Vec::new();
    for _ in 0..count {
        sockets.push(pair.connect(listener, SERVER_V4));
    }
    let usage = pair.server.usage();
    assert_eq!(
        (usage.connections, usage.flows, usage.timers),
        (count, count, 0)
    );
    assert_eq!((usage.buffers, usage.held_frames), (0, 0));
    for host in [&pair.client, &pair.server] {
        let each = host.tables_bytes() / count;
        assert!(each < 400, "{each} bytes");
    }
    // One of them still works.
    let (client, server) = sockets[4321];
    write(&mut pair.client, client, b"hello");
    pair.run();
    assert_eq!(
        read(&mut pair.server, &mut pair.server_link, server),
        b"hello"
    );
    for (client, server) in sockets {
        pair.client.close(client);
        pair.server.close(server);
    }
    pair.wait(Duration::from_secs(61));
    assert_eq!(pair.usages(), [Usage::default(); 2]);
}

/// RFC 4861 7.3.1.
#[test]
fn neighbours_by_way_of_which_data_arrives_are_not_asked_for() {
    for target in [SERVER_V4, SERVER_V6] {
        let mut pair = Pair::new();
        let listener = pair.listen(target);
        let (client, server) = pair.connect(listener, target);
        pair.wait(Duration::from_secs(10));
        // Frames that carry no segment are questions and answers of ARP or neighbour discovery.
        let others = |host: &Host<_>| host.counters().frames_out - host.tcp_counters().segments_out;
        let before = [others(&pair.client), others(&pair.server)];
        for _ in 0..120 {
            write(&mut pair.client, client, b"ping");
            write(&mut pair.server, server, b"pong");
            pair.wait(Duration::from_secs(1));
            read(&mut pair.server, &mut pair.server_link, server);
            read(&mut pair.client, &mut pair.client_link, client);
        }
        let after = [others(&pair.client), others(&pair.server)];
        assert_eq!(after, before, "{target}");
        // A neighbour that was silent for longer is probed.
        pair.wait(Duration::from_secs(60));
        write(&mut pair.client, client, b"ping");
        pair.wait(Duration::from_secs(1));
        pair.wait(Duration::from_secs(10));
        assert_eq!(pair.client.readable(client).error, None);
    }
}
