//! Explicit congestion notification, the receiver's part (RFC 3168 6.1.3).

use crate::connection::{Connection, ConnectionFlags};
use crate::segment::{Ecn, Segment};
use mill_wire::tcp::Flags;

impl Connection {
    /// Echoes a congestion mark in every segment until the peer says that it has slowed down.
    pub(crate) fn note_congestion_mark(&mut self, segment: &Segment<'_>) {
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
}

#[cfg(test)]
mod tests;
