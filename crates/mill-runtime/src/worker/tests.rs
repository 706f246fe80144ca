//! The turn, over a scripted engine.

use super::*;
use crate::scripted_engine::{ScriptedEngine, ScriptedStream, Tasks};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::{format, vec};
use core::cell::{Cell, RefCell};
use core::future::{pending, poll_fn, ready};
use core::pin::Pin;
use core::task::Poll;

type Task = Pin<Box<dyn Future<Output = ()>>>;
type Listening = Worker<ScriptedEngine, Task, fn(ScriptedStream, ListenerId) -> Task>;

const LISTENER: ListenerId = ListenerId(7);

/// A worker whose connections' tasks never end.
fn listening() -> (ScriptedEngine, Listening) {
    let engine = ScriptedEngine::default();
    let scheduler = Scheduler::new(engine.instant(), engine.clock().1);
    let accepted: fn(ScriptedStream, ListenerId) -> Task = |_, _| Box::pin(pending());
    let mut worker = Worker::new(engine.clone(), scheduler, accepted);
    worker.add_listener(LISTENER);
    engine.script().calls.borrow_mut().clear();
    (engine, worker)
}

fn knock(engine: &ScriptedEngine, count: usize) {
    let script = engine.script();
    script.acceptable.borrow_mut().push(LISTENER);
    for _ in 0..count {
        let mut waiting = script.waiting.borrow_mut();
        waiting.push_back(Accept::Stream(ScriptedStream));
    }
}

/// The calls since the last check; consecutive ones of one name as one with their number.
fn calls(engine: &ScriptedEngine) -> String {
    let calls = core::mem::take(&mut *engine.script().calls.borrow_mut());
    let runs = calls.chunk_by(|one, other| one == other);
    let runs = runs.map(|run| match run {
        [call] => String::from(*call),
        run => format!("{}*{}", run.len(), run[0]),
    });
    runs.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_turn_polls_accepts_and_settles() {
    let (engine, mut worker) = listening();
    assert!(!worker.turn().is_busy);
    assert_eq!(calls(&engine), "poll settle");
    knock(&engine, 1);
    assert!(worker.turn().is_busy);
    assert_eq!(calls(&engine), "poll accept settle");
    assert_eq!(worker.tasks(), 1);
}

#[test]
fn a_listener_is_visited_as_often_as_connections_waited_lately() {
    let (engine, mut worker) = listening();
    let script = engine.script();
    for _ in 0..1000 {
        script
            .waiting
            .borrow_mut()
            .push_back(Accept::Stream(ScriptedStream));
    }
    let mut taken = Vec::new();
    for _ in 0..8 {
        let before = worker.tasks();
        script.acceptable.borrow_mut().push(LISTENER);
        worker.turn();
        taken.push(worker.tasks() - before);
    }
    assert_eq!(taken, [1, 2, 4, 8, 16, 32, 64, 64]);
}

#[test]
fn at_the_limit_of_tasks_accepting_pauses_until_there_is_room() {
    let (engine, mut worker) = listening();
    worker.set_tasks_max(1);
    knock(&engine, 2);
    worker.turn();
    script_again(&engine);
    assert_eq!(worker.turn().paused, Some(Pause::Limit));
    assert_eq!(worker.tasks(), 1);
    assert_eq!(calls(&engine), "poll accept settle poll pause settle");
    worker.set_tasks_max(2);
    script_again(&engine);
    worker.turn();
    assert_eq!(worker.tasks(), 2);
    assert_eq!(calls(&engine), "poll resume accept settle");
}

fn script_again(engine: &ScriptedEngine) {
    engine.script().acceptable.borrow_mut().push(LISTENER);
}

#[test]
fn when_descriptors_are_out_accepting_pauses_for_half_a_second() {
    let (engine, mut worker) = listening();
    engine
        .script()
        .waiting
        .borrow_mut()
        .push_back(Accept::Exhausted(24));
    knock(&engine, 1);
    assert_eq!(worker.turn().paused, Some(Pause::Exhausted(24)));
    worker.turn();
    let until = engine.instant() + ACCEPT_PAUSE;
    assert_eq!(
        engine.script().parks.borrow().last(),
        Some(&Park::Until(until))
    );
    engine.pass(ACCEPT_PAUSE);
    script_again(&engine);
    assert_eq!(worker.turn().paused, None);
    assert_eq!(worker.tasks(), 1);
}

#[test]
fn closing_a_listener_accepts_all_connections_that_wait_or_leaves_it_open() {
    let (engine, mut worker) = listening();
    knock(&engine, 3);
    engine
        .script()
        .waiting
        .borrow_mut()
        .push_back(Accept::Exhausted(24));
    assert!(!worker.close_listener(LISTENER));
    assert_eq!(calls(&engine), "4*accept settle");
    assert!(worker.close_listener(LISTENER));
    assert_eq!(calls(&engine), "accept close_listener settle");
    assert_eq!(worker.tasks(), 3);
}

#[test]
fn a_task_sleeps_until_its_deadline_and_the_turn_with_it() {
    let mut tasks = Tasks::new();
    let woke = Rc::new(Cell::new(None));
    let (scheduler, seen) = (Rc::clone(&tasks.scheduler), Rc::clone(&woke));
    tasks.spawn(async move {
        scheduler.sleep(Duration::from_millis(30)).await;
        seen.set(Some(scheduler.now()));
    });
    let start = tasks.engine.instant();
    for _ in 0..40 {
        tasks.turns(1);
        tasks.engine.pass(Duration::from_millis(1));
    }
    let woke = woke.get().expect("it is time");
    assert_eq!(woke.since(start), Duration::from_millis(30));
    let parks = tasks.engine.script().parks.borrow();
    assert_eq!(
        parks[..2],
        [Park::No, Park::Until(start + Duration::from_millis(30))]
    );
    assert_eq!(parks.last(), Some(&Park::Forever));
}

#[test]
fn tasks_that_wake_each_other_hop_within_a_turn_but_not_for_ever() {
    let mut tasks = Tasks::new();
    let hops = Rc::new(Cell::new(0));
    let players: Rc<RefCell<Vec<TaskId>>> = Rc::default();
    for other in [1, 0] {
        let (scheduler, hops) = (Rc::clone(&tasks.scheduler), Rc::clone(&hops));
        let players_seen = Rc::clone(&players);
        let player = tasks.spawn(poll_fn(move |_| {
            hops.set(hops.get() + 1);
            scheduler.wake_soon(players_seen.borrow()[other]);
            Poll::Pending
        }));
        players.borrow_mut().push(player);
    }
    tasks.turns(1);
    // Both are polled in each round and wake each other, the first time and in sixteen rounds more.
    assert_eq!(hops.get(), 2 * (ROUNDS_PER_TURN + 1));
    tasks.turns(1);
    assert_eq!(hops.get(), 4 * (ROUNDS_PER_TURN + 1));
    assert_eq!(*tasks.engine.script().parks.borrow(), vec![Park::No; 2]);
}

#[test]
fn a_task_that_is_woken_for_the_next_turn_waits_for_it() {
    let mut tasks = Tasks::new();
    let polls = Rc::new(Cell::new(0));
    let (scheduler, seen) = (Rc::clone(&tasks.scheduler), Rc::clone(&polls));
    tasks.spawn(async move {
        loop {
            seen.set(seen.get() + 1);
            scheduler.yield_now().await;
        }
    });
    for turn in 1..=3 {
        tasks.turns(1);
        assert_eq!(polls.get(), turn);
    }
}

#[test]
fn two_events_of_a_turn_poll_a_spawned_task_once() {
    let mut tasks = Tasks::new();
    let polls = Rc::new(Cell::new(0));
    let seen = Rc::clone(&polls);
    let task = tasks.spawn(poll_fn(move |_| {
        seen.set(seen.get() + 1);
        Poll::Pending
    }));
    tasks.turns(1);
    assert_eq!(polls.get(), 1);
    tasks
        .engine
        .script()
        .ready
        .borrow_mut()
        .extend([task, task]);
    tasks.turns(1);
    assert_eq!(polls.get(), 2);
}

#[test]
fn spawned_tasks_end_with_their_worker() {
    let tasks = Tasks::new();
    let held = Rc::new(());
    let mine = Rc::clone(&held);
    tasks.spawn(async move {
        pending::<()>().await;
        drop(mine);
    });
    let scheduler = Rc::clone(&tasks.scheduler);
    drop(tasks);
    assert_eq!(Rc::strong_count(&held), 1);
    assert_eq!(Rc::strong_count(&scheduler), 1);
    assert!(
        scheduler
            .spawn(crate::spawned::Purpose::Finishing, ready(()))
            .is_err()
    );
}
