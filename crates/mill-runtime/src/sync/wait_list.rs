//! The tasks that wait, in order: a list through one array, from the middle of which any may leave.

use crate::tasks::TaskId;
use alloc::vec::Vec;

/// First in, first out. A slot belongs to its waiter until [`WaitList::leave`].
#[derive(Debug, Default)]
pub(super) struct WaitList {
    places: Vec<Waiter>,
    ends: Ends,
    /// Vacant slots.
    vacant: Vec<u32>,
    waiting: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    first: Option<u32>,
    last: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    task: TaskId,
    previous: Option<u32>,
    next: Option<u32>,
    state: State,
}

/// The state of a waiter; a notified one is no longer in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Waiting,
    /// It was granted what it waits for.
    Granted,
    /// It was refused.
    Refused,
}

impl WaitList {
    pub(super) const fn waiting(&self) -> usize {
        self.waiting
    }

    /// Appends a waiter. Allocates only while more wait than ever before.
    pub(super) fn enter(&mut self, task: TaskId) -> u32 {
        let place = Waiter {
            task,
            previous: self.ends.last,
            next: None,
            state: State::Waiting,
        };
        let number = match self.vacant.pop() {
            Some(number) => {
                self.places[number as usize] = place;
                number
            }
            None => {
                self.places.push(place);
                u32::try_from(self.places.len() - 1).expect("fewer than 2^32 tasks wait")
            }
        };
        match self.ends.last.replace(number) {
            Some(last) => self.places[last as usize].next = Some(number),
            None => self.ends.first = Some(number),
        }
        self.waiting += 1;
        number
    }

    /// From now on this task is notified.
    pub(super) fn set_task(&mut self, number: u32, task: TaskId) {
        self.places[number as usize].task = task;
    }

    pub(super) fn state(&self, number: u32) -> State {
        self.places[number as usize].state
    }

    /// Takes the first waiter out of the list; its task is to be notified.
    pub(super) fn tell_first(&mut self, state: State) -> Option<TaskId> {
        let first = self.ends.first?;
        self.unlink(first);
        let place = &mut self.places[first as usize];
        place.state = state;
        Some(place.task)
    }

    /// Releases a waiter's slot: it is gone, or has taken what it was granted.
    pub(super) fn leave(&mut self, number: u32) {
        if self.state(number) == State::Waiting {
            self.unlink(number);
        }
        self.vacant.push(number);
    }

    fn unlink(&mut self, number: u32) {
        let Waiter { previous, next, .. } = self.places[number as usize];
        match previous {
            Some(previous) => self.places[previous as usize].next = next,
            None => self.ends.first = next,
        }
        match next {
            Some(next) => self.places[next as usize].previous = previous,
            None => self.ends.last = previous,
        }
        self.waiting -= 1;
    }
}
