//! The window that is offered: never moves back, never by crumbs (RFC 9293 3.8.6, 3.8.6.2.2; RFC 7323 2.4). `shift` is its
//! scale.

use super::ReceiveSpace;
use crate::connection::{Connection, ConnectionFlags};
use crate::env::Env;

impl ReceiveSpace {
    /// The window field of a segment that repeats what the peer knows.
    pub(crate) fn window_field(&self, shift: u8) -> u16 {
        u16::try_from(self.wnd() >> shift).unwrap_or(u16::MAX)
    }

    /// Moves the right edge as far as the buffer allows, if that is worth it; gives the window field.
    pub(crate) fn offer_window(&mut self, shift: u8) -> u16 {
        let unit = 1_u32 << shift;
        let known = self.wnd();
        let window_max = window_max(shift);
        let room = self.offerable(shift);
        // RFC 9293 3.8.6.2.2: half the buffer or a full segment at least.
        let window = if room >= known.saturating_add(self.worthwhile()) {
            room
        } else {
            self.same_edge(known, unit).min(window_max)
        };
        debug_assert!(window.is_multiple_of(unit));
        self.adv = self.adv.max(self.nxt + window);
        u16::try_from(window >> shift).unwrap_or(u16::MAX)
    }

    /// The window that leaves the edge where it is, in whole units. Rounded up, so that it does not move back; but
    /// each rounding gives away less than a unit, and when these have added up to an eighth of the buffer (a peer
    /// that sends byte by byte to a reader that sleeps) it is rounded down as RFC 7323 2.4 describes.
    fn same_edge(&self, known: u32, unit: u32) -> u32 {
        let up = known.next_multiple_of(unit);
        let excess = (up + self.unread_bytes).saturating_sub(self.buffer_bytes);
        let excess_max = self.buffer_bytes / 8 + unit;
        if excess <= excess_max {
            up
        } else {
            known & !(unit - 1)
        }
    }

    /// The window that could be offered if the edge might be anywhere: of what the buffer can still take, whole units
    /// that the field can say.
    fn offerable(&self, shift: u8) -> u32 {
        let room = self.buffer_bytes.saturating_sub(self.unread_bytes);
        room.min(window_max(shift)) & !((1 << shift) - 1)
    }

    /// How far the edge moves at least, if it moves: a full segment or half the buffer (RFC 9293 3.8.6.2.2).
    fn worthwhile(&self) -> u32 {
        u32::from(self.mss).min(self.buffer_bytes / 2)
    }

    /// The reader has taken so many bytes of what was delivered.
    fn on_consumed(&mut self, bytes: u32) {
        debug_assert!(bytes <= self.unread_bytes, "more than was delivered");
        self.unread_bytes = self.unread_bytes.saturating_sub(bytes);
    }

    /// Whether the peer is to hear at once that the window is open again: RFC 9293 3.8.6.2.2, and only if it may come to a
    /// halt soon. While data flows, acknowledgements carry the window anyway.
    fn is_update_due(&self, shift: u8) -> bool {
        let known = self.wnd();
        let gain = self.offerable(shift).saturating_sub(known);
        let whole = self.buffer_bytes.min(window_max(shift));
        let is_narrow = known <= whole / 4 || known < 2 * u32::from(self.mss);
        gain >= self.worthwhile().max(known) && is_narrow
    }
}

impl Connection {
    /// The reader has taken so many bytes of what was delivered. The window opens again; when by much,
    /// `next_segment` gives an acknowledgement.
    pub fn consumed(&mut self, bytes: u32, env: &mut Env<'_>) {
        self.rcv.on_consumed(bytes);
        if !self.state.may_receive() {
            return;
        }
        self.tune_by_window(env);
        if self.rcv.is_update_due(self.shifts.rcv()) {
            self.flags.set(ConnectionFlags::ACK_NOW, true);
        }
    }

    /// The buffer takes `bytes` from now on (`SO_RCVBUF`). A window that opens by that is announced as after reading; one that
    /// is narrower comes about as the peer sends, since the edge never moves back.
    pub fn set_receive_buffer(&mut self, bytes: u32) {
        self.rcv.set_buffer(bytes.min(RESERVE_MAX));
        if self.state.may_receive() && self.rcv.is_update_due(self.shifts.rcv()) {
            self.flags.set(ConnectionFlags::ACK_NOW, true);
        }
    }

    /// The reader waits until `bytes` are unread: the window becomes able to hold them and one more segment, also
    /// beyond what tuning would give. The window is announced at once, because the peer may have stopped.
    ///
    /// The edge moves by a segment at least, in units of the scale: with less than a segment and a unit beyond what is waited
    /// for, a peer that has sent almost all of it would be offered nothing more, and the reader would wait for ever.
    /// Returns whether there is such an announcement; repeated for as many bytes there is none.
    pub fn reserve_receive(&mut self, bytes: u32) -> bool {
        let segment = u32::from(self.rcv.mss().max(self.snd_mss));
        let step = segment + (1 << self.shifts.rcv());
        let wanted = bytes.saturating_add(step).min(RESERVE_MAX);
        let is_news = self.rcv.reserve(wanted) && self.state.may_receive();
        if is_news {
            self.flags.set(ConnectionFlags::ACK_NOW, true);
        }
        is_news
    }
}

/// The largest window that the field can say (RFC 7323 2.2).
fn window_max(shift: u8) -> u32 {
    u32::from(u16::MAX) << shift
}

/// Bytes; the largest window that can be offered (RFC 7323 2.3).
const RESERVE_MAX: u32 = 1 << 30;

#[cfg(test)]
mod tests;
