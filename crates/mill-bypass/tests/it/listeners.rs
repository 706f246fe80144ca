//! Listening at the stack, at the inner engine, at both.

use crate::server::Client;
use crate::server::{
    CLIENTS, MTU, Network, PORT, Server, TestEngine, TestStream, network, serve_at, start,
    start_with, v6_of,
};
use mill_bypass::BypassEngine;
use mill_conformance::End;
use mill_conformance::Peer;
use mill_conformance::serving::echo;
use mill_conformance::story::Story;
use mill_conformance::stream_peer::StreamPeer;
use mill_runtime::address::Address;
use mill_runtime::engine::{Engine, Keepalive, ListenOption, ListenOptions, ListenerId};
use mill_runtime::stream::Stream;
use mill_sim::engine::SimEngine;
use mill_sim::packet::ethernet::StationOptions;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// A host that serves with `listening`'s address, or its own if that is none.
fn start_at(listening: impl Fn(Ipv4Addr) -> ListenOptions) -> (Server, SimEngine, Ipv4Addr) {
    let network = network();
    let (engine, inner, ip) = network.host(StationOptions::new(MTU), |_| {});
    let server = serve_at(
        network,
        engine,
        &listening(ip),
        (ip, PORT).into(),
        |stream, _| echo(stream),
    );
    (server, inner, ip)
}

fn at(address: impl Into<IpAddr>) -> ListenOptions {
    ListenOptions::new(Address::Ip(SocketAddr::new(address.into(), PORT)))
}

/// Whether a client of the inner engine's network is answered.
fn inner_answers(server: &mut Server, target: &str) -> bool {
    let client = server.testbed.world.connect(target);
    client.send("x");
    server.run_on();
    client.received() == b"x"
}

fn stack_answers(server: &mut Server, address: SocketAddr) -> bool {
    let mut client = Client::connect(address);
    client.send("x");
    server.run_on();
    client.pump().received == b"x"
}

#[test]
fn all_connections_that_wait_at_the_stack_are_accepted_in_one_turn() {
    let mut server = start(|stream, _| echo(stream));
    server.around.engine.set_accepting(server.listener, false);
    let _clients: Vec<Client> = (0..50).map(|_| Client::connect(server.address)).collect();
    server.run_on();
    assert_eq!(server.worker.tasks(), 0);
    server.around.engine.set_accepting(server.listener, true);
    server.turn();
    assert_eq!(server.worker.tasks(), 50);
}

#[test]
fn a_wildcard_listens_at_both_engines() {
    for dual in [false, true] {
        let (mut server, ..) = start_at(|_| {
            if dual {
                at(Ipv6Addr::UNSPECIFIED)
            } else {
                at(Ipv4Addr::UNSPECIFIED)
            }
        });
        let (inner, address) = if dual {
            ("[::1]:80", v6_at(&server))
        } else {
            ("127.0.0.1:80", server.address)
        };
        assert!(inner_answers(&mut server, inner));
        assert!(stack_answers(&mut server, address));
        assert!(server.worker.close_listener(server.listener));
        assert!(!inner_answers(&mut server, inner));
        assert!(!stack_answers(&mut server, address));
    }
}

fn v6_at(server: &Server) -> SocketAddr {
    let IpAddr::V4(ip) = server.address.ip() else {
        panic!("servers are named by IPv4");
    };
    SocketAddr::new(v6_of(ip).into(), PORT)
}

#[test]
fn the_hosts_address_is_the_stacks_alone_and_any_other_the_inner_engines() {
    let (mut server, _, ip) = start_at(at);
    let address = server.address;
    assert!(stack_answers(&mut server, address));
    assert!(!inner_answers(&mut server, &format!("{ip}:80")));

    let (mut server, ..) = start_at(|_| at(Ipv4Addr::LOCALHOST));
    assert!(inner_answers(&mut server, "127.0.0.1:80"));
    assert!(server.refuses());
}

#[test]
fn unix_sockets_are_the_inner_engines() {
    let (mut server, ..) = start_at(|_| ListenOptions::new(Address::Unix(b"/socket"[..].into())));
    assert!(inner_answers(&mut server, "unix:/socket"));
}

#[test]
fn without_a_link_it_is_the_inner_engine() {
    let network = network();
    let inner = network.world.engine();
    let engine: TestEngine = BypassEngine::new(inner, None);
    let unspecified = at(Ipv4Addr::UNSPECIFIED);
    let address = (Ipv4Addr::LOCALHOST, PORT).into();
    let mut server = serve_at(network, engine, &unspecified, address, |stream, _| {
        assert!(!stream.is_bypassed());
        echo(stream)
    });
    assert!(inner_answers(&mut server, "127.0.0.1:80"));
    assert!(server.around.engine.listen(&unspecified).is_err());
    assert!(server.worker.close_listener(server.listener));
    assert!(!inner_answers(&mut server, "127.0.0.1:80"));
}

#[test]
fn an_address_in_use_is_an_error_that_names_the_call_and_leaves_nothing_behind() {
    let (server, inner, ip) = start_at(at);
    let engine = &server.around.engine;
    let check = |options: &ListenOptions| {
        let error = engine.listen(options).unwrap_err();
        assert_eq!((error.call, error.code), ("bind()", EADDRINUSE));
    };
    check(&at(ip));
    let wildcard = at(Ipv4Addr::UNSPECIFIED);
    let listening = engine.listen(&wildcard).unwrap();
    check(&wildcard);
    // Only the stack refuses now: the inner engine's listener is closed.
    inner.close_listener(ListenerId(0));
    check(&wildcard);
    inner.close_listener(inner.listen(&wildcard).unwrap().id);
    engine.close_listener(listening.id);
    assert!(engine.listen(&wildcard).is_ok());
}

#[test]
fn sockets_that_share_a_port_have_connections_each() {
    let story = Story::default();
    let teller = story.clone();
    let shared = |ip: IpAddr, share| ListenOptions {
        share: Some(share),
        ..at(ip)
    };
    let mut server = start_with(
        |_, listening| listening.share = Some(0),
        move |stream: TestStream, _| {
            teller.tell(());
            echo(stream)
        },
    );
    let second = server.around.engine.listen(&shared(server.address.ip(), 1));
    let second = second.unwrap().id;
    let mut clients: Vec<Client> = (0..40).map(|_| Client::connect(server.address)).collect();
    server.run_on();
    assert!((1..40).contains(&story.count()), "{}", story.count());
    server.worker.add_listener(second);
    for client in &mut clients {
        client.send("x");
        server.run_until("the answer", || client.has(b"x"));
    }
    assert_eq!(story.count(), 40);
}

#[test]
fn options_that_an_engine_lacks_are_reported_where_it_listens() {
    let network = network();
    network.world.lack_listen_option(ListenOption::Deferred);
    network.world.lack_listen_option(ListenOption::Keepalive);
    let (engine, _, ip) = network.host(StationOptions::new(MTU), |_| {});
    let check = |ip: IpAddr, port, expected: &[ListenOption]| {
        let options = ListenOptions {
            address: Address::Ip(SocketAddr::new(ip, port)),
            share: Some(1),
            deferred: true,
            fastopen: Some(5),
            receive_buffer_bytes: Some(100_000),
            send_buffer_bytes: Some(100_000),
            keepalive: Keepalive::On {
                idle: None,
                interval: Some(Duration::from_secs(1)),
                count: Some(1000),
            },
            ipv6only: Some(true),
            ..ListenOptions::new(Address::Unix([].into()))
        };
        let listening = engine.listen(&options).unwrap();
        assert_eq!(listening.unsupported, expected, "{ip}");
    };
    let lacking = [ListenOption::Deferred, ListenOption::Keepalive];
    check(ip.into(), 1, &[]);
    check(Ipv4Addr::UNSPECIFIED.into(), 2, &lacking);
    check(Ipv4Addr::LOCALHOST.into(), 3, &lacking);
}

#[test]
fn a_listener_of_both_families_shows_ipv4_as_ipv6_does() {
    let check = |ipv6only, expected: Option<String>| {
        let story = Story::default();
        let teller = story.clone();
        let network = network();
        let (engine, _, ip) = network.host(StationOptions::new(MTU), |_| {});
        let listening = ListenOptions {
            ipv6only,
            ..at(Ipv6Addr::UNSPECIFIED)
        };
        let address = (ip, PORT).into();
        let mut server = serve_at(network, engine, &listening, address, move |stream, _| {
            teller.tell(format!("{} {}", stream.peer(), stream.local()));
            echo(stream)
        });
        let v4 = Client::connect(server.address);
        for _ in 0..20 {
            server.turn();
        }
        let v4 = expected.map(|text| {
            let port = v4.local().port();
            text.replace("PORT", &port.to_string())
                .replace("HOST", &ip.to_string())
        });
        assert_eq!(
            story.told(),
            v4.into_iter().collect::<Vec<_>>(),
            "{ipv6only:?}"
        );
        let v6 = Client::connect(v6_at(&server));
        for _ in 0..20 {
            server.turn();
        }
        let expected = format!("{} {}", v6.local(), v6_at(&server));
        assert_eq!(story.told().last(), Some(&expected));
    };
    let mapped = format!("[::ffff:{CLIENTS}]:PORT [::ffff:HOST]:80");
    check(None, Some(mapped.clone()));
    check(Some(false), Some(mapped));
    check(Some(true), None);
}

#[test]
fn clients_that_wait_when_the_engine_goes_are_reset() {
    let mut server = start(|stream, _| echo(stream));
    server.around.engine.set_accepting(server.listener, false);
    let mut client = Client::connect(server.address);
    server.run_on();
    let address = server.address;
    drop(server);
    assert!(client.ended(End::Reset));
    assert!(StreamPeer::<Network>::is_refused(address));
}

#[test]
fn a_deferred_connection_is_reported_with_its_first_bytes() {
    let mut server = start_with(
        |_, listening| listening.deferred = true,
        |stream, _| echo(stream),
    );
    let mut client = Client::connect(server.address);
    server.run_on();
    assert_eq!(server.worker.tasks(), 0);
    client.send("x");
    server.run_until("the answer", || client.has(b"x"));
}

#[test]
fn neither_engine_starves_the_other_at_a_listener_of_both() {
    let story = Story::default();
    let teller = story.clone();
    let network = network();
    let (engine, _, ip) = network.host(StationOptions::new(MTU), |_| {});
    let wildcard = at(Ipv4Addr::UNSPECIFIED);
    let address = (ip, PORT).into();
    let mut server = serve_at(
        network.clone(),
        engine,
        &wildcard,
        address,
        move |stream, _| {
            teller.tell(stream.is_bypassed());
            echo(stream)
        },
    );
    server.around.engine.set_accepting(server.listener, false);
    let _inner: Vec<_> = (0..10)
        .map(|_| network.world.connect("127.0.0.1:80"))
        .collect();
    let _stack: Vec<_> = (0..10).map(|_| Client::connect(server.address)).collect();
    server.run_on();
    server.around.engine.set_accepting(server.listener, true);
    server.run_until_tasks(20);
    let first = &story.told()[..10];
    let stack = first.iter().filter(|bypassed| **bypassed).count();
    assert_eq!(stack, 5, "{first:?}");
}

/// asm-generic/errno.h.
const EADDRINUSE: i32 = 98;
