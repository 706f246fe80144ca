//! What a task may call on its worker: the time, a deadline, to be polled again.

use crate::spawned::{Full, Purpose, SpawnedTasks};
use crate::tasks::TaskId;
use crate::time::{Duration, Instant, UnixTime};
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Context, Poll};

/// The part of a worker that its tasks share.
///
/// Deadlines are not registered and cancelled: each poll of a task states anew how long the task may wait, and the
/// earliest deadline stated counts. So a deadline costs a store, also when it moves.
#[derive(Debug)]
pub struct Scheduler {
    now: Cell<Instant>,
    wall_clock: Cell<UnixTime>,
    current: Cell<TaskId>,
    deadline: Cell<Instant>,
    /// To be polled in the next turn.
    woken: RefCell<Vec<TaskId>>,
    /// To be polled in this turn yet.
    woken_soon: RefCell<Vec<TaskId>>,
    pub(crate) spawned: SpawnedTasks,
}

/// The deadline came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired;

impl Scheduler {
    pub fn new(now: Instant, wall_clock: UnixTime) -> Rc<Self> {
        Rc::new(Self {
            now: Cell::new(now),
            wall_clock: Cell::new(wall_clock),
            current: Cell::new(TaskId::NONE),
            deadline: Cell::new(Instant::FAR),
            woken: RefCell::new(Vec::new()),
            woken_soon: RefCell::new(Vec::new()),
            spawned: SpawnedTasks::new(),
        })
    }

    /// The time of this turn.
    pub fn now(&self) -> Instant {
        self.now.get()
    }

    /// The wall-clock time of this turn.
    pub fn wall_clock(&self) -> UnixTime {
        self.wall_clock.get()
    }

    /// The task that is being polled.
    pub fn current(&self) -> TaskId {
        self.current.get()
    }

    /// Has a task polled in the next turn, which does not wait.
    pub fn wake(&self, task: TaskId) {
        self.woken.borrow_mut().push(task);
    }

    /// Has a task polled in this turn, after those that are ready now; between turns, in the next one.
    /// [`crate::sync`] uses this: a message between tasks costs no turn, and no system call.
    pub fn wake_soon(&self, task: TaskId) {
        self.woken_soon.borrow_mut().push(task);
    }

    /// Starts a task; it is polled first in this turn, after those that are ready now. Returns the future in [`Full`]
    /// where as many tasks live as may.
    ///
    /// The future runs in a pooled box: it costs an allocation only while more of its type live at once than before.
    pub fn spawn<F>(&self, purpose: Purpose, future: F) -> Result<TaskId, Full<F>>
    where
        F: Future<Output = ()> + 'static,
    {
        let task = self.spawned.start(purpose, future)?;
        self.wake_soon(task);
        Ok(task)
    }

    /// Drops a spawned task as if it had ended; nothing happens to one that has. The task that runs goes on until it waits
    /// the next time, and is dropped then.
    pub fn end(&self, task: TaskId) {
        self.spawned.end(task);
    }

    /// Waits for `future`, but not past `deadline`.
    pub async fn until<T>(
        &self,
        deadline: Instant,
        future: impl Future<Output = T>,
    ) -> Result<T, Expired> {
        let mut future = pin!(future);
        poll_fn(move |context| match future.as_mut().poll(context) {
            Poll::Ready(value) => Poll::Ready(Ok(value)),
            Poll::Pending => self.poll_deadline(deadline).map(Err),
        })
        .await
    }

    /// Ready once `deadline` has passed; else states that the current task waits no longer than that.
    pub fn poll_deadline(&self, deadline: Instant) -> Poll<Expired> {
        if self.now.get() >= deadline {
            return Poll::Ready(Expired);
        }
        self.deadline.set(self.deadline.get().min(deadline));
        Poll::Pending
    }

    pub async fn sleep(&self, duration: Duration) {
        let deadline = self.now.get() + duration;
        poll_fn(|_| self.poll_deadline(deadline)).await;
    }

    /// Yields to the other tasks.
    pub async fn yield_now(&self) {
        let mut yielded = false;
        poll_fn(|_: &mut Context<'_>| {
            if yielded {
                return Poll::Ready(());
            }
            yielded = true;
            self.wake(self.current.get());
            Poll::Pending
        })
        .await;
    }

    pub(crate) fn set_time(&self, now: Instant, wall_clock: UnixTime) {
        self.now.set(now);
        self.wall_clock.set(wall_clock);
    }

    pub(crate) fn enter(&self, task: TaskId) {
        self.current.set(task);
        self.deadline.set(Instant::FAR);
    }

    /// Leaves the task that was entered; returns the earliest deadline it stated.
    pub(crate) fn leave(&self) -> Instant {
        self.current.set(TaskId::NONE);
        self.deadline.get()
    }

    pub(crate) fn has_woken(&self) -> bool {
        !self.woken.borrow().is_empty() || self.has_woken_soon()
    }

    pub(crate) fn has_woken_soon(&self) -> bool {
        !self.woken_soon.borrow().is_empty()
    }

    /// The tasks that waited for this turn.
    pub(crate) fn drain_woken(&self, into: &mut Vec<TaskId>) {
        into.append(&mut self.woken.borrow_mut());
        self.drain_woken_soon(into);
    }

    pub(crate) fn drain_woken_soon(&self, into: &mut Vec<TaskId>) {
        into.append(&mut self.woken_soon.borrow_mut());
    }
}
