//! Tasks that connect.

use crate::client::{Client, client_of};
use crate::files::Directory;
use crate::server::{Kernel, start};
use mill_conformance::Directory as _;
use mill_conformance::End;
use mill_conformance::connector::start_connecting;
use mill_conformance::content::{pattern, take_all};
use mill_runtime::address::Address;
use mill_runtime::engine::{ConnectOptions, Engine};
use mill_runtime::payload::Payload;
use mill_runtime::stream::{Stream, StreamError};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;

fn answer(mut peer: impl Read + Write) {
    let mut question = [0; 8];
    peer.read_exact(&mut question).unwrap();
    assert_eq!(&question, b"question");
    peer.write_all(b"answer").unwrap();
}

#[test]
fn a_task_connects_and_talks_with_or_without_waiting_to_be_connected() {
    for drain_first in [true, false] {
        let origin = TcpListener::bind("127.0.0.1:0").unwrap();
        origin.set_nonblocking(true).unwrap();
        let target = Address::Ip(origin.local_addr().unwrap());
        let (mut server, story, _client) =
            start_connecting::<Kernel>(target, ConnectOptions::default(), drain_first);
        let mut accepted = None;
        server.run_until("the connection", || {
            accepted = origin.accept().ok();
            accepted.is_some()
        });
        for _ in 0..5 {
            server.turn();
        }
        let (peer, _) = accepted.unwrap();
        peer.set_nonblocking(false).unwrap();
        peer.set_read_timeout(Some(std::time::Duration::from_secs(10)))
            .unwrap();
        answer(peer);
        server.run_out();
        assert_eq!(story.told(), [Ok(b"answer".to_vec())]);
    }
}

#[test]
fn a_refused_connection_is_an_error_of_the_stream() {
    for drain_first in [true, false] {
        let refusing = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let (mut server, story, _client) = start_connecting::<Kernel>(
            Address::Ip(refusing),
            ConnectOptions::default(),
            drain_first,
        );
        server.run_until("the refusal", || story.count() == 1);
        assert_eq!(story.told(), [Err(StreamError::Refused)]);
    }
}

#[test]
fn a_source_address_is_the_one_the_peer_sees() {
    let origin = TcpListener::bind("127.0.0.1:0").unwrap();
    let source = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 77)), 0);
    let options = ConnectOptions {
        source: Some(Address::Ip(source)),
        ..ConnectOptions::default()
    };
    let target = Address::Ip(origin.local_addr().unwrap());
    let (mut server, story, _client) = start_connecting::<Kernel>(target, options, true);
    server.run_until_tasks(1);
    let (peer, from) = origin.accept().unwrap();
    assert_eq!(from.ip(), source.ip());
    server.turn();
    answer(peer);
    server.run_out();
    assert_eq!(story.told(), [Ok(b"answer".to_vec())]);
}

#[test]
fn a_source_address_of_another_host_fails_at_once() {
    let options = ConnectOptions {
        source: Some(Address::Ip("192.0.2.1:0".parse().unwrap())),
        ..ConnectOptions::default()
    };
    let target = Address::Ip("127.0.0.1:1".parse().unwrap());
    let (mut server, story, _client) = start_connecting::<Kernel>(target, options, true);
    server.run_until("the error", || story.count() == 1);
    assert_eq!(story.told(), [Err(StreamError::Other(EADDRNOTAVAIL))]);
}

#[test]
fn unix_sockets_are_connected_to() {
    let directory = Directory::new("connect");
    let path = directory.path("socket");
    let origin = UnixListener::bind(std::str::from_utf8(&path).unwrap()).unwrap();
    let (mut server, story, _client) =
        start_connecting::<Kernel>(Address::Unix(path.into()), ConnectOptions::default(), true);
    server.run_until_tasks(1);
    let (peer, _) = origin.accept().unwrap();
    for _ in 0..3 {
        server.turn();
    }
    answer(peer);
    server.run_out();
    assert_eq!(story.told(), [Ok(b"answer".to_vec())]);
}

#[test]
fn a_unix_socket_that_is_not_there_fails_at_once() {
    let directory = Directory::new("absent");
    let target = Address::Unix(directory.path("socket").into());
    let (mut server, story, _client) =
        start_connecting::<Kernel>(target, ConnectOptions::default(), true);
    server.run_until("the error", || story.count() == 1);
    assert_eq!(story.told(), [Err(StreamError::Other(ENOENT))]);
}

#[test]
fn a_fin_asked_for_while_connecting_follows_what_was_written() {
    let origin = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = Address::Ip(origin.local_addr().unwrap());
    for len in [0, 3_000_000] {
        let target = target.clone();
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
        server.run_until_tasks(1);
        let mut peer = client_of(origin.accept().unwrap().0);
        server.run_until("the FIN", || peer.ended(End::Fin));
        assert!(peer.received == pattern(len));
        peer.send("end");
        server.run_out();
    }
}

/// asm-generic/errno-base.h and errno.h.
const ENOENT: i32 = 2;
const EADDRNOTAVAIL: i32 = 99;
