//! The memory of a connection, also while it is idle.

use crate::closed_loop::{get, plan};
use crate::keep::Keep;
use mill_load::generator::{Generator, generator};
use mill_runtime::engine::Engine;
use mill_sim::world::World;
use std::sync::Arc;

fn bytes_of_task<E: Engine, R, F>(_: &Generator<E, R, F>) -> usize {
    size_of::<F>()
}

/// The whole future of a connection, from its opening to the end of an answer. It is the largest part of the memory of
/// an idle client connection; see `docs/measurements/bypass.md`.
#[test]
fn the_task_of_a_connection_has_a_bound() {
    let world = World::new(7);
    let plan = plan();
    let share = plan.shares().next().expect("a plan has a thread");
    let part = (Arc::new(plan), share);
    let generator = generator(world.engine(), part, world.now(), get(), Keep::default());
    let bytes = bytes_of_task(&generator);
    assert!(bytes <= TASK_BYTES_MAX, "{bytes}");
}

/// Over the simulation, whose streams are as large as those of a stack of our own; 8 of them say whether it is one of HTTP/2, and 8 are for
/// early data.
const TASK_BYTES_MAX: usize = 528;
