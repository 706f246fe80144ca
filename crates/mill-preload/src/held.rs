//! The locks of the stacks that a wait looks at, held together.

use crate::stack::Stack;
use crate::stacks::{self, COUNT_MAX, Guard};
use core::ffi::c_int;
use mill_sockets::errno::Errno;
use mill_sockets::slab::Number;
use mill_tcp::time::Instant;

/// Some of the process's stacks, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StackNumbers(u8);

impl StackNumbers {
    /// The stack of a socket or set.
    pub(crate) const fn of(number: Number) -> Self {
        Self(1 << number.slab())
    }

    pub(crate) const fn add(&mut self, number: Number) {
        self.0 |= Self::of(number).0;
    }

    /// In the order in which their locks are taken.
    pub(crate) fn iter(self) -> impl Iterator<Item = u8> {
        (0..COUNT_MAX).filter(move |number| self.0 & (1 << number) != 0)
    }
}

/// Their locks.
pub(crate) struct Held {
    guards: [Option<Guard>; COUNT_MAX as usize],
}

impl Held {
    /// Fails if one of them is not there any more, as in a child.
    pub(crate) fn lock(numbers: StackNumbers) -> Result<Self, Errno> {
        let mut guards = [const { None }; COUNT_MAX as usize];
        for number in numbers.iter() {
            let mut guard = stacks::lock(number);
            if guard.stack().is_none() {
                return Err(Errno::BAD_DESCRIPTOR);
            }
            if let Some(place) = guards.get_mut(usize::from(number)) {
                *place = Some(guard);
            }
        }
        Ok(Self { guards })
    }

    /// The stack of a socket or set, if it is one of these.
    #[inline]
    pub(crate) fn of(&mut self, number: Number) -> Option<&mut Stack> {
        let guard = self.guards.get_mut(usize::from(number.slab()))?;
        guard.as_mut()?.stack()
    }

    pub(crate) fn each(&mut self) -> impl Iterator<Item = &mut Stack> {
        let guards = self.guards.iter_mut().flatten();
        guards.filter_map(Guard::stack)
    }

    /// Whether all had a turn a moment ago.
    pub(crate) fn were_turned_lately(&mut self, now: Instant) -> bool {
        self.each().all(|stack| stack.was_turned_lately(now))
    }

    /// The thread finds nothing to do, so that it has nothing to say either.
    pub(crate) fn say_nothing(&mut self) {
        for stack in self.each() {
            stack.sockets.acknowledge_unanswered();
            stack.sockets.heed_looks();
        }
    }

    pub(crate) fn turn(&mut self, now: Instant) {
        self.each().for_each(|stack| stack.turn(now));
    }

    /// A thread is about to sleep, and this ends it.
    pub(crate) fn add_sleeper(&mut self, doorbell: c_int, until: Option<Instant>) {
        self.each()
            .for_each(|stack| stack.add_sleeper(doorbell, until));
    }

    /// After a call that has found something.
    pub(crate) fn heed_sleepers(&mut self) {
        self.each().for_each(Stack::heed_sleepers);
    }
}
