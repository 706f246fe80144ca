//! A bounded channel: many senders, one receiver. Room for a value is a permit of a semaphore, so that senders are
//! served in order.

use super::semaphore::{NoPermit, Semaphore};
use crate::scheduler::Scheduler;
use crate::tasks::TaskId;
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use core::cell::{Cell, RefCell};
use core::fmt;
use core::future::poll_fn;
use core::task::Poll;

/// Makes a channel that holds `capacity` values, at least 1. Allocates here, and later only for senders that wait.
pub fn channel<T>(scheduler: &Rc<Scheduler>, capacity: u32) -> (Sender<T>, Receiver<T>) {
    let capacity = capacity.max(1);
    let shared = Rc::new(Shared {
        scheduler: Rc::clone(scheduler),
        queue: RefCell::new(VecDeque::with_capacity(capacity as usize)),
        places: Semaphore::new(scheduler, capacity, usize::MAX),
        senders: Cell::new(1),
        receiver: Cell::new(TaskId::NONE),
        is_closed: Cell::new(false),
    });
    (Sender(Rc::clone(&shared)), Receiver(shared))
}

struct Shared<T> {
    scheduler: Rc<Scheduler>,
    queue: RefCell<VecDeque<T>>,
    places: Rc<Semaphore>,
    senders: Cell<usize>,
    /// The task that waits for a value.
    receiver: Cell<TaskId>,
    /// The receiver is gone.
    is_closed: Cell<bool>,
}

/// The sending side. Cloning makes a further sender.
pub struct Sender<T>(Rc<Shared<T>>);

/// The receiving side, which takes values in the order in which they were sent.
pub struct Receiver<T>(Rc<Shared<T>>);

/// Why a value was not sent; returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotSent<T> {
    Full(T),
    /// The receiver is gone.
    Closed(T),
}

/// The receiver is gone; returns the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed<T>(pub T);

impl<T> Sender<T> {
    pub fn try_send(&self, value: T) -> Result<(), NotSent<T>> {
        if self.0.is_closed.get() {
            return Err(NotSent::Closed(value));
        }
        let Some(place) = self.0.places.try_acquire() else {
            return Err(NotSent::Full(value));
        };
        place.forget();
        self.0.put(value);
        Ok(())
    }

    /// Waits for room. The value is not sent if the future is dropped before its end.
    pub async fn send(&self, value: T) -> Result<(), Closed<T>> {
        match self.0.places.acquire().await {
            Ok(place) if !self.0.is_closed.get() => {
                place.forget();
                self.0.put(value);
                Ok(())
            }
            Ok(_) | Err(NoPermit::Closed | NoPermit::TooManyWait) => Err(Closed(value)),
        }
    }
}

impl<T> Receiver<T> {
    /// The oldest value, if there is one.
    pub fn try_receive(&self) -> Option<T> {
        let value = self.0.queue.borrow_mut().pop_front()?;
        self.0.places.release();
        Some(value)
    }

    /// Ready with the oldest value, or with `None` when all were taken and no sender is left.
    pub fn poll_receive(&self) -> Poll<Option<T>> {
        if let Some(value) = self.try_receive() {
            return Poll::Ready(Some(value));
        }
        if self.0.senders.get() == 0 {
            return Poll::Ready(None);
        }
        self.0.receiver.set(self.0.scheduler.current());
        Poll::Pending
    }

    pub async fn receive(&self) -> Option<T> {
        poll_fn(|_| self.poll_receive()).await
    }
}

impl<T> Shared<T> {
    fn put(&self, value: T) {
        self.queue.borrow_mut().push_back(value);
        self.tell_receiver();
    }

    fn tell_receiver(&self) {
        let receiver = self.receiver.replace(TaskId::NONE);
        if receiver != TaskId::NONE {
            self.scheduler.wake_soon(receiver);
        }
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.senders.set(self.0.senders.get() + 1);
        Self(Rc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.senders.set(self.0.senders.get() - 1);
        if self.0.senders.get() == 0 {
            self.0.tell_receiver();
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.0.is_closed.set(true);
        self.0.places.close();
        // Values that will not be taken are dropped now, and not with the last sender.
        let values = core::mem::take(&mut *self.0.queue.borrow_mut());
        drop(values);
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Sender({:?})", self.0.places)
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Receiver({:?})", self.0.places)
    }
}

#[cfg(test)]
mod tests;
