//! The connections of this process, noted for its keeper: when the process is killed, or becomes
//! another program, the keeper tells their peers.

use crate::stack::Stack;
use crate::stacks;
use mill_device::AnyLink;
use mill_device::ledger::{Entry, Ledger};
use mill_sockets::sockets::Sockets;
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

    /// Connections are noted as they begin: a peer that waits for an answer would not hear of the end of one that is younger than
    /// the last round.
    pub(crate) fn note_young(&mut self, sockets: &mut Sockets<AnyLink>) {
        sockets.note_young(|slot, numbers| self.ledger.note(slot, numbers.map(Entry::from)));
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

/// Notes all connections, those of the last moment included, and sends what was written: the process is about to become another program.
pub(crate) fn note_all() {
    for number in stacks::made() {
        stacks::with_stack(number, |stack| {
            stack.sockets.flush();
            if let Some(noting) = &mut stack.noting {
                noting.note_young(&mut stack.sockets);
            }
            loop {
                go_on(stack);
                if stack.noting.as_ref().is_none_or(|noting| noting.next == 0) {
                    break;
                }
            }
        });
    }
}

/// Slots of one time: some hundred microseconds, with the lock held.
const SLOTS_MAX: u32 = 16 * 1024;
