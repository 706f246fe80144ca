//! Tasks that no connection brought: workers that connect and never listen.

use crate::server::{ADDRESS, start};
use mill_conformance::serving::echo;
use mill_runtime::engine::{ConnectOptions, Engine};
use mill_runtime::payload::Payload;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::stream::Stream;
use mill_runtime::time::Instant;
use mill_runtime::worker::{ConnectingWorker, Worker};
use mill_sim::engine::SimEngine;
use mill_sim::link::Link;
use mill_sim::world::{Until, World};
use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

type Task = Pin<Box<dyn Future<Output = ()>>>;

fn connecting(world: &World) -> (ConnectingWorker<SimEngine, Task>, SimEngine, Rc<Scheduler>) {
    let engine = world.engine();
    let (now, wall_clock) = engine.clock();
    let scheduler = Scheduler::new(now, wall_clock);
    let worker = Worker::connecting(engine.clone(), Rc::clone(&scheduler));
    (worker, engine, scheduler)
}

#[test]
fn a_spawned_task_is_polled_first_in_the_next_turn_and_knows_its_id() {
    let world = World::new(1);
    let (mut worker, _, scheduler) = connecting(&world);
    let ran_as = Rc::new(Cell::new(None));
    let note = Rc::clone(&ran_as);
    let task = worker.spawn(Box::pin(async move { note.set(Some(scheduler.current())) }));
    assert_eq!((ran_as.get(), worker.tasks()), (None, 1));
    worker.turn();
    assert_eq!((ran_as.get(), worker.tasks()), (Some(task), 0));
}

#[test]
fn an_ended_tasks_place_is_taken_by_the_next_one_under_another_id() {
    let world = World::new(1);
    let (mut worker, ..) = connecting(&world);
    let first = worker.spawn(Box::pin(async {}));
    worker.turn();
    let second = worker.spawn(Box::pin(async {}));
    worker.turn();
    assert_ne!(first, second);
    assert_eq!(worker.tasks(), 0);
}

#[test]
fn spawned_tasks_sleep_each_for_as_long_as_it_wants() {
    let world = World::new(1);
    let (mut worker, engine, scheduler) = connecting(&world);
    let start = engine.now();
    let woke = Rc::new(RefCell::new(Vec::new()));
    for ms in [30, 10, 20] {
        let (scheduler, engine, woke) = (Rc::clone(&scheduler), engine.clone(), Rc::clone(&woke));
        worker.spawn(Box::pin(async move {
            scheduler.sleep(ms * MS).await;
            woke.borrow_mut().push(engine.now().since(start));
        }));
    }
    world.run(|| worker.turn(), Until::Idle);
    assert_eq!(*woke.borrow(), [10 * MS, 20 * MS, 30 * MS]);
}

#[test]
fn a_worker_that_connects_talks_with_the_listener_of_another_in_virtual_time() {
    let world = World::new(1);
    world.set_link(Link::delayed(10 * MS));
    let mut server = start(&world, |stream, _| echo(stream));
    let (mut worker, engine, scheduler) = connecting(&world);
    let target = world.address(ADDRESS);
    let heard = Rc::new(RefCell::new(Vec::<(Instant, Vec<u8>)>::new()));
    let ear = Rc::clone(&heard);
    let start = engine.now();
    worker.spawn(Box::pin(async move {
        let options = ConnectOptions::default();
        let stream = engine
            .connect(&target, &options, scheduler.current())
            .unwrap();
        stream.drained(0).await.unwrap();
        for text in ["hello", "again"] {
            stream.write(Payload::Copy(text.as_bytes()));
            stream.readable(text.len()).await.unwrap();
            let bytes = stream.read(|bytes| (bytes.len(), bytes.to_vec()));
            ear.borrow_mut().push((engine.now(), bytes));
        }
    }));
    let turns = || {
        worker.turn();
        server.worker.turn();
    };
    world.run(turns, Until::Quiet);
    let expected = [
        (start + 40 * MS, b"hello".to_vec()),
        (start + 60 * MS, b"again".to_vec()),
    ];
    assert_eq!(*heard.borrow(), expected);
}

#[test]
fn a_given_source_port_is_what_the_peer_sees_and_others_are_the_connections_own() {
    let world = World::new(1);
    let seen = Rc::new(RefCell::new(Vec::new()));
    let eye = Rc::clone(&seen);
    let mut server = start(&world, move |stream, _| {
        eye.borrow_mut().push(stream.peer().to_string());
        async {}
    });
    let (mut worker, engine, scheduler) = connecting(&world);
    for source in ["10.0.0.9:4321", "10.0.0.9:0", "10.0.0.9:0"] {
        let (engine, scheduler) = (engine.clone(), Rc::clone(&scheduler));
        let (target, source) = (world.address(ADDRESS), world.address(source));
        worker.spawn(Box::pin(async move {
            let options = ConnectOptions {
                source: Some(source),
                ..ConnectOptions::default()
            };
            let stream = engine.connect(&target, &options, scheduler.current());
            stream.unwrap().drained(0).await.unwrap();
        }));
    }
    let turns = || {
        worker.turn();
        server.worker.turn();
    };
    world.run(turns, Until::Quiet);
    let seen = seen.borrow();
    assert_eq!((seen.len(), seen[0].as_str()), (3, "10.0.0.9:4321"));
    assert!(seen.iter().all(|peer| peer.starts_with("10.0.0.9:")));
    assert!(seen[1] != seen[2] && seen.iter().all(|peer| !peer.ends_with(":0")));
}
