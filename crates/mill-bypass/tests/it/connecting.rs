//! Tasks that connect.

use crate::server::Client;
use crate::server::{CLIENTS, Network, PORT, Server, network, start, v6_of};
use mill_conformance::End;
use mill_conformance::connector::start_connecting;
use mill_conformance::content::{pattern, take_all};
use mill_conformance::stream_peer::StreamPeer;
use mill_runtime::address::Address;
use mill_runtime::engine::{Accept, ConnectOptions, Engine, ListenOptions, ListenerId};
use mill_runtime::payload::Payload;
use mill_runtime::stream::{Stream, StreamError};
use mill_runtime::tasks::TaskId;
use std::net::{IpAddr, SocketAddr};

/// A listener of the clients' host.
struct Origin {
    listener: ListenerId,
    target: Address,
}

impl Origin {
    fn new(ip: IpAddr) -> Self {
        let target = Address::Ip(SocketAddr::new(ip, ORIGIN_PORT));
        let listening = network()
            .clients
            .listen(&ListenOptions::new(target.clone()));
        let listener = listening.unwrap().id;
        Self { listener, target }
    }

    fn accept(&self) -> Option<Client> {
        match network().clients.accept(self.listener, TaskId::NONE) {
            Accept::Stream(stream) => Some(Client::of(StreamPeer(stream))),
            _ => None,
        }
    }

    fn accept_soon(&self, server: &mut Server) -> Client {
        let mut accepted = None;
        server.run_until("the connection", || {
            accepted = self.accept();
            accepted.is_some()
        });
        accepted.unwrap()
    }
}

#[test]
fn a_task_connects_and_talks_with_or_without_waiting_to_be_connected() {
    for ip in [IpAddr::V4(CLIENTS), IpAddr::V6(v6_of(CLIENTS))] {
        let origin = Origin::new(ip);
        for drain_first in [true, false] {
            let target = origin.target.clone();
            let (mut server, story, _client) =
                start_connecting::<Network>(target, ConnectOptions::default(), drain_first);
            let mut peer = origin.accept_soon(&mut server);
            server.run_until("the question", || peer.has(b"question"));
            peer.send("answer");
            server.run_out();
            assert_eq!(story.told(), [Ok(b"answer".to_vec())]);
        }
    }
}

#[test]
fn a_refused_connection_is_an_error_of_the_stream() {
    for drain_first in [true, false] {
        let closed_port = Address::Ip((CLIENTS, ORIGIN_PORT).into());
        let (mut server, story, _client) =
            start_connecting::<Network>(closed_port, ConnectOptions::default(), drain_first);
        server.run_until("the refusal", || story.count() == 1);
        assert_eq!(story.told(), [Err(StreamError::Refused)]);
    }
}

#[test]
fn a_neighbour_that_does_not_exist_is_unreachable_in_the_end() {
    let absent_host = Address::Ip("10.77.99.99:1".parse().unwrap());
    let (mut server, story, _client) =
        start_connecting::<Network>(absent_host, ConnectOptions::default(), true);
    server.run_until("the end", || story.count() == 1);
    assert_eq!(story.told(), [Err(StreamError::Unreachable)]);
}

#[test]
fn an_immediate_obstacle_is_the_error_of_the_call() {
    let check = |source: &str, expected| {
        let options = ConnectOptions {
            source: Some(Address::Ip(source.parse().unwrap())),
            ..ConnectOptions::default()
        };
        let origin = Address::Ip((CLIENTS, ORIGIN_PORT).into());
        let (mut server, story, _client) = start_connecting::<Network>(origin, options, true);
        server.run_until("the error", || story.count() == 1);
        assert_eq!(story.told(), [Err(expected)], "{source}");
    };
    check("192.0.2.1:0", StreamError::Other(EADDRNOTAVAIL));
    check("127.0.0.1:0", StreamError::Other(EADDRNOTAVAIL));
}

#[test]
fn a_source_is_the_one_the_peer_sees_and_its_port_is_used_once_for_a_target() {
    let origin = Origin::new(CLIENTS.into());
    let (mut server, _story, _client) =
        start_connecting::<Network>(origin.target.clone(), ConnectOptions::default(), true);
    let engine = server.around.engine.clone();
    let connect = |port: u16| {
        let source = SocketAddr::new(server.address.ip(), port);
        let options = ConnectOptions {
            source: Some(Address::Ip(source)),
            ..ConnectOptions::default()
        };
        engine.connect(&origin.target, &options, TaskId::NONE)
    };
    let chosen = connect(0).unwrap();
    let exact = connect(4321).unwrap();
    assert_eq!(connect(4321).err(), Some(StreamError::Other(EADDRINUSE)));
    let Address::Ip(chosen) = chosen.local() else {
        panic!("a stream of the stack has an IP address");
    };
    assert!(chosen.port() >= 32768 && chosen.ip() == server.address.ip());
    let mut seen = Vec::new();
    server.run_until("the connections", || {
        seen.extend(origin.accept().map(|peer| peer.peer.0.peer()));
        seen.len() == 3
    });
    assert!(seen.contains(&Address::Ip(chosen)));
    assert!(seen.contains(&exact.local()));
    assert_eq!(
        exact.local().to_string(),
        format!("{}:4321", server.address.ip())
    );
}

#[test]
fn targets_to_which_no_route_leads_are_the_inner_engines() {
    let network = network();
    let check = |target: &str, is_bypassed| {
        let target = network.world.address(target);
        let options = ConnectOptions::default();
        let stream = network.clients.connect(&target, &options, TaskId::NONE);
        assert_eq!(stream.unwrap().is_bypassed(), is_bypassed, "{target}");
    };
    check("10.77.1.1:80", true);
    check("[fd00::5]:80", true);
    check("127.0.0.1:80", false);
    check("192.0.2.1:80", false);
    check("10.77.255.1:80", false);
    check("unix:/socket", false);
}

#[test]
fn a_fin_asked_for_while_connecting_follows_what_was_written() {
    for (len, port) in [(0, 1), (3_000_000, 2)] {
        let origin = Origin::new(CLIENTS.into());
        let target = origin.target.clone();
        let mut server = start(move |_trigger, around| {
            let target = target.clone();
            async move {
                let task = around.scheduler.current();
                let options = ConnectOptions::default();
                let stream = around.engine.connect(&target, &options, task).unwrap();
                stream.write(Payload::Copy(&pattern(len)));
                stream.shutdown();
                stream.readable(3).await.unwrap();
                assert_eq!(take_all(&stream), b"end");
            }
        });
        let _client = Client::connect(server.address);
        let mut peer = origin.accept_soon(&mut server);
        server.run_until("the FIN", || peer.ended(End::Fin));
        assert!(peer.received == pattern(len), "{port}");
        peer.send("end");
        server.run_out();
        network().clients.close_listener(origin.listener);
    }
}

#[test]
fn a_connect_whose_task_is_dropped_leaves_no_connection() {
    let origin = Origin::new(CLIENTS.into());
    let (mut server, _story, _client) =
        start_connecting::<Network>(origin.target.clone(), ConnectOptions::default(), true);
    let options = ConnectOptions::default();
    let engine = server.around.engine.clone();
    drop(
        engine
            .connect(&origin.target, &options, TaskId::NONE)
            .unwrap(),
    );
    server.run_until_tasks(1);
    assert_eq!(engine.stack_streams(), 1, "the task's");
}

#[test]
fn a_connection_has_the_receive_buffer_that_was_asked_for() {
    let origin = Origin::new(CLIENTS.into());
    let (mut server, _story, _client) =
        start_connecting::<Network>(origin.target.clone(), ConnectOptions::default(), true);
    let _first = origin.accept_soon(&mut server);
    let engine = server.around.engine.clone();
    let mut window = |receive_buffer_bytes| {
        let options = ConnectOptions {
            receive_buffer_bytes,
            ..ConnectOptions::default()
        };
        let stream = engine.connect(&origin.target, &options, TaskId::NONE);
        let stream = stream.unwrap();
        let _peer = origin.accept_soon(&mut server);
        stream.info().unwrap().rcv_space
    };
    assert_eq!(window(Some(5000)), 5000);
    assert!(window(None) > 5000);
}

/// A port that no server has.
const ORIGIN_PORT: u16 = PORT + 8000;

/// asm-generic/errno.h.
const EADDRINUSE: i32 = 98;
const EADDRNOTAVAIL: i32 = 99;
