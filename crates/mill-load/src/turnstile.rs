//! Limits how many tasks go on in a turn: each takes so long that all at once would delay the others.

use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::task::Poll;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::tasks::TaskId;
use std::collections::VecDeque;
use std::rc::Rc;

/// Lets tasks pass in the order of their arrival, a bounded number between two calls of [`Turnstile::admit`].
#[derive(Debug)]
pub(crate) struct Turnstile {
    per_turn: usize,
    left: Cell<usize>,
    waiting: RefCell<VecDeque<Waiting>>,
}

#[derive(Debug)]
struct Waiting {
    task: TaskId,
    admitted: Rc<Cell<bool>>,
}

impl Turnstile {
    pub(crate) fn new(per_turn: usize) -> Self {
        Self {
            per_turn,
            left: Cell::new(per_turn),
            waiting: RefCell::default(),
        }
    }

    /// Waits for the current task's turn.
    pub(crate) async fn pass(&self, scheduler: &Scheduler) {
        if let Some(left) = self.left.get().checked_sub(1) {
            self.left.set(left);
            return;
        }
        let admitted = Rc::new(Cell::new(false));
        self.waiting.borrow_mut().push_back(Waiting {
            task: scheduler.current(),
            admitted: Rc::clone(&admitted),
        });
        poll_fn(|_| {
            if admitted.get() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// A new turn: wakes the tasks that may pass in it.
    pub(crate) fn admit(&self, scheduler: &Scheduler) {
        let mut waiting = self.waiting.borrow_mut();
        let count = waiting.len().min(self.per_turn);
        for Waiting { task, admitted } in waiting.drain(..count) {
            admitted.set(true);
            scheduler.wake(task);
        }
        self.left.set(self.per_turn - count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::pin::pin;
    use core::task::{Context, Waker};
    use mill_runtime::time::{Instant, UnixTime};

    #[test]
    fn no_more_tasks_pass_than_a_turn_admits_and_none_is_skipped() {
        let scheduler = Scheduler::new(Instant::default(), UnixTime::default());
        let turnstile = Turnstile::new(2);
        let passes = |task: &mut core::pin::Pin<&mut dyn Future<Output = ()>>| {
            let mut context = Context::from_waker(Waker::noop());
            task.as_mut().poll(&mut context).is_ready()
        };
        let (a, b) = (
            pin!(turnstile.pass(&scheduler)),
            pin!(turnstile.pass(&scheduler)),
        );
        let (c, d, e, f) = (
            pin!(turnstile.pass(&scheduler)),
            pin!(turnstile.pass(&scheduler)),
            pin!(turnstile.pass(&scheduler)),
            pin!(turnstile.pass(&scheduler)),
        );
        let mut tasks: [core::pin::Pin<&mut dyn Future<Output = ()>>; 6] = [a, b, c, d, e, f];
        let [a, b, c, d, e, f] = &mut tasks;
        assert_eq!([a, b, c, d].map(passes), [true, true, false, false]);
        turnstile.admit(&scheduler);
        assert_eq!([c, e].map(passes), [true, false], "d goes before e");
        assert!(passes(d));
        turnstile.admit(&scheduler);
        assert_eq!([e, f].map(passes), [true, true]);
    }
}
