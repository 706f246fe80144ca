//! Options of connections that are open already: what they change, and not only that they are told.

use super::{World, read, write};
use crate::errno::Errno;
use crate::socket::SocketNumber;
use mill_tcp::time::Duration;

const SOL_SOCKET: i32 = 1;
const SOL_TCP: i32 = 6;
const SO_RCVBUF: i32 = 8;
const SO_KEEPALIVE: i32 = 9;
const SO_LINGER: i32 = 13;
const TCP_KEEPIDLE: i32 = 4;
const TCP_KEEPINTVL: i32 = 5;
const TCP_KEEPCNT: i32 = 6;

fn set(world: &mut World, number: SocketNumber, (level, name): (i32, i32), value: i32) {
    let value = value.to_ne_bytes();
    world
        .client
        .set_option(number, level, name, &value)
        .unwrap();
}

/// Lets time pass for the client alone: the cable is cut.
fn pass_alone(world: &mut World, time: Duration) {
    let end = world.now + time;
    while world.now < end {
        world.now = world.now + Duration::from_millis(10);
        world.client.turn(world.now);
        world.client.flush();
        world.client.link.sent.clear();
    }
}

#[test]
fn keep_alive_of_an_open_connection_ends_it_when_the_peer_is_gone() {
    let mut world = World::new();
    let (near, _) = world.connection();
    for (option, value) in [
        ((SOL_SOCKET, SO_KEEPALIVE), 1),
        ((SOL_TCP, TCP_KEEPIDLE), 3),
        ((SOL_TCP, TCP_KEEPINTVL), 1),
        ((SOL_TCP, TCP_KEEPCNT), 2),
    ] {
        set(&mut world, near, option, value);
    }
    // A peer that answers keeps it.
    world.pass(Duration::from_secs(10));
    assert_eq!(read(&mut world.client, near), Ok(None));
    pass_alone(&mut world, Duration::from_secs(3));
    assert_eq!(read(&mut world.client, near), Ok(None));
    pass_alone(&mut world, Duration::from_secs(4));
    assert_eq!(read(&mut world.client, near), Err(Errno::TIMED_OUT));
}

#[test]
fn keep_alive_that_is_turned_off_again_asks_nothing() {
    let mut world = World::new();
    let (near, _) = world.connection();
    set(&mut world, near, (SOL_TCP, TCP_KEEPIDLE), 1);
    set(&mut world, near, (SOL_TCP, TCP_KEEPINTVL), 1);
    set(&mut world, near, (SOL_SOCKET, SO_KEEPALIVE), 1);
    set(&mut world, near, (SOL_SOCKET, SO_KEEPALIVE), 0);
    pass_alone(&mut world, Duration::from_secs(60));
    assert_eq!(read(&mut world.client, near), Ok(None));
}

#[test]
fn a_close_that_lingers_waits_until_the_peer_has_acknowledged_the_end() {
    let mut world = World::new();
    let (near, _) = world.connection();
    let ten_seconds = [1_i32, 10].map(i32::to_ne_bytes).concat();
    let set = world
        .client
        .set_option(near, SOL_SOCKET, SO_LINGER, &ten_seconds);
    assert_eq!(set, Ok(()));
    write(&mut world.client, near, b"last words").unwrap();
    let closed = world.client.close(near).unwrap();
    assert_eq!(closed.seconds, 10);
    pass_alone(&mut world, Duration::from_millis(500));
    assert!(world.client.is_lingering(closed));
    world.pass(Duration::from_secs(5));
    assert!(!world.client.is_lingering(closed));
}

#[test]
fn a_larger_receive_buffer_of_an_open_connection_lets_the_peer_send_more() {
    let mut world = World::new();
    let (near, far) = world.connection();
    let bytes = vec![7; 300_000];
    let mut left = bytes.as_slice();
    while let Ok(Some(count)) = write(&mut world.server, far, left)
        && count > 0
    {
        left = &left[count..];
        world.pass(Duration::from_millis(50));
    }
    let before = world.client.unread(near).unwrap();
    assert!(before < 70_000, "{before}");
    set(&mut world, near, (SOL_SOCKET, SO_RCVBUF), 150_000);
    world.pass(Duration::from_secs(1));
    let after = world.client.unread(near).unwrap();
    assert!((140_000..=151_000).contains(&after), "{after}");
}
