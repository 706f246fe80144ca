//! The servers that the tests run, and the worker they run on.

use mill_runtime::engine::{Engine, ListenOptions, ListenerId};
use mill_runtime::scheduler::Scheduler;
use mill_runtime::worker::Worker;
use mill_sim::engine::SimEngine;
use mill_sim::stream::SimStream;
use mill_sim::world::{Until, World};
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

/// Where the servers listen.
pub(crate) const ADDRESS: &str = "10.0.0.1:80";

/// A worker with one listener.
pub(crate) struct Server<F, Accepted> {
    pub(crate) worker: Worker<SimEngine, F, Accepted>,
    pub(crate) listener: ListenerId,
}

/// Serves every connection to [`ADDRESS`] with a task that `serve` makes.
pub(crate) fn start<F, S>(
    world: &World,
    serve: S,
) -> Server<F, impl FnMut(SimStream, ListenerId) -> F + use<F, S>>
where
    F: Future<Output = ()>,
    S: FnMut(SimStream, Rc<Scheduler>) -> F,
{
    start_with(world, &ListenOptions::new(world.address(ADDRESS)), serve)
}

pub(crate) fn start_with<F, S>(
    world: &World,
    options: &ListenOptions,
    serve: S,
) -> Server<F, impl FnMut(SimStream, ListenerId) -> F + use<F, S>>
where
    F: Future<Output = ()>,
    S: FnMut(SimStream, Rc<Scheduler>) -> F,
{
    start_on(world.engine(), options, serve)
}

pub(crate) fn start_on<F, S>(
    engine: SimEngine,
    options: &ListenOptions,
    mut serve: S,
) -> Server<F, impl FnMut(SimStream, ListenerId) -> F + use<F, S>>
where
    F: Future<Output = ()>,
    S: FnMut(SimStream, Rc<Scheduler>) -> F,
{
    let (now, wall_clock) = engine.clock();
    let scheduler = Scheduler::new(now, wall_clock);
    let listener = engine.listen(options).expect("the address is free").id;
    let for_tasks = Rc::clone(&scheduler);
    let mut worker = Worker::new(engine, scheduler, move |stream, _| {
        serve(stream, Rc::clone(&for_tasks))
    });
    worker.add_listener(listener);
    Server { worker, listener }
}

impl<F, Accepted> Server<F, Accepted>
where
    F: Future<Output = ()>,
    Accepted: FnMut(SimStream, ListenerId) -> F,
{
    pub(crate) fn run(&mut self, world: &World) {
        world.run(|| self.worker.turn(), Until::Quiet);
    }

    pub(crate) fn run_until_idle(&mut self, world: &World) {
        world.run(|| self.worker.turn(), Until::Idle);
    }

    /// Runs until so much time has passed since the world began.
    pub(crate) fn run_to(&mut self, world: &World, elapsed: Duration) {
        world.run(|| self.worker.turn(), Until::At(elapsed));
    }

    pub(crate) fn advance(&mut self, world: &World, duration: Duration) {
        world.advance(|| self.worker.turn(), duration);
    }
}
