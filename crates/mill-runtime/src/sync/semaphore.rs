//! Permits, given in the order of the requests.

use super::wait_list::{State, WaitList};
use crate::scheduler::Scheduler;
use alloc::rc::Rc;
use core::cell::{Cell, RefCell};
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

/// At most so many tasks hold a permit at once; others wait. `max_conns` with `queue` of one worker is one.
pub struct Semaphore {
    scheduler: Rc<Scheduler>,
    /// Available permits; below 0 while more are out than the limit allows.
    available: Cell<i64>,
    permits: Cell<u32>,
    waiting: RefCell<WaitList>,
    waiting_max: usize,
    is_closed: Cell<bool>,
}

/// A permit. Dropping it gives it to the task that has waited longest.
#[derive(Debug)]
pub struct Permit {
    /// `None` once it was forgotten.
    semaphore: Option<Rc<Semaphore>>,
}

/// Why no permit is given, now or later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPermit {
    /// As many tasks wait as may.
    TooManyWait,
    /// [`Semaphore::close`].
    Closed,
}

impl Semaphore {
    /// While `waiting_max` tasks wait, further requests are refused.
    pub fn new(scheduler: &Rc<Scheduler>, permits: u32, waiting_max: usize) -> Rc<Self> {
        Rc::new(Self {
            scheduler: Rc::clone(scheduler),
            available: Cell::new(i64::from(permits)),
            permits: Cell::new(permits),
            waiting: RefCell::default(),
            waiting_max,
            is_closed: Cell::new(false),
        })
    }

    /// A permit, if one is available.
    pub fn try_acquire(self: &Rc<Self>) -> Option<Permit> {
        if self.is_closed.get() || self.available.get() <= 0 {
            return None;
        }
        self.available.set(self.available.get() - 1);
        Some(Permit::of(self))
    }

    /// Waits for a permit. Dropping the future leaves the queue; a permit that was granted by then goes to the next
    /// task.
    pub fn acquire(self: &Rc<Self>) -> Acquire {
        Acquire {
            semaphore: Rc::clone(self),
            place: None,
        }
    }

    /// Sets the number of permits. Those that are out stay valid.
    pub fn set_permits(&self, permits: u32) {
        let former = i64::from(self.permits.replace(permits));
        let more = i64::from(permits) - former;
        self.available.set(self.available.get() + more);
        self.grant();
    }

    /// Refuses all requests from now on, and those that wait. Permits granted by then stay valid.
    pub fn close(&self) {
        self.is_closed.set(true);
        let mut waiting = self.waiting.borrow_mut();
        while let Some(task) = waiting.tell_first(State::Refused) {
            self.scheduler.wake_soon(task);
        }
    }

    /// Permits that are out.
    pub fn in_use(&self) -> i64 {
        i64::from(self.permits.get()) - self.available.get()
    }

    pub fn waiting(&self) -> usize {
        self.waiting.borrow().waiting()
    }

    /// Returns a permit; dropping a permit does this.
    pub(super) fn release(&self) {
        self.available.set(self.available.get() + 1);
        self.grant();
    }

    /// Gives available permits to waiting tasks.
    fn grant(&self) {
        while self.available.get() > 0 && !self.is_closed.get() {
            let Some(task) = self.waiting.borrow_mut().tell_first(State::Granted) else {
                return;
            };
            self.available.set(self.available.get() - 1);
            self.scheduler.wake_soon(task);
        }
    }
}

impl Permit {
    fn of(semaphore: &Rc<Semaphore>) -> Self {
        Self {
            semaphore: Some(Rc::clone(semaphore)),
        }
    }

    /// It stays taken, without a value to drop, until [`Semaphore::release`].
    pub(super) fn forget(mut self) {
        self.semaphore = None;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(semaphore) = &self.semaphore {
            semaphore.release();
        }
    }
}

/// Waiting for a permit.
#[derive(Debug)]
pub struct Acquire {
    semaphore: Rc<Semaphore>,
    /// In the queue, once it has been polled.
    place: Option<u32>,
}

impl Future for Acquire {
    type Output = Result<Permit, NoPermit>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let semaphore = Rc::clone(&self.semaphore);
        let mut waiting = semaphore.waiting.borrow_mut();
        let Some(place) = self.place else {
            if semaphore.is_closed.get() {
                return Poll::Ready(Err(NoPermit::Closed));
            }
            // No task waits while permits are left: a released one is granted at once.
            if semaphore.available.get() > 0 {
                semaphore.available.set(semaphore.available.get() - 1);
                return Poll::Ready(Ok(Permit::of(&semaphore)));
            }
            if waiting.waiting() >= semaphore.waiting_max {
                return Poll::Ready(Err(NoPermit::TooManyWait));
            }
            self.place = Some(waiting.enter(semaphore.scheduler.current()));
            return Poll::Pending;
        };
        let outcome = match waiting.state(place) {
            State::Waiting => {
                waiting.set_task(place, semaphore.scheduler.current());
                return Poll::Pending;
            }
            State::Granted => Ok(Permit::of(&semaphore)),
            State::Refused => Err(NoPermit::Closed),
        };
        waiting.leave(place);
        self.place = None;
        Poll::Ready(outcome)
    }
}

impl Drop for Acquire {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        let mut waiting = self.semaphore.waiting.borrow_mut();
        let state = waiting.state(place);
        waiting.leave(place);
        drop(waiting);
        if state == State::Granted {
            self.semaphore.release();
        }
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (permits, in_use) = (self.permits.get(), self.in_use());
        write!(
            formatter,
            "Semaphore({in_use} of {permits}, {} wait)",
            self.waiting()
        )
    }
}

#[cfg(test)]
mod tests;
