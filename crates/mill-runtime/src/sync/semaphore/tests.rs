//! Which task gets a permit, and when.

use super::*;
use crate::scripted_engine::Tasks;
use alloc::vec::Vec;
use core::cell::RefCell;

/// Names in the order in which their tasks got a permit; each keeps it until its name is taken out again.
#[derive(Clone, Default)]
struct Holders(Rc<RefCell<Vec<Holder>>>);

type Holder = (&'static str, Result<Permit, NoPermit>);

impl Holders {
    fn ask(
        &self,
        tasks: &Tasks,
        semaphore: &Rc<Semaphore>,
        name: &'static str,
    ) -> crate::tasks::TaskId {
        let (holders, semaphore) = (self.clone(), Rc::clone(semaphore));
        tasks.spawn(async move {
            let permit = semaphore.acquire().await;
            holders.0.borrow_mut().push((name, permit));
        })
    }

    fn names(&self) -> Vec<&'static str> {
        let holders = self.0.borrow();
        let named = holders.iter().filter(|(_, permit)| permit.is_ok());
        named.map(|(name, _)| *name).collect()
    }

    fn give_back(&self, name: &str) {
        let mut holders = self.0.borrow_mut();
        let place = holders.iter().position(|(other, _)| *other == name);
        let given = holders.remove(place.expect("it has one"));
        drop(holders);
        drop(given);
    }
}

#[test]
fn permits_are_given_in_the_order_of_the_requests() {
    let mut tasks = Tasks::new();
    let semaphore = Semaphore::new(&tasks.scheduler, 2, 10);
    let holders = Holders::default();
    for name in ["a", "b", "c", "d"] {
        holders.ask(&tasks, &semaphore, name);
    }
    tasks.turns(1);
    assert_eq!(holders.names(), ["a", "b"]);
    assert_eq!((semaphore.in_use(), semaphore.waiting()), (2, 2));
    assert!(semaphore.try_acquire().is_none());
    holders.give_back("a");
    tasks.turns(1);
    assert_eq!(holders.names(), ["b", "c"]);
    holders.give_back("b");
    holders.give_back("c");
    tasks.turns(1);
    assert_eq!(holders.names(), ["d"]);
    assert_eq!((semaphore.in_use(), semaphore.waiting()), (1, 0));
}

#[test]
fn a_permit_granted_to_a_task_that_is_gone_goes_to_the_next() {
    let mut tasks = Tasks::new();
    let semaphore = Semaphore::new(&tasks.scheduler, 1, 10);
    let held = semaphore.try_acquire();
    let holders = Holders::default();
    let names = ["a", "b", "c"];
    let [first, second, _] = names.map(|name| holders.ask(&tasks, &semaphore, name));
    tasks.turns(1);
    // From the middle of the queue, and after the permit was granted.
    tasks.scheduler.end(second);
    assert_eq!(semaphore.waiting(), 2);
    drop(held);
    tasks.scheduler.end(first);
    tasks.turns(1);
    assert_eq!(holders.names(), ["c"]);
    assert_eq!(semaphore.in_use(), 1);
}

#[test]
fn a_full_queue_refuses() {
    let mut tasks = Tasks::new();
    let semaphore = Semaphore::new(&tasks.scheduler, 0, 1);
    let holders = Holders::default();
    for name in ["a", "b"] {
        holders.ask(&tasks, &semaphore, name);
    }
    tasks.turns(1);
    let results = holders.0.borrow();
    assert!(matches!(results[..], [("b", Err(NoPermit::TooManyWait))]));
}

#[test]
fn fewer_permits_than_are_out_wait_until_they_are_back() {
    let mut tasks = Tasks::new();
    let semaphore = Semaphore::new(&tasks.scheduler, 3, 10);
    let mut held: Vec<_> = (0..3).map(|_| semaphore.try_acquire()).collect();
    let holders = Holders::default();
    holders.ask(&tasks, &semaphore, "a");
    semaphore.set_permits(1);
    tasks.turns(1);
    held.truncate(1);
    tasks.turns(1);
    assert_eq!(holders.names(), [""; 0]);
    held.clear();
    tasks.turns(1);
    assert_eq!(holders.names(), ["a"]);
    holders.ask(&tasks, &semaphore, "b");
    tasks.turns(1);
    semaphore.set_permits(2);
    tasks.turns(1);
    assert_eq!(holders.names(), ["a", "b"]);
}

#[test]
fn a_closed_semaphore_refuses_those_that_wait_as_well() {
    let mut tasks = Tasks::new();
    let semaphore = Semaphore::new(&tasks.scheduler, 1, 10);
    let held = semaphore.try_acquire();
    let holders = Holders::default();
    holders.ask(&tasks, &semaphore, "a");
    tasks.turns(1);
    semaphore.close();
    holders.ask(&tasks, &semaphore, "b");
    tasks.turns(1);
    drop(held);
    assert!(semaphore.try_acquire().is_none());
    let results = holders.0.borrow();
    let is_closed = |name: &str| {
        let found = results.iter().find(|(other, _)| *other == name);
        matches!(found, Some((_, Err(NoPermit::Closed))))
    };
    assert!(is_closed("a") && is_closed("b"));
}

#[test]
fn slots_of_the_queue_are_used_again() {
    let mut tasks = Tasks::new();
    let semaphore = Semaphore::new(&tasks.scheduler, 1, 10);
    let holders = Holders::default();
    for _ in 0..50 {
        holders.ask(&tasks, &semaphore, "a");
        holders.ask(&tasks, &semaphore, "b");
        tasks.turns(1);
        holders.give_back("a");
        tasks.turns(1);
        holders.give_back("b");
    }
    assert_eq!(tasks.scheduler.spawned().boxes_made, 2);
    assert_eq!((semaphore.in_use(), semaphore.waiting()), (0, 0));
}

#[test]
fn what_was_granted_before_the_end_is_a_permit_and_comes_back() {
    for takes_it in [false, true] {
        let mut tasks = Tasks::new();
        let semaphore = Semaphore::new(&tasks.scheduler, 1, 10);
        let held = semaphore.try_acquire();
        let holders = Holders::default();
        let waiter = holders.ask(&tasks, &semaphore, "a");
        tasks.turns(1);
        drop(held);
        semaphore.close();
        if takes_it {
            tasks.turns(1);
            assert_eq!((holders.names(), semaphore.in_use()), (alloc::vec!["a"], 1));
            holders.give_back("a");
        } else {
            tasks.scheduler.end(waiter);
        }
        assert_eq!(semaphore.in_use(), 0);
    }
}
