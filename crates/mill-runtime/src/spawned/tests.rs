//! Spawned tasks: their boxes, their limits, and what they may do to each other.

use super::*;
use crate::scripted_engine::Tasks as World;
use alloc::vec;
use core::future::{pending, ready};

#[test]
fn boxes_are_used_again() {
    let mut world = World::new();
    for _ in 0..100 {
        for number in 0..10 {
            world.spawn(async move {
                let text = [number; 300];
                ready(()).await;
                assert_eq!(text[299], number);
            });
        }
        world.turns(1);
    }
    let counts = world.scheduler.spawned();
    assert_eq!((counts.finishing, counts.boxes_made), (0, 10));
}

#[test]
fn where_as_many_live_as_may_the_future_comes_back() {
    let mut world = World::new();
    world.scheduler.set_spawned_max(2);
    let kept = Rc::new(());
    let task = |kept: Rc<()>| async move {
        pending::<()>().await;
        drop(kept);
    };
    let first = world.spawn(task(Rc::clone(&kept)));
    world.spawn(task(Rc::clone(&kept)));
    let refused = world
        .scheduler
        .spawn(Purpose::Background, task(Rc::clone(&kept)));
    assert_eq!(Rc::strong_count(&kept), 4, "it is still there");
    drop(refused);
    world.turns(1);
    assert_eq!(world.scheduler.spawned().refused, 1);
    world.scheduler.end(first);
    assert_eq!(Rc::strong_count(&kept), 2);
    world.spawn(task(Rc::clone(&kept)));
}

#[test]
fn purposes_are_counted_apart() {
    let mut world = World::new();
    let start = |purpose| world.scheduler.spawn(purpose, pending()).unwrap();
    let tasks = [Purpose::Finishing, Purpose::Background, Purpose::Background].map(start);
    let counts = |world: &World| {
        let counts = world.scheduler.spawned();
        (counts.finishing, counts.background)
    };
    assert_eq!(counts(&world), (1, 2));
    world.turns(1);
    world.scheduler.end(tasks[0]);
    world.scheduler.end(tasks[1]);
    world.scheduler.end(tasks[1]);
    assert_eq!(counts(&world), (0, 1));
}

#[test]
fn a_task_spawns_and_ends_others_while_it_runs() {
    let mut world = World::new();
    let seen: Rc<RefCell<Vec<&str>>> = Rc::default();
    let (scheduler, outer) = (Rc::clone(&world.scheduler), Rc::clone(&seen));
    world.spawn(async move {
        let inner = Rc::clone(&outer);
        let noisy = scheduler.spawn(Purpose::Finishing, async move {
            inner.borrow_mut().push("runs");
            pending::<()>().await;
        });
        let noisy = noisy.unwrap();
        scheduler.yield_now().await;
        scheduler.end(noisy);
        outer.borrow_mut().push("ended it");
    });
    world.turns(3);
    assert_eq!(*seen.borrow(), ["runs", "ended it"]);
    assert_eq!(world.scheduler.spawned().finishing, 0);
}

#[test]
fn a_number_does_not_outlive_its_task() {
    let mut world = World::new();
    let first = world.spawn(ready(()));
    world.turns(1);
    let second = world.spawn(pending());
    assert_ne!(first, second);
    world.scheduler.end(first);
    assert_eq!(world.scheduler.spawned().finishing, 1);
    assert_eq!(world.scheduler.spawned.ids(), vec![second]);
    assert_eq!(TaskId::from_bits(second.to_bits()), second);
}

#[test]
fn what_a_task_holds_may_end_others_when_it_is_dropped() {
    struct EndsAnother(Rc<Scheduler>, TaskId);
    impl Drop for EndsAnother {
        fn drop(&mut self) {
            self.0.end(self.1);
        }
    }
    let mut world = World::new();
    let other = world.spawn(pending());
    let guard = EndsAnother(Rc::clone(&world.scheduler), other);
    world.spawn(async move {
        let _guard = guard;
    });
    world.turns(1);
    assert_eq!(world.scheduler.spawned().finishing, 0);
}

#[test]
fn a_task_that_ends_itself_runs_to_its_next_wait() {
    struct EndsItself(Rc<Scheduler>, Rc<Cell<TaskId>>);
    impl Drop for EndsItself {
        fn drop(&mut self) {
            self.0.end(self.1.get());
        }
    }
    let mut world = World::new();
    let own = Rc::new(Cell::new(TaskId::NONE));
    let reached = Rc::new(Cell::new(0));
    let guard = EndsItself(Rc::clone(&world.scheduler), Rc::clone(&own));
    let (scheduler, task, seen) = (
        Rc::clone(&world.scheduler),
        Rc::clone(&own),
        Rc::clone(&reached),
    );
    own.set(world.spawn(async move {
        let _guard = guard;
        scheduler.end(task.get());
        seen.set(1);
        scheduler.yield_now().await;
        seen.set(2);
    }));
    world.turns(3);
    assert_eq!(reached.get(), 1);
    assert_eq!(world.scheduler.spawned().finishing, 0);
    world.scheduler.end(own.get());
    world.scheduler.end(TaskId::NONE);
    world.spawn(pending());
    assert_eq!(world.scheduler.spawned().finishing, 1);
}
