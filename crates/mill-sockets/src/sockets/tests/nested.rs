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
fn a_ready_set_that_is_added_within_a_set_is_told_by_the_outermost_one() {
    let mut world = World::new();
    let (near, far) = world.connection();
    let client = &mut world.client;
    let [inner, middle, outer] = [client.add_set(), client.add_set(), client.add_set()];
    let wanted = interest(Readiness::IN, 0, 1);
    client.watch(inner, near, 3, wanted).unwrap();
    client.watch_set(outer, middle, 5, wanted).unwrap();
    write(&mut world.server, far, b"abc").unwrap();
    world.settle();
    let client = &mut world.client;
    client.take_woken().for_each(drop);
    let nothing = interest(Readiness::OUT, 0, 1);
    client.watch_set(middle, inner, 4, nothing).unwrap();
    assert!(!client.is_set_ready(outer));
    for add in [false, true] {
        let result = match add {
            true => client.watch_set(middle, inner, 4, wanted),
            false => client.change_watch_of_set(middle, inner, 4, wanted),
        };
        assert_eq!(result, Ok(()));
        assert!(client.take_woken().any(|set| set == outer));
        let mut found = Vec::new();
        client.collect(outer, 9, &mut found);
        assert_eq!(found.len(), 1);
        client.unwatch_set(middle, inner, 4).unwrap();
        client.collect(outer, 9, &mut found);
        assert_eq!(found.len(), 1, "it is told no more");
    }
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
