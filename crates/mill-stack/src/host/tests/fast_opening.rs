//! Fast Open between two hosts (RFC 7413): the first connection fetches a cookie, the next ones use it.

use super::pair::{Pair, SERVER_V4, SERVER_V6, pattern, read, write};
use crate::memory_link::MemoryLink;
use crate::socket::{ListenOptions, SocketId, SocketOptions};
use core::net::SocketAddr;
use core::time::Duration;
use mill_tcp::config::Dscp;

const FAST: SocketOptions = SocketOptions {
    mss_max: None,
    congestion: None,
    keepalive: None,
    receive_buffer_bytes: None,
    user_timeout: None,
    syn_retries_max: None,
    dscp: Dscp { ipv4: 0, ipv6: 0 },
    fast_open: true,
    fast_open_without_cookie: false,
};

/// A server that takes text in a SYN, and whether without a cookie.
fn listening(target: &str, without_cookie: bool) -> Pair {
    let links = (MemoryLink::ethernet(1), MemoryLink::ethernet(2));
    let mut pair = Pair::over(links.0, links.1, |_| {});
    let options = ListenOptions {
        fast_open: Some(10),
        fast_open_without_cookie: without_cookie,
        ..ListenOptions::default()
    };
    let address = target.parse().unwrap();
    pair.server.listen(address, &options).unwrap();
    pair
}

fn open(pair: &mut Pair, target: &str, options: SocketOptions, request: &[u8]) -> SocketId {
    let target = target.parse().unwrap();
    let client = pair
        .client
        .connect_with(target, None, true, options, 1, |_| true)
        .unwrap();
    write(&mut pair.client, client, request);
    client
}

/// Opens a connection with a request, which arrives whole; how many requests have come with a SYN by then.
fn check(pair: &mut Pair, target: &str, options: SocketOptions, expected: u64) {
    let request = pattern(3_000, 7);
    let listener = {
        let client = open(pair, target, options, &request);
        pair.run();
        assert!(pair.client.is_established(client));
        let mut acceptable = alloc::vec::Vec::new();
        pair.server.take_acceptable(&mut acceptable);
        acceptable[0]
    };
    let server = pair.server.accept(listener, 2).unwrap();
    assert!(pair.server.accept(listener, 2).is_none());
    let got = read(&mut pair.server, &mut pair.server_link, server);
    assert!(got == request, "{} of {} bytes", got.len(), request.len());
    assert_eq!(pair.client.counters().fast_opens_out, expected);
    assert_eq!(pair.server.counters().fast_opens, expected);
    pair.server.abort(server);
    pair.run();
}

#[test]
fn the_second_request_comes_with_the_syn() {
    for target in [SERVER_V4, SERVER_V6] {
        let mut pair = listening(target, false);
        let address: SocketAddr = target.parse().unwrap();
        assert_eq!(pair.client.fast_open_room(address, None, FAST), 0);
        check(&mut pair, target, FAST, 0);
        assert!(pair.client.fast_open_room(address, None, FAST) >= 1_400);
        check(&mut pair, target, FAST, 1);
        check(&mut pair, target, SocketOptions::default(), 1);
        check(&mut pair, target, FAST, 2);
    }
}

#[test]
fn without_cookies_the_first_request_comes_with_the_syn() {
    let mut pair = listening(SERVER_V4, true);
    let options = SocketOptions {
        fast_open_without_cookie: true,
        ..FAST
    };
    check(&mut pair, SERVER_V4, options, 1);
}

/// Behind something that drops a SYN with text: it is repeated without, and from the second time on sent without.
#[test]
fn a_syn_whose_text_is_lost_is_repeated_and_the_server_left_alone_for_a_while() {
    let mut pair = listening(SERVER_V4, false);
    let address: SocketAddr = SERVER_V4.parse().unwrap();
    check(&mut pair, SERVER_V4, FAST, 0);
    for lost in [1, 2] {
        assert!(pair.client.fast_open_room(address, None, FAST) > 0);
        let client = open(&mut pair, SERVER_V4, FAST, b"request");
        let now = pair.now;
        pair.client.transmit(&mut pair.client_link, now);
        let mut nowhere = MemoryLink::ethernet(3);
        assert_eq!(pair.client_link.carry(&mut nowhere), 1, "the SYN");
        pair.wait(Duration::from_secs(2));
        assert!(pair.client.is_established(client));
        assert_eq!(pair.client.counters().fast_opens_lost, lost);
        pair.client.abort(client);
        pair.run();
    }
    assert_eq!(pair.client.fast_open_room(address, None, FAST), 0);
}

/// As from a program with one socket for both families (RFC 4291 2.5.5.2).
#[test]
fn a_mapped_address_of_ipv4_is_one_of_ipv4() {
    let mut pair = Pair::new();
    let mapped = "[::ffff:10.0.0.1]:80";
    let listener = pair.listen(mapped);
    let address = pair.server.listener_address(listener).unwrap();
    assert_eq!(address, SERVER_V4.parse().unwrap());
    let target = mapped.parse().unwrap();
    let client = pair.client.connect(target, None, true, 7).unwrap();
    pair.run();
    let server = pair.server.accept(listener, 9).unwrap();
    assert_eq!(pair.client.peer(client), Some(address));
    assert!(pair.server.peer(server).unwrap().is_ipv4());
    let own = pair.client.local(client).unwrap().ip();
    let source = match own {
        core::net::IpAddr::V4(own) => SocketAddr::new(own.to_ipv6_mapped().into(), 0),
        core::net::IpAddr::V6(_) => panic!("{own}"),
    };
    let opened = pair.client.connect(target, Some(source), true, 3).unwrap();
    assert_eq!(pair.client.local(opened).unwrap().ip(), own);
}
