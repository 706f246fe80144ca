//! Connections that fail, and what their sockets are afterwards.

use super::*;
use mill_stack::config::{Neighboring, Route};
use mill_stack::link::LinkChange;
use std::net::SocketAddr;

#[test]
fn a_socket_whose_connection_was_refused_connects_anew() {
    let mut world = World::new();
    let near = world.connect();
    world.settle();
    assert_eq!(world.client.connected(near), Err(Errno::REFUSED));
    assert!(world.client.is_idle(near));
    assert_eq!(
        read(&mut world.client, near),
        Err(Errno::NOT_CONNECTED),
        "it is as one that was never connected"
    );
    assert_eq!(
        write(&mut world.client, near, b"x"),
        Err(Errno::BROKEN_PIPE)
    );
    let listener = world.listen(waiting(false));
    let target = SERVER.parse().unwrap();
    assert_eq!(world.client.connect_anew(near, target, None), Ok(()));
    world.settle();
    assert_eq!(world.client.connected(near), Ok(Some(())));
    let far = world.server.accept(listener).unwrap().unwrap();
    assert_eq!(write(&mut world.client, near, b"abc"), Ok(Some(3)));
    world.settle();
    assert_eq!(read(&mut world.server, far), Ok(Some(b"abc".to_vec())));
}

#[test]
fn a_socket_that_was_shut_down_while_idle_connects_and_writes_no_more() {
    let mut world = World::new();
    let near = world.connect();
    world.settle();
    assert_eq!(world.client.connected(near), Err(Errno::REFUSED));
    let shut = world.client.shutdown(near, WRITING);
    assert_eq!(shut, Err(Errno::NOT_CONNECTED));
    world.listen(waiting(false));
    let target = SERVER.parse().unwrap();
    assert_eq!(world.client.connect_anew(near, target, None), Ok(()));
    world.settle();
    assert_eq!(world.client.connected(near), Ok(Some(())));
    assert_eq!(
        write(&mut world.client, near, b"x"),
        Err(Errno::BROKEN_PIPE)
    );
}

#[test]
fn shutdown_gives_a_handshake_up() {
    let mut world = World::new();
    let near = world.connect();
    assert_eq!(world.client.shutdown(near, WRITING), Ok(()));
    let found = world.client.readiness(near);
    assert!(found.has_any(Readiness::ERR) && found.has_any(Readiness::HUP));
    assert_eq!(read(&mut world.client, near), Err(Errno::RESET));
    assert_eq!(
        world.client.shutdown(near, WRITING),
        Err(Errno::NOT_CONNECTED)
    );
}

#[test]
fn shutdown_and_the_peer_s_address_fail_once_both_ends_have_finished() {
    let mut world = World::new();
    let (near, far) = world.connection();
    assert_eq!(world.client.shutdown(near, WRITING), Ok(()));
    world.settle();
    assert_eq!(world.client.shutdown(near, WRITING), Ok(()));
    assert!(world.client.peer(near).is_ok());
    assert_eq!(world.server.shutdown(far, WRITING), Ok(()));
    world.settle();
    assert_eq!(
        world.client.shutdown(near, WRITING),
        Err(Errno::NOT_CONNECTED)
    );
    assert_eq!(world.client.peer(near), Err(Errno::NOT_CONNECTED));
    assert!(world.client.is_over(near));
}

/// The kernel's answer comes between two turns, or while one asks for it: what waits for it leaves with the next one, at once.
#[test]
fn a_connection_whose_neighbor_is_found_is_opened_at_once() {
    let now = Instant::from_nanos(1_000_000_000);
    let address = IpAddr::from([10, 0, 0, 1]);
    let mut config = HostConfig::new(vec![Prefix { address, len: 24 }], [1; 16]);
    config.neighbors = Neighboring::Kernel;
    config
        .routes
        .push(Route::on_link(Prefix { address, len: 24 }));
    let mut client = Sockets::new(config, MemoryLink::ethernet(1), now);
    let target: SocketAddr = SERVER.parse().unwrap();
    client.connect(target, None, waiting(false)).unwrap();
    client.turn(now);
    assert!(client.next_turn().is_some_and(|at| at > now));
    client.changes.push(LinkChange::Neighbor {
        address: target.ip(),
        mac: Some([2; 6]),
    });
    client.turn(now);
    assert!(client.link.sent.is_empty());
    assert_eq!(client.next_turn(), Some(now));
    client.turn(now);
    assert_eq!(client.link.sent.len(), 1);
}
