//! Precise waiting: tasks that wait for an instant which the timer wheel's milliseconds would miss.

use core::cell::RefCell;
use core::cmp::Reverse;
use core::future::poll_fn;
use core::task::Poll;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::tasks::TaskId;
use mill_runtime::time::Instant;
use std::collections::BinaryHeap;

/// A heap of instants. Costs O(log waiting) per wait; only requests with due times use it.
#[derive(Debug, Default)]
pub(crate) struct Pacer {
    due: RefCell<BinaryHeap<Reverse<(Instant, TaskId)>>>,
}

impl Pacer {
    /// Waits until `at`, to the precision of the thread's loop.
    pub(crate) async fn until(&self, scheduler: &Scheduler, at: Instant) {
        if scheduler.now() >= at {
            return;
        }
        self.due
            .borrow_mut()
            .push(Reverse((at, scheduler.current())));
        poll_fn(|_| {
            if scheduler.now() >= at {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// Wakes all tasks whose time has come.
    pub(crate) fn release(&self, scheduler: &Scheduler, now: Instant) {
        let mut due = self.due.borrow_mut();
        while let Some(Reverse((at, task))) = due.peek().copied() {
            if at > now {
                return;
            }
            due.pop();
            scheduler.wake(task);
        }
    }

    /// The next instant, [`Instant::FAR`] if no task waits.
    pub(crate) fn next(&self) -> Instant {
        self.due
            .borrow()
            .peek()
            .map_or(Instant::FAR, |Reverse((at, _))| *at)
    }
}
