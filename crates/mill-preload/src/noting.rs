//! The connections of this process, noted for its keeper: when the process is killed, the keeper tells their peers.

use crate::stack::Stack;
use mill_device::ledger::{Entry, Ledger};
use std::fs::File;

/// The ledger, and how far it is written.
#[derive(Debug)]
pub(crate) struct Noting {
    ledger: Ledger,
    /// The slot to go on with.
    next: u32,
}

impl Noting {
    /// With the file for the keeper. `None` without memory or descriptors: peers find out by themselves then.
    pub(crate) fn new() -> Option<(Self, File)> {
        let (ledger, file) = Ledger::new().ok()?;
        Some((Self { ledger, next: 0 }, file))
    }

    /// No connection is left.
    pub(crate) fn clear(mut self) {
        self.ledger.clear();
    }
}

/// Notes what is there now, of many connections a part.
pub(crate) fn go_on(stack: &mut Stack) {
    let Some(noting) = &mut stack.noting else {
        return;
    };
    let (found, next) = stack
        .sockets
        .host()
        .next_numbers_from(noting.next, SLOTS_MAX);
    for (slot, numbers) in found {
        noting.ledger.note(slot, numbers.map(Entry::from));
    }
    noting.next = next.unwrap_or(0);
}

/// Slots of one time: some hundred microseconds, with the lock held.
const SLOTS_MAX: u32 = 16 * 1024;
