//! epoll sets that watch sets, and the order of what they tell.

use super::*;

#[test]
fn a_set_that_watches_a_set_is_ready_while_that_has_something_to_tell() {
    let mut world = World::new();
    let (near, far) = world.connection();
    let (inner, outer) = (world.client.add_set(), world.client.add_set());
    let wanted = interest(Readiness::IN, 0, 1);
    world.client.watch_set(outer, inner, 5, wanted).unwrap();
    world.client.watch(inner, near, 3, wanted).unwrap();
    assert!(!world.client.is_set_ready(outer));
    write(&mut world.server, far, b"abc").unwrap();
    world.settle();
    assert!(world.client.is_set_ready(inner) && world.client.is_set_ready(outer));
    let mut found = Vec::new();
    world.client.collect(outer, 9, &mut found);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].events, Readiness::IN);
    read(&mut world.client, near).unwrap();
    assert!(!world.client.is_set_ready(outer));
    world.client.unwatch_set(outer, inner, 5).unwrap();
    let gone = world.client.unwatch_set(outer, inner, 5);
    assert_eq!(gone, Err(Errno::NO_ENTRY));
}

#[test]
fn bytes_for_a_socket_that_is_shut_reset_the_connection() {
    let mut world = World::new();
    let (near, far) = world.connection();
    world.client.shutdown(near, Half::Both).unwrap();
    world.settle();
    write(&mut world.server, far, b"abc").unwrap();
    world.settle();
    assert_eq!(read(&mut world.client, near), Err(Errno::RESET));
    assert_eq!(world.client.connected(near), Err(Errno::IS_CONNECTED));
    assert!(world.server.is_over(far));
}

#[test]
fn shutdown_after_a_refusal_leaves_a_socket_that_connects_no_more() {
    let mut world = World::new();
    let near = world.connect();
    world.settle();
    let shut = world.client.shutdown(near, WRITING);
    assert_eq!(shut, Err(Errno::NOT_CONNECTED));
    assert_eq!(world.client.connected(near), Err(Errno::INVALID));
}
