//! epoll sets.

use super::{World, interest, read, waiting, write};
use crate::epoll_set::{Event, Interest, SetNumber};
use crate::errno::Errno;
use crate::readiness::Readiness;
use crate::socket::SocketNumber;
use crate::sockets::Sockets;
use mill_stack::memory_link::MemoryLink;
use mill_tcp::time::Duration;

fn wait(sockets: &mut Sockets<MemoryLink>, set: SetNumber) -> Vec<(u64, Readiness)> {
    let mut found: Vec<Event> = Vec::new();
    sockets.collect(set, 16, &mut found);
    found
        .into_iter()
        .map(|event| (event.data, event.events))
        .collect()
}

#[test]
fn a_listener_is_told_while_connections_wait_and_again_for_the_next() {
    let mut world = World::new();
    let listener = world.listen(waiting(false));
    let set = world.server.add_set();
    let watched = interest(Readiness::IN, 0, 7);
    world.server.watch(set, listener, 3, watched).unwrap();
    assert_eq!(wait(&mut world.server, set), []);
    world.connect();
    world.settle();
    world.connect();
    world.settle();
    let told = vec![(7, Readiness::IN)];
    for _ in 0..2 {
        assert_eq!(wait(&mut world.server, set), told);
        assert!(world.server.accept(listener).unwrap().is_some());
    }
    assert_eq!(wait(&mut world.server, set), []);
    world.connect();
    world.settle();
    assert_eq!(wait(&mut world.server, set), told);
}

#[test]
fn an_edge_is_each_arrival_and_not_what_is_left_unread() {
    let mut world = World::new();
    let (near, far) = world.connection();
    let set = world.server.add_set();
    let watched = interest(Readiness::IN | Readiness::RDHUP, Interest::EDGE, 1);
    world.server.watch(set, far, 5, watched).unwrap();
    assert_eq!(wait(&mut world.server, set), []);
    for _ in 0..2 {
        write(&mut world.client, near, b"ab").unwrap();
        world.settle();
        assert_eq!(wait(&mut world.server, set), [(1, Readiness::IN)]);
        assert_eq!(wait(&mut world.server, set), []);
    }
    assert_eq!(read(&mut world.server, far), Ok(Some(b"abab".to_vec())));
    world.client.close(near);
    world.settle();
    let end = Readiness::IN | Readiness::RDHUP;
    assert_eq!(wait(&mut world.server, set), [(1, end)]);
}

#[test]
fn a_set_that_gets_something_to_tell_is_woken_once() {
    let mut world = World::new();
    let (near, far) = world.connection();
    let set = world.server.add_set();
    let watched = interest(Readiness::IN, Interest::EDGE, 1);
    world.server.watch(set, far, 5, watched).unwrap();
    assert_eq!(wait(&mut world.server, set), []);
    world.server.take_woken().for_each(drop);
    for _ in 0..2 {
        write(&mut world.client, near, b"x").unwrap();
        world.settle();
    }
    assert_eq!(world.server.take_woken().collect::<Vec<_>>(), [set]);
}

#[test]
fn descriptors_are_watched_once_each_until_the_last_one_is_closed() {
    let mut world = World::new();
    let (near, far) = world.connection();
    let server = &mut world.server;
    let set = server.add_set();
    let watched = |data| interest(Readiness::IN, 0, data);
    server.watch(set, far, 5, watched(5)).unwrap();
    assert_eq!(server.watch(set, far, 5, watched(5)), Err(Errno::EXISTS));
    assert_eq!(
        server.change_watch(set, far, 6, watched(6)),
        Err(Errno::NO_ENTRY)
    );
    assert_eq!(server.unwatch(set, far, 6), Err(Errno::NO_ENTRY));
    server.duplicate(far).unwrap();
    server.watch(set, far, 6, watched(6)).unwrap();
    write(&mut world.client, near, b"x").unwrap();
    world.settle();
    let ready = Readiness::IN;
    assert_eq!(wait(&mut world.server, set), [(5, ready), (6, ready)]);
    world.server.close(far);
    assert_eq!(wait(&mut world.server, set), [(5, ready), (6, ready)]);
    assert_eq!(world.server.unwatch(set, far, 6), Ok(()));
    assert_eq!(wait(&mut world.server, set), [(5, ready)]);
    world.server.close(far);
    assert_eq!(wait(&mut world.server, set), []);
    assert!(!world.server.has_watches(set));
}

#[test]
fn an_edge_of_a_writer_is_room_that_it_lacked_and_no_acknowledgement() {
    let mut world = World::new();
    let (near, far) = world.connection();
    let set = world.client.add_set();
    let watched = interest(Readiness::OUT, Interest::EDGE, 1);
    world.client.watch(set, near, 5, watched).unwrap();
    let room = vec![(1, Readiness::OUT)];
    assert_eq!(wait(&mut world.client, set), room);
    write(&mut world.client, near, b"acknowledged").unwrap();
    world.settle();
    write(&mut world.server, far, b"arrived").unwrap();
    world.settle();
    assert_eq!(wait(&mut world.client, set), []);
    while write(&mut world.client, near, &[0; 100_000])
        .unwrap()
        .is_some()
    {
        world.settle();
    }
    assert_eq!(wait(&mut world.client, set), []);
    for _ in 0..1000 {
        read(&mut world.server, far).unwrap();
        world.pass(Duration::from_millis(10));
    }
    assert_eq!(wait(&mut world.client, set), room);
    assert_eq!(wait(&mut world.client, set), []);
}

/// Writes as much as there is room for, in one call, and as long as there is a third of the buffer.
const FILLED: [fn(&mut World, SocketNumber); 2] = [
    |world, near| {
        let large = vec![0; 5_000_000];
        let written = write(&mut world.client, near, &large).unwrap();
        assert!(written.unwrap() < large.len());
    },
    |world, near| {
        while world.client.readiness(near).has_any(Readiness::OUT) {
            write(&mut world.client, near, &[0; 1000]).unwrap();
        }
    },
];

#[test]
fn room_is_told_after_a_write_of_a_part_and_after_a_look_that_found_none() {
    for fill in FILLED {
        let mut world = World::new();
        let (near, far) = world.connection();
        let set = world.client.add_set();
        let watched = interest(Readiness::OUT, 0, 1);
        world.client.watch(set, near, 5, watched).unwrap();
        fill(&mut world, near);
        assert_eq!(wait(&mut world.client, set), []);
        for _ in 0..1000 {
            read(&mut world.server, far).unwrap();
            world.pass(Duration::from_millis(10));
        }
        assert_eq!(wait(&mut world.client, set), [(1, Readiness::OUT)]);
    }
}

const SOL_SOCKET: i32 = 1;
const SOL_TCP: i32 = 6;
const SO_SNDBUF: i32 = 7;
const SO_RCVLOWAT: i32 = 18;
const TCP_NOTSENT_LOWAT: i32 = 25;

#[test]
fn what_an_option_makes_ready_is_told_at_once() {
    let reads = (Readiness::IN, SOL_SOCKET, SO_RCVLOWAT, [5, 1]);
    let has_room = (Readiness::OUT, SOL_SOCKET, SO_SNDBUF, [1, 100_000]);
    let sends = (Readiness::OUT, SOL_TCP, TCP_NOTSENT_LOWAT, [1, 1_000_000]);
    for (condition, level, name, [before, after]) in [reads, has_room, sends] {
        let mut world = World::new();
        let (near, far) = world.connection();
        let set = world.client.add_set();
        let watched = interest(condition, Interest::EDGE, 1);
        let set_option = |world: &mut World, value: i32| {
            let value = value.to_ne_bytes();
            let result = world.client.set_option(near, level, name, &value);
            assert_eq!(result, Ok(()));
        };
        set_option(&mut world, before);
        write(&mut world.server, far, b"abc").unwrap();
        write(&mut world.client, near, &[0; 10_000]).unwrap();
        world.client.watch(set, near, 5, watched).unwrap();
        world.settle();
        write(&mut world.client, near, &[0; 10_000]).unwrap();
        wait(&mut world.client, set);
        world.client.take_woken().for_each(drop);
        set_option(&mut world, after);
        assert_eq!(world.client.take_woken().collect::<Vec<_>>(), [set]);
        assert_eq!(wait(&mut world.client, set), [(1, condition)]);
    }
}

#[test]
fn arrivals_and_room_are_told_by_their_other_names_too() {
    let mut world = World::new();
    let (near, far) = world.connection();
    let [arrivals, room, outer] = [0; 3].map(|_| world.client.add_set());
    let read = interest(Readiness::RDNORM, 0, 1);
    let written = interest(Readiness::WRNORM, 0, 2);
    world.client.watch(arrivals, near, 5, read).unwrap();
    world.client.watch(room, near, 5, written).unwrap();
    world.client.watch_set(outer, arrivals, 6, read).unwrap();
    FILLED[0](&mut world, near);
    for set in [arrivals, room, outer] {
        assert_eq!(wait(&mut world.client, set), []);
    }
    write(&mut world.server, far, b"abc").unwrap();
    for _ in 0..1000 {
        read_all(&mut world, far);
    }
    let told = [(1, Readiness::RDNORM)];
    assert_eq!(wait(&mut world.client, outer), told);
    assert_eq!(wait(&mut world.client, arrivals), told);
    assert_eq!(wait(&mut world.client, room), [(2, Readiness::WRNORM)]);
}

fn read_all(world: &mut World, far: SocketNumber) {
    read(&mut world.server, far).unwrap();
    world.pass(Duration::from_millis(10));
}
