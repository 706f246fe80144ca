//! `queue`: requests that wait for a server while each has as many connections as it may have.
//!
//! The first request of each worker asks for a server, so that those of a worker are served in their order. It asks when a
//! connection of its own worker becomes free, and every [`PERIOD`]: a connection of another worker, or of a configuration
//! before, may have become free.

use mill_runtime::scheduler::Scheduler;
use mill_runtime::tasks::TaskId;
use mill_runtime::time::Duration;
use mill_upstream::group::Group;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// The requests of one worker that wait for a server of one group.
#[derive(Debug)]
pub(crate) struct Queue {
    scheduler: Rc<Scheduler>,
    group: Arc<Group>,
    /// The first one in front; each has a number of its own.
    waiting: RefCell<VecDeque<(u64, TaskId)>>,
    next_number: Cell<u64>,
}

impl Queue {
    /// `None` if the group has no queue.
    pub(super) fn new(group: &Arc<Group>, scheduler: &Rc<Scheduler>) -> Option<Rc<Self>> {
        group.config().queue.as_ref()?;
        Some(Rc::new(Self {
            scheduler: Rc::clone(scheduler),
            group: Arc::clone(group),
            waiting: RefCell::default(),
            next_number: Cell::new(0),
        }))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.borrow().is_empty()
    }

    /// The current task waits behind all others; `None` if the queues of all workers together are full.
    pub(crate) fn enter(self: &Rc<Self>) -> Option<Place> {
        if !self.group.enter_queue() {
            return None;
        }
        let number = self.next_number.get();
        self.next_number.set(number + 1);
        let task = self.scheduler.current();
        self.waiting.borrow_mut().push_back((number, task));
        Some(Place {
            queue: Rc::clone(self),
            number,
        })
    }

    fn wake_first(&self) {
        if let Some((_, task)) = self.waiting.borrow().front() {
            self.scheduler.wake_soon(*task);
        }
    }
}

/// A request's place in the queue; the next request is woken when it is left.
#[derive(Debug)]
pub(crate) struct Place {
    queue: Rc<Queue>,
    number: u64,
}

impl Place {
    pub(crate) fn is_first(&self) -> bool {
        let waiting = self.queue.waiting.borrow();
        let first = waiting.front();
        first.is_some_and(|(number, _)| *number == self.number)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let is_other = |(number, _): &(u64, TaskId)| *number != self.number;
        self.queue.waiting.borrow_mut().retain(is_other);
        self.queue.group.leave_queue();
        self.queue.wake_first();
    }
}

/// Wakes the first request of the queue, if there is one, once it is dropped: a connection becomes free with it.
#[derive(Debug)]
pub(crate) struct Freed(pub(super) Option<Rc<Queue>>);

impl Drop for Freed {
    fn drop(&mut self) {
        if let Some(queue) = &self.0 {
            queue.wake_first();
        }
    }
}

/// How often the first request of a queue asks again.
pub(crate) const PERIOD: Duration = Duration::from_millis(10);
