//! Connections that wait to be accepted, between this process and others that listen.
//!
//! ```text
//! pass_neglected   the program does not look at its listener     ┐
//! pass_outgoing    it has closed it, and keeps the device        ┴─ keeper ─▶ hear      a process that listens there
//! leave            it ends                                       ┐
//! leave_listening  it becomes another program                    ┴─ keeper ─▶ fetch     the next one that has the device
//! ```

use super::Stack;
use crate::descriptors::own;
use crate::keeper;
use mill_keeper::request::{self, Heard};
use mill_sockets::slab::Number;
use mill_stack::link::LinkSuccession;
use mill_tcp::time::Instant;
use std::io;

/// Whether a process takes the part of the device that another one has, which ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Heir {
    None,
    /// There are others, which may serve.
    Possible,
    /// Others listen where that one has listened.
    Certain,
}

impl Stack {
    /// What waits at listeners that the program does not look at goes to other processes that listen there.
    pub(crate) fn pass_neglected(&mut self, now: Instant) {
        own::during(|| self.pass_neglected_once(now));
    }

    pub(super) fn pass_neglected_once(&mut self, now: Instant) {
        let passed = self.sockets.pass_neglected(now);
        self.note_given(!passed.is_empty());
        for (process, connections) in passed {
            if !self.pass(process, &connections) {
                // There is no keeper any more: they wait for this program.
                self.sockets.bring_waiting(&connections);
            }
        }
    }

    /// What waits at listeners that the program has closed, while none of those that listen there takes the device, goes to them.
    pub(super) fn pass_outgoing(&mut self) {
        let outgoing: Vec<_> = self.sockets.take_outgoing().collect();
        self.note_given(!outgoing.is_empty());
        for (process, connections) in outgoing {
            if !self.pass(process, &connections) {
                self.sockets.pass_otherwise(&connections);
            }
        }
    }

    /// Connections that go to another process are none of this one's for the keeper, which would reset them if it were killed.
    fn note_given(&mut self, has_given: bool) {
        if let Some(noting) = self.noting.as_mut().filter(|_| has_given) {
            noting.note_young(&mut self.sockets);
        }
    }

    fn pass(&self, process: u64, connections: &[u8]) -> bool {
        request::pass(keeper::socket(), self.process, process, connections).is_ok()
    }

    /// Takes what other processes have passed to this one.
    #[cold]
    pub(super) fn hear(&mut self, now: Instant) {
        self.heard_at = Some(now);
        let Some(membership) = keeper::membership(self.number) else {
            return;
        };
        loop {
            match request::receive_passed(membership) {
                Ok(Some(Heard::Passed(connections))) => self.sockets.bring_waiting(&connections),
                Ok(Some(Heard::Kept)) => self.fetch(),
                Ok(None) => return,
                Err(error) if is_end(&error) => {
                    // The keeper has ended, and no descriptor is to tell of that again and again.
                    self.heard_at = None;
                    let _ = self.sources.remove(membership);
                    return;
                }
                // Without a descriptor for them the keeper has them, until this process ends.
                Err(_) => return,
            }
        }
    }

    /// When queues have come to this process: what ended processes have left for it.
    #[inline]
    pub(super) fn claim(&mut self) {
        let takings = self.sockets.link().takings();
        if core::mem::replace(&mut self.takings, takings) == takings {
            return;
        }
        self.fetch();
    }

    /// Takes what ended processes have left with the keeper.
    pub(crate) fn fetch(&mut self) {
        // Without a keeper nothing was left.
        for connections in request::claim(keeper::socket()).unwrap_or_default() {
            self.sockets.bring_waiting(&connections);
        }
    }

    /// As this process ends: whether another one may take its part of the device, for which the next turn looks.
    pub(crate) fn seek_heir(&mut self) -> Heir {
        match (
            self.sockets.link_mut().seek_heir(),
            self.sockets.has_successors(),
        ) {
            (false, _) => Heir::None,
            (true, false) => Heir::Possible,
            (true, true) => Heir::Certain,
        }
    }

    /// What waits for a process that listens where this one has listened is kept for it. One that has the device already gets
    /// it by a turn.
    pub(crate) fn leave(&mut self) {
        self.pass_outgoing();
        if self.sockets.link().has_heir() {
            return;
        }
        let connections = self.sockets.give_waiting();
        if !connections.is_empty() {
            // Without a keeper nothing takes them.
            let _ = request::keep(keeper::socket(), &connections);
        }
    }

    /// What waits at a listener is kept for the program that this process becomes; whether anything does.
    pub(crate) fn leave_listening(&mut self, number: Number) -> bool {
        let connections = self.sockets.give_listening(number);
        let is_kept = !connections.is_empty();
        if is_kept && request::keep(keeper::socket(), &connections).is_err() {
            self.sockets.bring_waiting(&connections);
        }
        is_kept
    }
}

/// Whether an error says that there is no other end.
fn is_end(error: &io::Error) -> bool {
    let ends = [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset];
    ends.contains(&error.kind())
}
