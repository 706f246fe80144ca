//! The window that is offered: never moves back, never by crumbs (RFC 9293 3.8.6, 3.8.6.2.2; RFC 7323 2.4), and grows as
//! the reader keeps pace.

use crate::connection::{Connection, ConnectionFlags};
use crate::env::Env;

impl Connection {
    /// RCV.WND: how far the peer may still send.
    pub(crate) fn rcv_wnd(&self) -> u32 {
        u32::try_from(self.rcv_adv.since(self.rcv_nxt)).unwrap_or(0)
    }

    /// The window field of a segment that repeats what the peer knows.
    pub(crate) fn window_field(&self) -> u16 {
        u16::try_from(self.rcv_wnd() >> self.rcv_wind_shift).unwrap_or(u16::MAX)
    }

    /// Moves the right edge as far as the buffer allows, if that is worth it; gives the window field.
    pub(crate) fn offer_window(&mut self) -> u16 {
        let shift = self.rcv_wind_shift;
        let unit = 1_u32 << shift;
        let known = self.rcv_wnd();
        let window_max = self.window_max();
        let room = self.offerable();
        // RFC 9293 3.8.6.2.2: half the buffer or a full segment at least.
        let window = if room >= known.saturating_add(self.worthwhile()) {
            room
        } else {
            self.same_edge(known, unit).min(window_max)
        };
        debug_assert!(window.is_multiple_of(unit));
        self.rcv_adv = self.rcv_adv.max(self.rcv_nxt + window);
        u16::try_from(window >> shift).unwrap_or(u16::MAX)
    }

    /// The window that leaves the edge where it is, in whole units. Rounded up, so that it does not move back; but
    /// each rounding gives away less than a unit, and when these have added up to an eighth of the buffer (a peer
    /// that sends byte by byte to a reader that sleeps) it is rounded down as RFC 7323 2.4 describes.
    fn same_edge(&self, known: u32, unit: u32) -> u32 {
        let up = known.next_multiple_of(unit);
        let excess = (up + self.unread_bytes).saturating_sub(self.receive_buffer_bytes);
        let excess_max = self.receive_buffer_bytes / 8 + unit;
        if excess <= excess_max {
            up
        } else {
            known & !(unit - 1)
        }
    }

    /// Bytes that the buffer can still take.
    fn room(&self) -> u32 {
        self.receive_buffer_bytes.saturating_sub(self.unread_bytes)
    }

    /// The largest window that the field can say (RFC 7323 2.2).
    fn window_max(&self) -> u32 {
        u32::from(u16::MAX) << self.rcv_wind_shift
    }

    /// The window that could be offered if the edge might be anywhere: of what the buffer can still take, whole units
    /// that the field can say.
    fn offerable(&self) -> u32 {
        self.room().min(self.window_max()) & !((1 << self.rcv_wind_shift) - 1)
    }

    /// How far the edge moves at least, if it moves: a full segment or half the buffer (RFC 9293 3.8.6.2.2).
    fn worthwhile(&self) -> u32 {
        u32::from(self.rcv_mss).min(self.receive_buffer_bytes / 2)
    }

    /// The reader has taken so many bytes of what was delivered. The window opens again; when by much,
    /// `next_segment` gives an acknowledgement.
    pub fn consumed(&mut self, bytes: u32, env: &mut Env<'_>) {
        debug_assert!(bytes <= self.unread_bytes, "more than was delivered");
        self.unread_bytes = self.unread_bytes.saturating_sub(bytes);
        if !self.state.may_receive() {
            return;
        }
        self.tune_window(env);
        // RFC 9293 3.8.6.2.2 again; and only if the peer may come to a halt soon: while data flows, acknowledgements
        // carry the window anyway.
        let known = self.rcv_wnd();
        let gain = self.offerable().saturating_sub(known);
        let whole = self.receive_buffer_bytes.min(self.window_max());
        let is_narrow = known <= whole / 4 || known < 2 * u32::from(self.rcv_mss);
        if gain >= self.worthwhile().max(known) && is_narrow {
            self.flags.set(ConnectionFlags::ACK_NOW, true);
        }
    }

    /// The first round of window tuning.
    pub(crate) fn begin_window_round(&mut self, env: &Env<'_>) {
        let consumed = self.rcv_nxt - self.unread_bytes;
        self.window_round_end = consumed + self.receive_buffer_bytes;
        self.window_round_at = round_tick(env);
    }

    /// Dynamic right-sizing (Fisk and Feng 2001): a reader that consumes a whole window within about a round trip is
    /// held up by the window, which therefore doubles. Two round trips are allowed for, because a sender in slow start
    /// fills the window only in the second.
    fn tune_window(&mut self, env: &mut Env<'_>) {
        let consumed = self.rcv_nxt - self.unread_bytes;
        if consumed.is_before(self.window_round_end) {
            return;
        }
        let elapsed_ms = u32::from(round_tick(env).wrapping_sub(self.window_round_at));
        let rtt_ms = match self.rtt.srtt_us() {
            0 => RTT_UNKNOWN_MS,
            srtt_us => srtt_us.div_ceil(1000),
        };
        if elapsed_ms <= 2 * rtt_ms {
            let bytes_max = env.config.receive_buffer_bytes_max;
            let bytes = self.receive_buffer_bytes;
            let growth = bytes.min(bytes_max.saturating_sub(bytes));
            if u64::from(growth) <= env.memory_left_bytes {
                self.receive_buffer_bytes += growth;
            }
        }
        self.begin_window_round(env);
    }
}

/// A round trip that was never measured (a SYN cookie without timestamps), milliseconds: a far continent.
const RTT_UNKNOWN_MS: u32 = 100;

/// Ticks modulo 2^16.
#[expect(clippy::cast_possible_truncation, reason = "only differences count")]
const fn round_tick(env: &Env<'_>) -> u16 {
    env.tick().0 as u16
}

#[cfg(test)]
mod tests;
