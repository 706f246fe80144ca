//! Hosts whose neighbours, addresses and routes are the kernel's, and change.

use super::pair::{Pair, SERVER_V4, SERVER_V6, pattern, read, turn_of, write};
use super::*;
use crate::config::{HostConfig, Neighboring, Prefix, Route};
use crate::link::LinkChange;
use crate::socket::{ConnectError, SocketId};
use core::net::IpAddr;
use mill_wire::ethernet::MacAddress;

pub(super) const CLIENT_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
pub(super) const SERVER_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
pub(super) const OTHER_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);

pub(super) const NO_NEIGHBORS: [IpAddr; 0] = [];

pub(super) const CLIENT: &str = "10.0.0.2";
pub(super) const SERVER: &str = "10.0.0.1";

pub(super) fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub(super) fn prefix(text: &str) -> Prefix {
    let (address, len) = text.split_once('/').unwrap();
    Prefix {
        address: ip(address),
        len: len.parse().unwrap(),
    }
}

pub(super) fn gateway(target: &str, gateway: &str) -> Route {
    Route {
        target: prefix(target),
        gateway: ip(gateway),
    }
}

fn of_kernel(config: &mut HostConfig) {
    config.neighbors = Neighboring::Kernel;
    config.routes = ["10.0.0.0/24", "fd00::/64"]
        .map(|text| Route::on_link(prefix(text)))
        .to_vec();
}

pub(super) fn kernels() -> Pair {
    let links = [MemoryLink::ethernet(1), MemoryLink::ethernet(2)];
    let [client, server] = links;
    Pair::over(client, server, of_kernel)
}

pub(super) fn wanted(host: &mut Host<crate::queue::ByteQueue>) -> Vec<IpAddr> {
    let mut wanted = Vec::new();
    host.take_wanted(&mut wanted);
    wanted
}

/// An established connection of hosts that learn of neighbours only from the test.
pub(super) fn connected(pair: &mut Pair) -> (SocketId, SocketId) {
    pair.client.set_neighbor(ip(SERVER), Some(SERVER_MAC));
    let listener = pair.listen(SERVER_V4);
    pair.connect(listener, SERVER_V4)
}

/// Frames that carry no segment: requests and answers of ARP or neighbour discovery.
fn others(link: &MemoryLink) -> usize {
    let segments = link.sent.iter().filter(|frame| {
        let bytes = &frame.bytes;
        let (is_ipv4, is_ipv6) = (bytes[12..14] == [8, 0], bytes[12..14] == [0x86, 0xdd]);
        (is_ipv4 && bytes[23] == 6) || (is_ipv6 && bytes[20] == 6)
    });
    link.sent.len() - segments.count()
}

/// Turns until nothing moves; only segments are sent.
fn run(pair: &mut Pair) {
    loop {
        turn_of(&mut pair.client, &mut pair.client_link, pair.now);
        turn_of(&mut pair.server, &mut pair.server_link, pair.now);
        assert_eq!([&pair.client_link, &pair.server_link].map(others), [0, 0]);
        let moved = pair.client_link.carry(&mut pair.server_link);
        if moved + pair.server_link.carry(&mut pair.client_link) == 0 {
            return;
        }
    }
}

#[test]
fn an_unknown_neighbour_is_wanted_of_the_kernel_and_nothing_is_sent_before_its_answer() {
    for target in [SERVER_V4, SERVER_V6] {
        let mut pair = kernels();
        let listener = pair.listen(target);
        let server = target.parse::<core::net::SocketAddr>().unwrap();
        let client = pair.client.connect(server, None, true, 7).unwrap();
        run(&mut pair);
        assert_eq!(pair.client.counters().frames_out, 0);
        assert_eq!(wanted(&mut pair.client), [server.ip()]);
        pair.client.set_neighbor(server.ip(), Some(SERVER_MAC));
        run(&mut pair);
        assert!(pair.client.is_established(client));
        let accepted = pair.server.accept(listener, 9).unwrap();
        let bytes = pattern(50_000, 1);
        write(&mut pair.server, accepted, &bytes);
        let mut got = Vec::new();
        while got.len() < bytes.len() {
            run(&mut pair);
            let some = read(&mut pair.client, &mut pair.client_link, client);
            assert!(!some.is_empty(), "{} bytes have arrived", got.len());
            got.extend(some);
        }
        assert!(got == bytes);
        assert_eq!(
            wanted(&mut pair.server),
            NO_NEIGHBORS,
            "it knows where the SYN came from"
        );
        pair.client.close(client);
        pair.server.close(accepted);
        for _ in 0..200 {
            run(&mut pair);
            pair.now = pair.now + Duration::from_secs(1);
        }
        assert_eq!(pair.usages(), [Usage::default(); 2]);
    }
}

#[test]
fn a_neighbour_without_an_answer_of_the_kernel_is_wanted_three_times_and_then_absent() {
    let mut pair = kernels();
    let socket = pair
        .client
        .connect(SERVER_V4.parse().unwrap(), None, true, 7);
    let socket = socket.unwrap();
    for _ in 0..3 {
        assert_eq!(pair.client.readable(socket).error, None);
        pair.run();
        assert_eq!(wanted(&mut pair.client), [ip(SERVER)]);
        assert_eq!(wanted(&mut pair.client), NO_NEIGHBORS, "once");
        pair.wait(Duration::from_secs(1));
    }
    let error = pair.client.readable(socket).error;
    assert_eq!(error, Some(SocketError::Unreachable));
    assert_eq!(wanted(&mut pair.client), NO_NEIGHBORS);
    pair.client.close(socket);
    assert_eq!(pair.usages(), [Usage::default(); 2]);
}

#[test]
fn a_neighbour_that_the_kernel_has_not_found_is_unreachable_at_once() {
    let mut pair = kernels();
    let target = SERVER_V4.parse().unwrap();
    let socket = pair.client.connect(target, None, true, 7).unwrap();
    pair.run();
    pair.client.set_neighbor(ip(SERVER), None);
    pair.run();
    let error = pair.client.readable(socket).error;
    assert_eq!(error, Some(SocketError::Unreachable));
    // Later it is requested again.
    pair.wait(Duration::from_millis(1001));
    let again = pair.client.connect(target, None, true, 8).unwrap();
    wanted(&mut pair.client);
    pair.run();
    assert_eq!(wanted(&mut pair.client), [ip(SERVER)]);
    pair.listen(SERVER_V4);
    pair.client.set_neighbor(ip(SERVER), Some(SERVER_MAC));
    pair.run();
    assert!(pair.client.is_established(again));
}

#[test]
fn a_neighbour_in_use_and_not_confirmed_is_wanted_again_and_used_meanwhile() {
    let mut pair = kernels();
    let (client, _) = connected(&mut pair);
    assert_eq!(wanted(&mut pair.client), NO_NEIGHBORS);
    pair.wait(Duration::from_secs(31));
    assert_eq!(wanted(&mut pair.client), NO_NEIGHBORS, "unused");
    // None of what is sent is acknowledged.
    write(&mut pair.client, client, b"ping");
    turn_of(&mut pair.client, &mut pair.client_link, pair.now);
    assert_eq!(pair.client_link.sent.len(), 1);
    assert_eq!(wanted(&mut pair.client), [ip(SERVER)]);
    // Removed by the kernel, it is requested anew.
    pair.client.set_neighbor(ip(SERVER), None);
    pair.client_link.sent.clear();
    pair.wait(Duration::from_millis(400));
    assert_eq!(wanted(&mut pair.client), [ip(SERVER)]);
    pair.client.set_neighbor(ip(SERVER), Some(SERVER_MAC));
    pair.wait(Duration::from_secs(1));
    assert_eq!(pair.server.readable(accepted(&pair)).unread, 4);
}

/// The server's only connection.
fn accepted(pair: &Pair) -> SocketId {
    let slot = pair.server.slots.iter().next();
    slot.map(|(index, slot)| slot.id(index)).unwrap()
}

#[test]
fn connections_of_an_address_that_is_gone_wait_for_it_and_new_ones_are_refused() {
    for change in [of_kernel, |_: &mut HostConfig| {}] {
        let links = [MemoryLink::ethernet(1), MemoryLink::ethernet(2)];
        let [client, server] = links;
        let mut pair = Pair::over(client, server, change);
        let (client, server) = connected(&mut pair);
        pair.server.set_addresses(&[prefix("10.0.0.3/24")]);
        let target = SERVER_V4.parse().unwrap();
        let late = pair.client.connect(target, None, true, 8).unwrap();
        write(&mut pair.server, server, b"data");
        pair.wait(Duration::from_secs(2));
        assert_eq!(pair.client.readable(client).unread, 0);
        assert!(!pair.client.is_established(late));
        let dropped = pair.server.counters();
        assert!(dropped.dropped(DropReason::NotForUs) > 0);
        assert!(dropped.dropped(DropReason::NoRoute) > 0);
        pair.server.set_addresses(&[prefix("10.0.0.1/24")]);
        pair.wait(Duration::from_secs(10));
        assert_eq!(pair.client.readable(client).unread, 4);
        assert!(pair.client.is_established(late));
        assert_eq!(pair.server.readable(server).error, None);
    }
}

#[test]
fn an_address_that_goes_for_good_lets_its_connections_time_out() {
    let mut pair = kernels();
    let (client, server) = connected(&mut pair);
    pair.server.set_addresses(&[]);
    write(&mut pair.server, server, b"data");
    pair.wait(Duration::from_secs(3600));
    let error = pair.server.readable(server).error;
    assert_eq!(error, Some(SocketError::Unreachable));
    pair.server.close(server);
    assert_eq!(pair.server.usage(), Usage::default());
    assert_eq!(pair.client.readable(client).error, None);
}

#[test]
fn a_connection_that_waits_for_a_router_uses_another_one_when_the_routes_change() {
    let mut pair = kernels();
    let target = "192.0.2.1:80".parse().unwrap();
    let refused = pair.client.connect(target, None, true, 7);
    assert_eq!(refused.unwrap_err(), ConnectError::NoRoute);
    assert!(!pair.client.reaches(target.ip()));
    pair.client.set_routes(&[gateway("0.0.0.0/0", "10.0.0.7")]);
    assert!(pair.client.reaches(target.ip()));
    pair.client.connect(target, None, true, 7).unwrap();
    pair.run();
    assert_eq!(wanted(&mut pair.client), [ip("10.0.0.7")]);
    pair.client.set_neighbor(ip("10.0.0.8"), Some(OTHER_MAC));
    pair.client.set_routes(&[gateway("0.0.0.0/0", "10.0.0.8")]);
    turn_of(&mut pair.client, &mut pair.client_link, pair.now);
    assert_eq!(pair.client_link.sent[0].bytes[..6], OTHER_MAC.0);
    pair.client.set_elsewhere(&[prefix("192.0.2.0/24")]);
    assert!(!pair.client.reaches(target.ip()));
    pair.client.set_elsewhere(&[]);
    assert!(pair.client.reaches(target.ip()));
}

#[test]
fn a_link_that_carries_less_gets_shorter_frames_and_one_that_carries_more_gets_longer_ones() {
    let mut pair = kernels();
    let (client, server) = connected(&mut pair);
    let longest = |pair: &mut Pair, to: SocketId, from: SocketId| {
        let bytes = pattern(30_000, 5);
        write(&mut pair.server, from, &bytes);
        let (mut longest, mut got) = (0, Vec::new());
        while got.len() < bytes.len() {
            turn_of(&mut pair.server, &mut pair.server_link, pair.now);
            let lens = pair.server_link.sent.iter().map(|frame| frame.bytes.len());
            longest = longest.max(lens.max().unwrap_or(0));
            pair.server_link.carry(&mut pair.client_link);
            pair.turn();
            got.extend(read(&mut pair.client, &mut pair.client_link, to));
            pair.now = pair.now + Duration::from_micros(100);
        }
        assert!(got == bytes);
        longest
    };
    assert_eq!(longest(&mut pair, client, server), 1514);
    pair.server.set_mtu(1000);
    assert_eq!(longest(&mut pair, client, server), 1014);
    pair.server.set_mtu(9000);
    pair.client.set_mtu(9000);
    assert_eq!(
        longest(&mut pair, client, server),
        1014,
        "what it has, it keeps"
    );
    let listener = pair.listen("10.0.0.1:81");
    let (client, server) = pair.connect(listener, "10.0.0.1:81");
    assert_eq!(longest(&mut pair, client, server), 9014);
}

#[test]
fn an_interface_that_gets_another_ethernet_address_sends_from_it_and_takes_frames_to_it() {
    let mut pair = kernels();
    let (client, server) = connected(&mut pair);
    pair.server.set_hardware_address(OTHER_MAC);
    write(&mut pair.client, client, b"lost");
    pair.wait(Duration::from_secs(1));
    assert_eq!(pair.server.readable(server).unread, 0);
    pair.client.set_neighbor(ip(SERVER), Some(OTHER_MAC));
    pair.wait(Duration::from_secs(2));
    assert_eq!(pair.server.readable(server).unread, 4);
    write(&mut pair.server, server, b"data");
    turn_of(&mut pair.server, &mut pair.server_link, pair.now);
    assert_eq!(pair.server_link.sent[0].bytes[6..12], OTHER_MAC.0);
}

#[test]
fn of_more_neighbors_than_fit_those_in_use_stay() {
    let [client, server] = [MemoryLink::ethernet(1), MemoryLink::ethernet(2)];
    let mut pair = Pair::over(client, server, |config| {
        of_kernel(config);
        config.limits.neighbors_max = 8;
    });
    let (client, _) = connected(&mut pair);
    for last in 100..200 {
        let address = IpAddr::from([10, 0, 0, last]);
        pair.client.set_neighbor(address, Some(OTHER_MAC));
    }
    write(&mut pair.client, client, b"ping");
    pair.run();
    assert_eq!(wanted(&mut pair.client), NO_NEIGHBORS);
    assert_eq!(pair.client.next_hops.neighbors.len(), 8);
}

#[test]
fn no_more_neighbors_are_wanted_at_once_than_the_kernel_can_bear() {
    let mut pair = kernels();
    for last in 0..600_u16 {
        let [high, low] = last.to_be_bytes();
        let target = (IpAddr::from([10, 1, high, low]), 80).into();
        pair.client
            .set_routes(&[Route::on_link(prefix("10.0.0.0/8"))]);
        pair.client.connect(target, None, true, 7).unwrap();
    }
    pair.run();
    assert_eq!(wanted(&mut pair.client).len(), 256);
}

#[test]
fn zero_broadcast_and_group_addresses_are_no_neighbors() {
    let mut pair = kernels();
    let target = SERVER_V4.parse().unwrap();
    pair.client.connect(target, None, true, 7).unwrap();
    for mac in [MacAddress::BROADCAST, MacAddress::UNSPECIFIED] {
        pair.client.set_neighbor(ip(SERVER), Some(mac));
        pair.run();
        assert_eq!(pair.client.counters().frames_out, 0, "{mac}");
    }
}

#[test]
fn closed_connections_with_data_in_flight_end_in_silence_when_the_peer_of_the_link_is_gone() {
    let mut pair = Pair::new();
    let listener = pair.listen(SERVER_V4);
    let (client, server) = pair.connect(listener, SERVER_V4);
    // The second of two segments, so that the server holds data out of order.
    write(&mut pair.client, client, &pattern(1000, 2));
    turn_of(&mut pair.client, &mut pair.client_link, pair.now);
    pair.client_link.sent.clear();
    write(&mut pair.client, client, &pattern(1000, 3));
    turn_of(&mut pair.client, &mut pair.client_link, pair.now);
    assert_ne!(pair.client_link.carry(&mut pair.server_link), 0);
    turn_of(&mut pair.server, &mut pair.server_link, pair.now);
    assert_ne!(pair.server.usage().unread_bytes, 0);
    pair.server_link.sent.clear();
    write(&mut pair.server, server, &pattern(3000, 1));
    pair.server.close(server);
    turn_of(&mut pair.server, &mut pair.server_link, pair.now);
    assert_ne!(pair.server_link.sent.len(), 0);
    pair.server_link.sent.clear();
    pair.server.on_change(&LinkChange::PeerGone, pair.now);
    turn_of(&mut pair.server, &mut pair.server_link, pair.now);
    assert_eq!(pair.server_link.sent.len(), 0);
    assert_eq!(pair.server.usage(), Usage::default());
}
