//! Explicit congestion notification: the receiver's echo (RFC 3168 6.1.3), and the sender's answer to it (6.1.2).

use crate::connection::{Connection, ConnectionFlags};
use crate::segment::{Ecn, Segment};
use mill_wire::tcp::Flags;

/// How many packets came marked (RFC 9768).
pub mod accurate;

impl Connection {
    /// Echoes a congestion mark in every segment until the peer has reduced its window (CWR).
    pub(crate) fn note_congestion_mark(&mut self, segment: &Segment<'_>) {
        if self.flags.has(ConnectionFlags::ACCURATE) {
            return self.count_mark(segment);
        }
        if !self.flags.has(ConnectionFlags::ECN) {
            return;
        }
        if segment.flags.has(Flags::CWR) {
            self.flags.set(ConnectionFlags::ECE_DUE, false);
        }
        // After CWR: a mark on that very segment is a new one. Told at once, so that the peer slows down soon.
        if segment.ecn == Ecn::Congested && !self.flags.has(ConnectionFlags::ECE_DUE) {
            self.flags.set(ConnectionFlags::ECE_DUE, true);
            self.flags.set(ConnectionFlags::ACK_NOW, true);
        }
    }

    /// Data leaves as capable of marks (RFC 3168 6.1.2).
    #[inline]
    pub(crate) const fn is_ecn_capable(&self) -> bool {
        self.flags.has(ConnectionFlags::ECN)
            || (self.flags.has(ConnectionFlags::ACCURATE)
                && !self.flags.has(ConnectionFlags::NOT_CAPABLE))
    }

    /// The flags of every segment: of a mark that is echoed, or how many there were.
    pub(crate) fn congestion_echo(&self) -> Flags {
        if self.flags.has(ConnectionFlags::ACCURATE) {
            self.marks.told()
        } else if self.flags.has(ConnectionFlags::ECE_DUE) {
            Flags::ECE
        } else {
            Flags::default()
        }
    }

    /// The congestion window is being reduced, for any reason (RFC 3168 6.1.2): the next new data has CWR.
    pub(crate) fn announce_reduction(&mut self) {
        if self.flags.has(ConnectionFlags::ECN) {
            self.flags.set(ConnectionFlags::CWR_DUE, true);
        }
    }

    /// The flag of new data that is about to leave: once after a reduction.
    #[inline]
    pub(crate) fn take_reduction(&mut self) -> Flags {
        if self.flags.has(ConnectionFlags::CWR_DUE) {
            self.flags.set(ConnectionFlags::CWR_DUE, false);
            Flags::CWR
        } else {
            Flags::default()
        }
    }
}

#[cfg(test)]
mod tests;
