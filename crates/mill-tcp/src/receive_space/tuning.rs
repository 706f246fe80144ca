//! Window tuning: dynamic right-sizing (Fisk and Feng 2001), which Linux has as `tcp_rcv_space_adjust`.
//!
//! ```text
//! bytes that the reader consumed in a round trip, times GROWTH  =  the buffer, if that is more than before
//! ```
//!
//! A window is a promise of memory. It begins modest, so that idle connections hold little of it, and follows what the
//! reader takes: a sender in slow start doubles what is in flight from one round trip to the next, and finds the window open
//! for all of that.
//!
//! A receiver learns when a round trip is over from the peer's timestamps. The round begins with a segment; when one comes
//! that echoes something which was sent later (RFC 7323 3), its sender had heard of that. So no round trip has to be
//! estimated, and one that has become longer since the handshake is known at once. Without timestamps a whole window tells:
//! what lies beyond the edge that was known when the round began, left after a later acknowledgement.

use super::ReceiveSpace;
use crate::connection::{Connection, ConnectionFlags};
use crate::env::Env;
use crate::segment::Segment;

impl ReceiveSpace {
    fn begin_round(&mut self, now: u16) {
        self.round_from = self.consumed();
        self.round_at = now;
    }

    /// Milliseconds since the round began, modulo 2^16.
    fn round_ms(&self, now: u16) -> u32 {
        now.wrapping_sub(self.round_at).into()
    }

    /// The reader has consumed as much as it could before the peer learnt of a window that was offered in this round.
    fn has_consumed_window(&self) -> bool {
        self.consumed()
            .is_at_or_after(self.round_from + self.buffer_bytes)
    }

    /// The buffer grows to `bytes`, within the limits. All of it or nothing: the budget is nearly used up if not all of it
    /// can be had.
    fn grow(&mut self, bytes: u32, env: &Env<'_>) {
        let bytes = bytes.min(env.config.receive_buffer_bytes_max);
        let growth = bytes.saturating_sub(self.buffer_bytes);
        if u64::from(growth) <= env.memory_left_bytes {
            self.buffer_bytes += growth;
        }
    }
}

impl Connection {
    /// The first round.
    pub(crate) fn begin_window_round(&mut self, env: &Env<'_>) {
        self.rcv.begin_round(round_tick(env));
    }

    /// A segment with text came, next in order: ends the round if its sender had heard of something that was sent in it.
    #[inline]
    pub(crate) fn tune_by_echo(&mut self, segment: &Segment<'_>, env: &Env<'_>) {
        let Some(stamp) = segment.options.timestamps else {
            return;
        };
        let age_ms = self.ts.age_ms(stamp.echo, env.tick());
        // An echo of the millisecond in which the round began may be older than it.
        if age_ms < self.rcv.round_ms(round_tick(env))
            && self.flags.has(ConnectionFlags::TIMESTAMPS)
        {
            self.end_round(age_ms, env);
        }
    }

    /// The round is over: what the reader consumed in it counts, if it lasted one round trip and not much longer, as it does
    /// when the window was closed because the reader slept. The echo tells how long that is, and an acknowledgement may have
    /// been delayed.
    fn end_round(&mut self, age_ms: u32, env: &Env<'_>) {
        let now = round_tick(env);
        let delay_ms = u32::try_from(env.config.delayed_ack.as_millis()).unwrap_or(u32::MAX);
        let longest_ms = age_ms.saturating_mul(2).saturating_add(delay_ms);
        if self.rcv.round_ms(now) <= longest_ms {
            // A peer that echoes nothing new for 2 GiB is not asked what it means.
            let bytes = self.rcv.consumed().since(self.rcv.round_from);
            let bytes = u32::try_from(bytes).unwrap_or(0);
            self.rcv.grow(bytes.saturating_mul(GROWTH), env);
        }
        self.rcv.begin_round(now);
    }

    /// Without timestamps, when the reader has consumed something: a whole window in about a round trip was too little. Two
    /// round trips are allowed for, because a sender in slow start fills the window only in the second. Those that this
    /// side measured stand for the peer's.
    pub(super) fn tune_by_window(&mut self, env: &Env<'_>) {
        if self.flags.has(ConnectionFlags::TIMESTAMPS) || !self.rcv.has_consumed_window() {
            return;
        }
        let now = round_tick(env);
        let rtt_ms = match self.rtt.srtt_us() {
            0 => RTT_UNKNOWN_MS,
            srtt_us => srtt_us.div_ceil(1000),
        };
        if self.rcv.round_ms(now) <= 2 * rtt_ms {
            self.rcv.grow(self.rcv.buffer_bytes.saturating_mul(2), env);
        }
        self.rcv.begin_round(now);
    }
}

/// Times what was consumed in a round trip. By the end of the next one a sender in slow start has sent twice as much, and has a
/// congestion window of four times as much (RFC 5681 3.1); the edge must not hold it up.
const GROWTH: u32 = 4;

/// A round trip that was never measured (a SYN-ACK that was sent twice), milliseconds: a far continent.
const RTT_UNKNOWN_MS: u32 = 100;

/// Ticks modulo 2^16.
#[expect(clippy::cast_possible_truncation, reason = "only differences count")]
const fn round_tick(env: &Env<'_>) -> u16 {
    env.tick().0 as u16
}

#[cfg(test)]
mod tests;
