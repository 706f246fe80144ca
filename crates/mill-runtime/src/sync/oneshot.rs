//! One-shots: a request that gets one answer. Their slots lie in a pool and are used again, so that a request costs
//! no allocation.

use crate::scheduler::Scheduler;
use crate::tasks::TaskId;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

/// The slots of one-shots of one type.
pub struct OneshotPool<T>(Rc<Shared<T>>);

/// The side that answers. Dropping it means that no answer comes.
pub struct OneshotSender<T> {
    shared: Rc<Shared<T>>,
    place: u32,
}

/// The side that waits. Dropping it cancels the request.
pub struct OneshotReceiver<T> {
    shared: Rc<Shared<T>>,
    place: u32,
}

/// The sender is gone, and has not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unanswered;

struct Shared<T> {
    scheduler: Rc<Scheduler>,
    slots: RefCell<Slots<T>>,
}

struct Slots<T> {
    all: Vec<Slot<T>>,
    vacant: Vec<u32>,
}

/// The slot is vacant when both sides are gone.
struct Slot<T> {
    answer: Option<T>,
    waiting: TaskId,
    has_sender: bool,
    has_receiver: bool,
}

impl<T> OneshotPool<T> {
    pub fn new(scheduler: &Rc<Scheduler>) -> Self {
        Self(Rc::new(Shared {
            scheduler: Rc::clone(scheduler),
            slots: RefCell::new(Slots {
                all: Vec::new(),
                vacant: Vec::new(),
            }),
        }))
    }

    /// A one-shot. Allocates while more are under way than ever before.
    pub fn oneshot(&self) -> (OneshotSender<T>, OneshotReceiver<T>) {
        let place = self.0.slots.borrow_mut().take();
        let shared = Rc::clone(&self.0);
        let sender = OneshotSender {
            shared: Rc::clone(&shared),
            place,
        };
        (sender, OneshotReceiver { shared, place })
    }

    /// Slots that were allocated: as many as were under way at once.
    pub fn places_made(&self) -> usize {
        self.0.slots.borrow().all.len()
    }
}

impl<T> OneshotSender<T> {
    /// Answers. Returns the answer if the receiver is gone.
    pub fn send(self, answer: T) -> Result<(), T> {
        let mut slots = self.shared.slots.borrow_mut();
        let place = slots.of(self.place);
        if !place.has_receiver {
            return Err(answer);
        }
        place.answer = Some(answer);
        Ok(())
    }
}

impl<T> Drop for OneshotSender<T> {
    fn drop(&mut self) {
        let mut slots = self.shared.slots.borrow_mut();
        let place = slots.of(self.place);
        place.has_sender = false;
        let waiting = place.waiting;
        if waiting != TaskId::NONE {
            self.shared.scheduler.wake_soon(waiting);
        }
        slots.leave(self.place);
    }
}

impl<T> Future for OneshotReceiver<T> {
    type Output = Result<T, Unanswered>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let mut slots = self.shared.slots.borrow_mut();
        let place = slots.of(self.place);
        if let Some(answer) = place.answer.take() {
            return Poll::Ready(Ok(answer));
        }
        if !place.has_sender {
            return Poll::Ready(Err(Unanswered));
        }
        place.waiting = self.shared.scheduler.current();
        Poll::Pending
    }
}

impl<T> Drop for OneshotReceiver<T> {
    fn drop(&mut self) {
        let mut slots = self.shared.slots.borrow_mut();
        let place = slots.of(self.place);
        place.has_receiver = false;
        place.waiting = TaskId::NONE;
        // Dropping a value may call this pool again.
        let answer = place.answer.take();
        slots.leave(self.place);
        drop(slots);
        drop(answer);
    }
}

impl<T> Slots<T> {
    fn take(&mut self) -> u32 {
        let place = Slot {
            answer: None,
            waiting: TaskId::NONE,
            has_sender: true,
            has_receiver: true,
        };
        match self.vacant.pop() {
            Some(number) => {
                self.all[number as usize] = place;
                number
            }
            None => {
                self.all.push(place);
                u32::try_from(self.all.len() - 1).expect("fewer than 2^32 questions are open")
            }
        }
    }

    fn of(&mut self, number: u32) -> &mut Slot<T> {
        &mut self.all[number as usize]
    }

    fn leave(&mut self, number: u32) {
        let place = self.of(number);
        if !place.has_sender && !place.has_receiver {
            self.vacant.push(number);
        }
    }
}

impl<T> fmt::Debug for OneshotPool<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "OneshotPool({} slots)", self.places_made())
    }
}

impl<T> fmt::Debug for OneshotSender<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "OneshotSender({})", self.place)
    }
}

impl<T> fmt::Debug for OneshotReceiver<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "OneshotReceiver({})", self.place)
    }
}

#[cfg(test)]
mod tests;
