//! Connections that come from another process.

use super::neglecting::{OTHER, Shared, waiting_connections};
use super::*;
use core::sync::atomic::Ordering;

/// Connections on their way, and a process that listens nowhere.
fn brought() -> (World, std::sync::Arc<Shared>) {
    let (mut world, listener, shared) = waiting_connections();
    let connections = world.server.give_listening(listener);
    world.server.close(listener);
    world.settle();
    // The process has slept for long when they come.
    world.pass(Duration::from_secs(5));
    world.server.bring_waiting(&connections);
    world.settle();
    (world, shared)
}

#[test]
fn what_comes_before_the_program_listens_waits_for_it() {
    let (mut world, _) = brought();
    world.pass(Duration::from_millis(900));
    let listener = world.listen(waiting(false));
    world.settle();
    for _ in 0..2 {
        assert!(world.server.accept(listener).unwrap().is_some());
    }
}

#[test]
fn what_comes_to_a_process_that_does_not_listen_goes_to_one_that_does() {
    let (mut world, shared) = brought();
    shared.has_other.store(true, Ordering::Relaxed);
    shared.is_neglected.store(true, Ordering::Relaxed);
    world.pass(Duration::from_millis(30));
    assert_eq!(
        world.server.take_outgoing().count(),
        0,
        "it may be about to"
    );
    world.pass(Duration::from_millis(40));
    let outgoing: Vec<_> = world.server.take_outgoing().collect();
    assert_eq!(outgoing.len(), 1);
    assert_eq!(outgoing[0].0, OTHER);
}

#[test]
fn what_comes_to_a_process_that_does_not_listen_is_refused_where_none_does() {
    let (mut world, _) = brought();
    assert!(world.server.has_waiting());
    world.pass(Duration::from_millis(1100));
    assert!(!world.server.has_waiting());
    assert_eq!(world.server.take_outgoing().count(), 0);
}
