//! Connections that wait at a listener whose program does not look, in virtual time.

use super::*;
use core::sync::atomic::{AtomicBool, Ordering};
use mill_stack::flow::Flow;
use mill_stack::host::migration::format;
use mill_stack::process_group::{Load, Others, ProcessGroup, Taker};
use std::sync::Arc;

/// What the others of a group see of this process, and it of them.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Another process listens, and looks.
    pub(super) has_other: AtomicBool,
    /// It has no connection, and may serve one at a time.
    is_other_idle: AtomicBool,
    pub(super) is_neglected: AtomicBool,
}

#[derive(Debug)]
struct Group(Arc<Shared>);

impl ProcessGroup for Group {
    fn join(&mut self, _address: SocketAddr) {}

    fn leave(&mut self, _address: SocketAddr) {}

    fn others(&mut self, _address: SocketAddr) -> Others {
        let has = |it: &AtomicBool| it.load(Ordering::Relaxed);
        Others {
            count: usize::from(has(&self.0.has_other)),
            idle: usize::from(has(&self.0.is_other_idle)),
            are_concurrent: !has(&self.0.is_other_idle),
        }
    }

    fn taker(&mut self, _: SocketAddr, _: &Flow, _: bool, _: &[u64]) -> Taker {
        let leaves = [&self.0.has_other, &self.0.is_neglected];
        match leaves.iter().all(|it| it.load(Ordering::Relaxed)) {
            true => Taker::Another(OTHER),
            false => Taker::This,
        }
    }

    fn note_load(&mut self, _address: SocketAddr, load: Load) {
        self.0
            .is_neglected
            .store(load.is_neglected, Ordering::Relaxed);
    }

    fn note_given(&mut self, _address: SocketAddr, _flow: &Flow, _taker: Taker) {}

    fn has_departed(&self, _flow: &Flow) -> bool {
        false
    }

    fn forget_departed(&mut self, _flow: &Flow) {}
}

pub(super) const OTHER: u64 = 9;

/// A server with two connections that wait, and what it knows of others.
pub(super) fn waiting_connections() -> (World, SocketNumber, Arc<Shared>) {
    let mut world = World::new();
    let shared = Arc::new(Shared::default());
    let group = Group(Arc::clone(&shared));
    world.server.set_process_group(Box::new(group));
    let listener = world.listen(waiting(false));
    for _ in 0..2 {
        let near = world.connect();
        world.settle();
        write(&mut world.client, near, b"text").unwrap();
    }
    world.settle();
    (world, listener, shared)
}

impl World {
    /// Some time, in which it is looked now and then; what is passed meanwhile.
    fn pass_by(&mut self, ms: u64) -> Vec<(u64, Vec<u8>)> {
        let mut passed = Vec::new();
        for _ in 0..ms / 10 {
            self.pass(Duration::from_millis(10));
            passed.extend(self.server.pass_neglected(self.now));
        }
        passed
    }

    fn waiting_at(&self, listener: SocketNumber) -> bool {
        self.server.readiness(listener).has_any(Readiness::IN)
    }
}

#[test]
fn what_waits_without_a_look_goes_to_another_process_once_one_listens() {
    let (mut world, listener, shared) = waiting_connections();
    // None does: they wait.
    assert!(world.pass_by(300).is_empty());
    shared.has_other.store(true, Ordering::Relaxed);
    let passed = world.pass_by(60);
    let [(OTHER, connections)] = &passed[..] else {
        panic!("{passed:?}")
    };
    let mut rest = &connections[..];
    let each: Vec<_> = core::iter::from_fn(|| format::read(&mut rest)).collect();
    assert_eq!(each.len(), 2);
    assert!(shared.is_neglected.load(Ordering::Relaxed));
    assert!(!world.waiting_at(listener));
}

#[test]
fn what_was_passed_waits_where_it_is_brought() {
    let (mut world, listener, shared) = waiting_connections();
    shared.has_other.store(true, Ordering::Relaxed);
    let passed = world.pass_by(120);
    shared.has_other.store(false, Ordering::Relaxed);
    for (_, connections) in passed {
        world.server.bring_waiting(&connections);
    }
    world.settle();
    for _ in 0..2 {
        let far = world.server.accept(listener).unwrap().unwrap();
        let text = read(&mut world.server, far).unwrap();
        assert_eq!(text.as_deref(), Some(&b"text"[..]));
    }
}

#[test]
fn a_program_that_looks_keeps_what_waits() {
    // It polls, waits for a set that watches the listener, or for one that watches that set, and accepts none.
    for way in 0..3 {
        let (mut world, listener, shared) = waiting_connections();
        shared.has_other.store(true, Ordering::Relaxed);
        let sets = [world.server.add_set(), world.server.add_set()];
        let arrivals = interest(Readiness::IN, Interest::EDGE, 1);
        world.server.watch(sets[0], listener, 3, arrivals).unwrap();
        world
            .server
            .watch_set(sets[1], sets[0], 4, arrivals)
            .unwrap();
        for _ in 0..20 {
            match way {
                0 => drop(world.server.readiness(listener)),
                1 => world.server.collect(sets[0], 1, &mut Vec::new()),
                _ => world.server.collect(sets[1], 1, &mut Vec::new()),
            }
            assert!(world.pass_by(30).is_empty(), "{way}");
        }
        assert!(!shared.is_neglected.load(Ordering::Relaxed));
        assert!(world.waiting_at(listener));
    }
}

#[test]
fn a_wait_for_anything_else_is_no_look() {
    let (mut world, listener, shared) = waiting_connections();
    shared.has_other.store(true, Ordering::Relaxed);
    let set = world.server.add_set();
    // As libevent, which takes the listener out by its conditions alone.
    let nothing = interest(Readiness::NONE, 0, 1);
    world.server.watch(set, listener, 3, nothing).unwrap();
    let mut passed = Vec::new();
    for _ in 0..5 {
        world.server.collect(set, 1, &mut Vec::new());
        passed.extend(world.pass_by(20));
    }
    assert_eq!(passed.len(), 1);
}

#[test]
fn a_look_ends_the_neglect() {
    let (mut world, listener, shared) = waiting_connections();
    shared.has_other.store(true, Ordering::Relaxed);
    assert_eq!(world.pass_by(2000).len(), 1);
    assert!(shared.is_neglected.load(Ordering::Relaxed));
    assert_eq!(world.server.accept(listener).unwrap(), None);
    world.server.heed_looks();
    assert!(!shared.is_neglected.load(Ordering::Relaxed));
    // From then on it has as much time as before.
    world.connect();
    assert!(world.pass_by(50).is_empty());
    assert_eq!(world.pass_by(60).len(), 1);
}

#[test]
fn a_listener_that_is_closed_while_it_is_neglected_is_forgotten() {
    let (mut world, listener, shared) = waiting_connections();
    shared.has_other.store(true, Ordering::Relaxed);
    assert_eq!(world.pass_by(1200).len(), 1);
    world.server.close(listener);
    world.settle();
    let next = world.listen(waiting(false));
    world.connect();
    world.settle();
    assert!(world.waiting_at(next));
}

#[test]
fn an_idle_process_that_may_serve_one_at_a_time_gets_one_at_once() {
    let (mut world, listener, shared) = waiting_connections();
    shared.has_other.store(true, Ordering::Relaxed);
    shared.is_other_idle.store(true, Ordering::Relaxed);
    let passed = world.pass_by(20);
    let [(OTHER, connections)] = &passed[..] else {
        panic!("{passed:?}")
    };
    let mut rest = &connections[..];
    assert!(format::read(&mut rest).is_some() && rest.is_empty());
    assert!(world.waiting_at(listener));
}
