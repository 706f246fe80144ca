//! Where replies are sent: when the kernel resolves neighbours, and while a neighbour is asked for.

use super::changing::{
    CLIENT, CLIENT_MAC, NO_NEIGHBORS, OTHER_MAC, SERVER, SERVER_MAC, connected, gateway, ip,
    kernels, wanted,
};
use super::pair::{Pair, SERVER_V4, turn_of, write};
use super::*;
use crate::memory_link::Frame;
use mill_wire::ethernet::MacAddress;

/// Where the server's frames of this turn go; they are lost.
fn targets_of_server(pair: &mut Pair) -> Vec<MacAddress> {
    turn_of(&mut pair.server, &mut pair.server_link, pair.now);
    let sent = pair.server_link.sent.drain(..);
    sent.map(|frame| MacAddress(*frame.bytes.first_chunk().unwrap()))
        .collect()
}

#[test]
fn a_reply_goes_to_where_the_request_came_from_until_the_kernel_says_otherwise() {
    let mut pair = kernels();
    let (_, server) = connected(&mut pair);
    let send = |pair: &mut Pair| {
        write(&mut pair.server, server, b"data");
        let targets = targets_of_server(pair);
        pair.now = pair.now + Duration::from_millis(1);
        targets
    };
    assert_eq!(send(&mut pair), [CLIENT_MAC]);
    // Other neighbours are reported, removed and changed.
    pair.server.set_neighbor(ip("10.0.0.7"), Some(OTHER_MAC));
    pair.server.set_neighbor(ip("10.0.0.7"), None);
    pair.server.set_routes(&[gateway("0.0.0.0/0", "10.0.0.7")]);
    assert_eq!(send(&mut pair), [CLIENT_MAC]);
    // The router that it came by has another card now.
    pair.server.set_neighbor(ip("10.0.0.8"), Some(CLIENT_MAC));
    pair.server.set_neighbor(ip("10.0.0.8"), Some(OTHER_MAC));
    assert_eq!(send(&mut pair), [OTHER_MAC]);
    // The kernel reports the host itself.
    pair.server.set_neighbor(ip(CLIENT), Some(CLIENT_MAC));
    assert_eq!(send(&mut pair), [CLIENT_MAC]);
    pair.server.set_neighbor(ip(CLIENT), None);
    assert_eq!(send(&mut pair), [CLIENT_MAC]);
    assert_eq!(wanted(&mut pair.server), NO_NEIGHBORS);
}

#[test]
fn after_three_timeouts_the_routes_say_where_a_reply_goes() {
    let mut pair = kernels();
    let (_, server) = connected(&mut pair);
    write(&mut pair.server, server, b"data");
    let mut sent = 0;
    for _ in 0..20_000 {
        sent += targets_of_server(&mut pair).len();
        if wanted(&mut pair.server) == [ip(CLIENT)] {
            break;
        }
        pair.now = pair.now + Duration::from_millis(1);
    }
    // Once, as a probe of the tail, and after each of the first two timeouts.
    assert_eq!(sent, 4);
    pair.server.set_neighbor(ip(CLIENT), Some(OTHER_MAC));
    assert_eq!(targets_of_server(&mut pair), [OTHER_MAC]);
}

#[test]
fn an_answer_without_a_connection_goes_to_where_the_segment_came_from() {
    let mut pair = kernels();
    pair.client.set_neighbor(ip(SERVER), Some(SERVER_MAC));
    let target = SERVER_V4.parse().unwrap();
    let socket = pair.client.connect(target, None, true, 7).unwrap();
    pair.run();
    let error = pair.client.readable(socket).error;
    assert_eq!(error, Some(SocketError::Refused));
    assert_eq!(wanted(&mut pair.server), NO_NEIGHBORS);
    // If the kernel knows the host the answer goes there.
    pair.server.set_neighbor(ip(CLIENT), Some(OTHER_MAC));
    pair.client.connect(target, None, true, 8).unwrap();
    turn_of(&mut pair.client, &mut pair.client_link, pair.now);
    pair.client_link.carry(&mut pair.server_link);
    assert_eq!(targets_of_server(&mut pair), [OTHER_MAC]);
}

/// A server that knows no neighbours, and has received the SYN of a client that knows it: as after a change of the binary over a memif.
fn before_any_neighbour_is_known() -> Pair {
    let mut pair = Pair::new();
    let target = SERVER_V4.parse().unwrap();
    pair.client.connect(target, None, true, 7).unwrap();
    pair.run();
    pair.server = Pair::new().server;
    targets_of_server(&mut pair);
    pair.listen(SERVER_V4);
    pair.client.connect(target, None, true, 8).unwrap();
    turn_of(&mut pair.client, &mut pair.client_link, pair.now);
    pair.client_link.carry(&mut pair.server_link);
    pair
}

#[test]
fn the_answer_to_a_syn_leaves_before_the_neighbour_has_been_found() {
    let mut pair = before_any_neighbour_is_known();
    let sent = targets_of_server(&mut pair);
    let client = MacAddress(pair.client_link.properties().address);
    assert_eq!(sent.len(), 2, "a question and a SYN-ACK");
    assert!(sent.contains(&MacAddress::BROADCAST) && sent.contains(&client));
}

/// The client opens one more connection, with a SYN that seems to come from this Ethernet address. It asks and answers no questions.
fn open_from(pair: &mut Pair, mac: MacAddress) {
    let target = SERVER_V4.parse().unwrap();
    pair.client.connect(target, None, true, 9).unwrap();
    turn_of(&mut pair.client, &mut pair.client_link, pair.now);
    let is_ipv4 = |frame: &Frame| frame.bytes.get(12..14) == Some(&[0x08, 0x00]);
    pair.client_link.sent.retain(is_ipv4);
    for frame in &mut pair.client_link.sent {
        frame.bytes[6..12].copy_from_slice(&mac.0);
    }
    pair.client_link.carry(&mut pair.server_link);
}

#[test]
fn the_answer_to_each_syn_goes_to_where_that_one_came_from() {
    let mut pair = before_any_neighbour_is_known();
    targets_of_server(&mut pair);
    let client = MacAddress(pair.client_link.properties().address);
    for mac in [OTHER_MAC, client, OTHER_MAC] {
        open_from(&mut pair, mac);
        assert_eq!(targets_of_server(&mut pair), [mac]);
    }
}

#[test]
fn syns_that_keep_coming_from_a_host_that_answers_no_question_make_it_no_more_reachable() {
    let mut pair = before_any_neighbour_is_known();
    targets_of_server(&mut pair);
    let target = alloc::format!("{CLIENT}:9").parse().unwrap();
    let socket = pair.server.connect(target, None, true, 7).unwrap();
    let sent = targets_of_server(&mut pair);
    assert!(sent.is_empty(), "its SYN waits: {sent:?}");
    for _ in 0..50 {
        open_from(&mut pair, OTHER_MAC);
        targets_of_server(&mut pair);
        pair.now = pair.now + Duration::from_millis(100);
    }
    let error = pair.server.readable(socket).error;
    assert_eq!(error, Some(SocketError::Unreachable));
}

#[test]
fn a_host_that_answers_no_question_is_unreachable_although_a_syn_has_come_from_its_address() {
    let mut pair = before_any_neighbour_is_known();
    let wait = |pair: &mut Pair| {
        for _ in 0..50 {
            targets_of_server(pair);
            pair.now = pair.now + Duration::from_millis(100);
        }
    };
    wait(&mut pair);
    let target = alloc::format!("{CLIENT}:9").parse().unwrap();
    let socket = pair.server.connect(target, None, true, 7).unwrap();
    wait(&mut pair);
    let error = pair.server.readable(socket).error;
    assert_eq!(error, Some(SocketError::Unreachable));
}
