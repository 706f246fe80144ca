//! Two futures at once, and their deadlines.

use super::*;
use crate::scripted_engine::Tasks;
use crate::time::Duration;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::future::{pending, ready};

/// Runs it for so many milliseconds; returns when it ended and its result.
fn outcome<T: 'static, F: Future<Output = T> + 'static>(
    make: impl FnOnce(Rc<crate::scheduler::Scheduler>) -> F,
) -> Vec<(u64, T)> {
    let mut tasks = Tasks::new();
    let found: Rc<RefCell<Vec<T>>> = Rc::default();
    let (seen, future) = (Rc::clone(&found), make(Rc::clone(&tasks.scheduler)));
    tasks.spawn(async move {
        let value = future.await;
        seen.borrow_mut().push(value);
    });
    let mut outcome = Vec::new();
    for millisecond in 0..100 {
        tasks.turns(1);
        outcome.extend(
            found
                .borrow_mut()
                .drain(..)
                .map(|value| (millisecond, value)),
        );
        tasks.engine.pass(Duration::from_millis(1));
    }
    outcome
}

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

#[test]
fn the_first_of_two_wins_whichever_it_is() {
    let check = |first: u64, second: u64, expected: (u64, Either<(), ()>)| {
        let found = outcome(|scheduler| async move {
            race(scheduler.sleep(ms(first)), scheduler.sleep(ms(second))).await
        });
        assert_eq!(found, [expected]);
    };
    check(10, 20, (10, Either::First(())));
    check(20, 10, (10, Either::Second(())));
    check(10, 10, (10, Either::First(())));
    let found = outcome(|_| race(pending::<()>(), ready(5)));
    assert_eq!(found, [(0, Either::Second(5))]);
}

#[test]
fn both_are_waited_for() {
    let check = |first: u64, second: u64, expected: u64| {
        let found = outcome(|scheduler| async move {
            let slow = async {
                scheduler.sleep(ms(first)).await;
                first
            };
            both(slow, scheduler.sleep(ms(second))).await.0
        });
        assert_eq!(found, [(expected, first)]);
    };
    check(10, 20, 20);
    check(20, 10, 20);
    check(0, 0, 0);
    assert!(outcome(|_| both(ready(1), pending::<()>())).is_empty());
}

#[test]
fn a_deadline_ends_a_race() {
    let found = outcome(|scheduler| async move {
        let deadline = scheduler.now() + ms(7);
        scheduler
            .until(deadline, race(pending::<()>(), pending::<()>()))
            .await
    });
    assert_eq!(found, [(7, Err(crate::scheduler::Expired))]);
}
