//! Unix sockets, offered sockets, mail, and sockets with duplicates in other processes.

use crate::client::{Client, SocketPeer, connect_unix};
use crate::files::Directory;
use crate::server::{Server, engine, start, start_on, start_with};
use mill_conformance::Directory as _;
use mill_conformance::content::pattern;
use mill_conformance::serving::echo;
use mill_conformance::{End, Peer};
use mill_engine::offer;
use mill_runtime::address::Address;
use mill_runtime::engine::{Accept, Engine, Events, ListenOptions, ListenerId, Park};
use mill_runtime::payload::Payload;
use mill_runtime::stream::{Stream, StreamOption, Unsupported};
use mill_runtime::tasks::TaskId;
use mill_runtime::time::Duration;
use mill_sys::passing;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::path::Path;

#[test]
fn unix_sockets_are_accepted_and_have_their_paths_as_addresses() {
    let directory = Directory::new("unix");
    let path = directory.path("socket");
    let options = ListenOptions::new(Address::Unix(path.clone().into()));
    let mut server = start_with(engine(None), &options, None, |stream, _| async move {
        assert_eq!(stream.set(StreamOption::NoDelay(true)), Err(Unsupported));
        assert_eq!(stream.info(), None);
        stream.write(Payload::Copy(
            format!("{} {}", stream.local(), stream.peer()).as_bytes(),
        ));
        echo(stream).await;
    });
    let path = String::from_utf8(path).unwrap();
    let mut client = connect_unix(Path::new(&path));
    client.send("hello");
    client.finish();
    server.run_until("the end", || client.ended(End::Fin));
    let expected = format!("unix:{path} unix:hello");
    assert_eq!(String::from_utf8(client.received).unwrap(), expected);
}

#[test]
fn sockets_of_one_port_are_told_apart_by_their_share() {
    let listeners: [TcpListener; 2] =
        std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    let named = Address::Ip("192.0.2.1:80".parse().unwrap());
    let (mailbox, inside) = passing::pair().unwrap();
    for (share, listener) in (0..).zip(&listeners) {
        let key = offer::encode(&named, Some(share));
        passing::send(mailbox.as_fd(), &key, &[listener.as_fd()]).unwrap();
    }
    let options = |share| ListenOptions {
        share: Some(share),
        ..ListenOptions::new(named.clone())
    };
    let mut server = start_with(
        engine(Some(inside)),
        &options(0),
        Some(mailbox),
        |stream, _| {
            let local = stream.local().to_string();
            async move { stream.write(Payload::Copy(local.as_bytes())) }
        },
    );
    let second = server.around.engine.listen(&options(1)).unwrap().id;
    server.worker.add_listener(second);
    for listener in &listeners {
        let address = listener.local_addr().unwrap();
        let mut client = Client::connect(address);
        server.run_until("the end", || client.ended(End::Fin));
        assert_eq!(client.received, address.to_string().as_bytes());
    }
    // An offer is claimed once; then the engine makes a socket of its own, which fails here.
    assert_eq!(
        server.around.engine.listen(&options(0)).unwrap_err().call,
        "bind()"
    );
}

#[test]
fn an_offer_replaces_an_earlier_one_of_the_same_key() {
    let [old, new]: [TcpListener; 2] =
        std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    let named = Address::Ip("192.0.2.1:80".parse().unwrap());
    let (mailbox, inside) = passing::pair().unwrap();
    let key = offer::encode(&named, None);
    passing::send(mailbox.as_fd(), &key, &[old.as_fd()]).unwrap();
    passing::send(mailbox.as_fd(), &key, &[new.as_fd()]).unwrap();
    let addresses = [&old, &new].map(|listener| listener.local_addr().unwrap());
    drop((old, new));
    let options = ListenOptions::new(named);
    let mut server = start_with(
        engine(Some(inside)),
        &options,
        Some(mailbox),
        |stream, _| echo(stream),
    );
    assert!(SocketPeer::is_refused(addresses[0]));
    let mut client = Client::connect(addresses[1]);
    client.send("x");
    server.run_until("the answer", || client.has(b"x"));
}

#[test]
fn mail_is_reported_and_the_end_of_the_mailbox_once() {
    let mut server = start(|stream, _| echo(stream));
    server.turn();
    assert!(!server.turn().mail);
    let mailbox = server.testbed.mailbox.take().unwrap();
    passing::send(mailbox.as_fd(), b"", &[]).unwrap();
    assert!(server.turn().mail);
    assert!(!server.turn().mail);
    passing::send(mailbox.as_fd(), b"wake", &[]).unwrap();
    assert!(server.turn().mail);
    drop(mailbox);
    assert!(server.turn().mail);
    assert!(!server.turn().mail);
}

#[test]
fn mail_that_comes_while_something_is_offered_is_reported_too() {
    let mut server = start(|stream, _| echo(stream));
    server.turn();
    let mailbox = server.testbed.mailbox.take().unwrap();
    for mail in [&b""[..], b"wake"] {
        passing::send(mailbox.as_fd(), mail, &[]).unwrap();
        // Searches the mailbox for a socket, as a worker does that adopts a configuration.
        let anywhere = ListenOptions::new(Address::Ip("127.0.0.1:0".parse().unwrap()));
        server.around.engine.listen(&anywhere).unwrap();
        assert!(server.turn().mail);
        assert!(!server.turn().mail);
    }
}

/// Polls an engine once and returns the listeners that it reports.
fn acceptable(server: &Server) -> Vec<ListenerId> {
    let mut events = Events::default();
    let park = Park::Until(server.around.engine.clock().0 + Duration::from_millis(2));
    server.around.engine.poll(park, &mut events);
    events.acceptable
}

#[test]
fn a_closed_listener_that_others_hold_open_is_reported_no_more() {
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut server = start_on(&held, |stream, _| echo(stream));
    assert!(server.worker.close_listener(server.listener));
    let _waits = Client::connect(server.address);
    assert_eq!(acceptable(&server), []);
    assert!(held.accept().is_ok(), "the other holder accepts it");
}

#[test]
fn an_offered_socket_that_blocks_does_not_block_the_engine() {
    let blocking = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = start_on(&blocking, |stream, _| echo(stream));
    let accepted = server.around.engine.accept(server.listener, TaskId::NONE);
    assert!(matches!(accepted, Accept::Empty));
}

#[test]
fn a_socket_that_does_not_listen_any_more_is_not_accepted_from() {
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut server = start_on(&held, |stream, _| echo(stream));
    server.turn();
    // shutdown(2) on a listening socket ends listening for all its duplicates, and poll(2) reports HUP.
    let as_stream = std::net::TcpStream::from(std::os::fd::OwnedFd::from(held));
    as_stream.shutdown(std::net::Shutdown::Both).unwrap();
    for _ in 0..3 {
        server.turn();
    }
    assert_eq!(acceptable(&server), []);
    assert!(server.worker.close_listener(server.listener));
}

#[test]
fn an_address_in_use_is_an_error_that_names_the_call() {
    let server = start(|stream, _| echo(stream));
    let options = ListenOptions::new(Address::Ip(server.address));
    let error = server.around.engine.listen(&options).unwrap_err();
    assert_eq!((error.call, error.code), ("bind()", EADDRINUSE));
}

#[test]
fn options_of_a_listener_are_its_connections() {
    let options = ListenOptions {
        send_buffer_bytes: Some(1),
        receive_buffer_bytes: Some(1),
        ..ListenOptions::new(Address::Ip("127.0.0.1:0".parse().unwrap()))
    };
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let options = ListenOptions {
        address: Address::Ip(address),
        ..options
    };
    let mut server = start_with(engine(None), &options, None, |stream, _| async move {
        stream.write(Payload::Copy(&pattern(1_000_000)));
        let _ = stream.drained(999_999).await;
        assert!(stream.sent() < 900_000, "{}", stream.sent());
    });
    let mut client = Client::connect(server.address);
    server.run_until("the end", || client.ended(End::Fin));
}

/// asm-generic/errno.h.
const EADDRINUSE: i32 = 98;
