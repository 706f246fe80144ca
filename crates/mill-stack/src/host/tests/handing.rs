//! Two hosts behind one address, one after the other: the newer one hands segments of unknown flows over to the older
//! one.

use super::pair::turn_of;
use super::succession::Succession;
use super::*;
use crate::flow::Flow;
use crate::flow_directory::FlowDirectory;
use crate::memory_link::Frame;
use alloc::boxed::Box;
use mill_wire::ethernet::{EtherType, EthernetHeader};

#[test]
fn a_connection_of_the_older_host_goes_on_behind_the_newer() {
    for target in [SERVER_V4, SERVER_V6] {
        let mut world = Succession::new(|_| {});
        let listener = world.pair.listen(target);
        let (client, server) = world.pair.connect(listener, target);
        let sent = pattern(1_000_000, 3);
        write(&mut world.pair.server, server, &sent);
        let mut got = Vec::new();
        for _ in 0..100_000 {
            if world.younger.is_none() && got.len() > 50_000 {
                assert!(got.len() < sent.len());
                world.succeed(true);
            }
            world.turn();
            let pair = &mut world.pair;
            got.extend(read(&mut pair.client, &mut pair.client_link, client));
            if got.len() == sent.len() {
                break;
            }
            pair.now = pair.now + Duration::from_micros(50);
        }
        assert!(got == sent, "{target}");
        world.pair.client.close(client);
        world.run();
        assert!(world.pair.server.readable(server).finished);
        assert!(world.younger().counters().handed_over > 0);
        assert_eq!(world.younger().tcp_counters().resets_out, 0);
        assert_eq!(world.pair.server.tcp_counters().resets_out, 0);
    }
}

#[test]
fn new_connections_are_the_newer_hosts_where_it_listens() {
    let mut world = Succession::new(|_| {});
    let listener = world.pair.listen(SERVER_V4);
    world.succeed(true);
    assert!(world.connect(SERVER_V4).1);
    assert_eq!(world.pair.server.accept(listener, 1), None);
    assert_eq!(world.younger().counters().handed_over, 0);
    let mut world = Succession::new(|_| {});
    let listener = world.pair.listen(SERVER_V4);
    world.succeed(false);
    assert!(world.connect(SERVER_V4).1);
    assert!(world.pair.server.accept(listener, 1).is_some());
}

#[test]
fn a_segment_of_an_unknown_flow_is_rejected_once() {
    let mut world = Succession::new(|_| {});
    world.succeed(true);
    let (socket, is_established) = world.connect("10.0.0.1:81");
    assert!(!is_established);
    assert_eq!(
        world.pair.client.readable(socket).error,
        Some(SocketError::Refused)
    );
    assert_eq!(world.younger().tcp_counters().resets_out, 0);
    assert_eq!(world.pair.server.tcp_counters().resets_out, 1);
    let none = DropReason::NoListener;
    assert_eq!(world.younger().counters().dropped(none), 0);
    assert_eq!(world.pair.server.counters().dropped(none), 1);
}

/// The older host's SYN-ACK carries the whole state; the host that receives its answer has none.
#[test]
fn a_cookie_of_the_older_host_is_valid_behind_the_newer() {
    for half_open_max in [0, 1000] {
        let mut world = Succession::new(|config| config.limits.half_open_max = half_open_max);
        let listener = world.pair.listen(SERVER_V4);
        let target = SERVER_V4.parse().unwrap();
        let client = world.pair.client.connect(target, None, true, 7).unwrap();
        while world.pair.server.counters().syns_in == 0 {
            turn_of(
                &mut world.pair.client,
                &mut world.pair.client_link,
                world.pair.now,
            );
            let Pair {
                server,
                server_link,
                client_link,
                now,
                ..
            } = &mut world.pair;
            client_link.carry(server_link);
            turn_of(server, server_link, *now);
            let is_arp = |frame: &Frame| {
                EthernetHeader::parse(&frame.bytes)
                    .is_ok_and(|(header, _)| header.ether_type == EtherType::ARP)
            };
            while server_link.sent.front().is_some_and(is_arp) {
                client_link.arrived.extend(server_link.sent.pop_front());
            }
        }
        world.succeed(true);
        world.run();
        assert!(world.pair.client.is_established(client));
        let elder = *world.pair.server.counters();
        assert!(world.pair.server.accept(listener, 1).is_some(), "{elder:?}");
        let cookies = world.pair.server.counters().cookies_taken;
        assert_eq!(cookies, u64::from(half_open_max == 0));
        assert_eq!(world.younger().counters().handed_over, 1);
    }
}

/// A reset gets no answer, and yet its connection may be the older host's.
#[test]
fn a_reset_reaches_the_older_hosts_connection() {
    let mut world = Succession::new(|_| {});
    let listener = world.pair.listen(SERVER_V4);
    let (client, server) = world.pair.connect(listener, SERVER_V4);
    world.succeed(true);
    world.pair.client.abort(client);
    world.run();
    assert_eq!(
        world.pair.server.readable(server).error,
        Some(SocketError::Reset)
    );
}

/// All flows are of a host that is there no more.
#[derive(Debug)]
struct OfTheDead;

impl FlowDirectory for OfTheDead {
    fn insert(&mut self, _flow: &Flow) {}
    fn note_time_wait(&mut self, _flow: &Flow) {}
    fn note_moving(&mut self, _flow: &Flow) {}
    fn remove(&mut self, _flow: &Flow) {}
    fn is_elsewhere(&self, _flow: &Flow) -> bool {
        true
    }
}

/// A client uses the port of an earlier connection again. To the link there is no way to the process that was killed.
#[test]
fn a_new_connection_whose_flow_is_listed_as_of_a_killed_process_is_taken() {
    let mut pair = Pair::new();
    let listener = pair.listen(SERVER_V4);
    let server = &mut pair.server;
    server.flows.list(&server.slots, Box::new(OfTheDead));
    assert!(pair.server_link.handed.is_none());
    let (client, server) = pair.connect(listener, SERVER_V4);
    write(&mut pair.client, client, b"hello");
    pair.run();
    let got = read(&mut pair.server, &mut pair.server_link, server);
    assert_eq!(got, b"hello");
}
