//! Timestamps and protection against wrapped sequence numbers (RFC 7323 3, 4.3, 5).

use crate::connection::{Connection, ConnectionFlags};
use crate::env::Env;
use crate::segment::Segment;
use crate::time::Tick;
use mill_wire::tcp_option::Timestamps;

/// Our clock as the peer sees it, and the peer's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimestampState {
    /// Added to the clock in our timestamps, so that they do not tell how long this machine has been up (RFC 7323 5.4, 7).
    offset: u32,
    /// TS.Recent (RFC 7323 4.3).
    recent: u32,
}

impl TimestampState {
    pub const fn new(offset: u32, recent: u32) -> Self {
        Self { offset, recent }
    }

    /// What is added to the clock.
    pub const fn offset(&self) -> u32 {
        self.offset
    }

    /// The peer's latest timestamp.
    pub const fn recent(&self) -> u32 {
        self.recent
    }

    /// TSval of what leaves at this tick: milliseconds.
    #[inline]
    pub const fn value_at(&self, now: Tick) -> u32 {
        now.0.wrapping_add(self.offset)
    }

    /// The option of what leaves at this tick.
    pub(crate) const fn option_at(&self, now: Tick) -> Timestamps {
        Timestamps {
            value: self.value_at(now),
            echo: self.recent,
        }
    }

    /// Milliseconds since we sent what the peer echoes.
    #[inline]
    pub(crate) const fn age_ms(&self, echo: u32, now: Tick) -> u32 {
        self.value_at(now).wrapping_sub(echo)
    }

    /// RFC 7323 5.3 R1: the peer's timestamp is older than one that came before it.
    #[inline]
    pub(crate) const fn is_old(&self, value: u32) -> bool {
        is_before(value, self.recent)
    }

    /// The same of a segment, where both sides have agreed on timestamps.
    pub(crate) fn is_segment_old(&self, is_agreed: bool, segment: &Segment<'_>) -> bool {
        let stamp = segment.options.timestamps;
        is_agreed && stamp.is_some_and(|stamp| self.is_old(stamp.value))
    }

    /// The peer's clock is there now.
    #[inline]
    pub(crate) const fn set_recent(&mut self, value: u32) {
        self.recent = value;
    }

    /// Our timestamps are less by so much from now on; for what a SYN cookie says in their lower bits.
    pub const fn lower_by(&mut self, decrement: u32) {
        self.offset = self.offset.wrapping_sub(decrement);
    }
}

/// After so long without a segment TS.Recent says nothing more (RFC 7323 5.5): 24 days, milliseconds.
const TS_RECENT_VALID_MS: u32 = 24 * 24 * 60 * 60 * 1000;

impl Connection {
    /// The option of every segment but RST, once both sides agreed (RFC 7323 3.2).
    pub(crate) fn timestamps_option(&self, env: &Env<'_>) -> Option<Timestamps> {
        let is_agreed = self.flags.has(ConnectionFlags::TIMESTAMPS);
        is_agreed.then(|| self.ts.option_at(env.tick()))
    }

    /// RFC 7323 5.3 R1: the segment is older than one that came before it.
    pub(crate) fn is_timestamp_old(&self, segment: &Segment<'_>, now: Tick) -> bool {
        let is_agreed = self.flags.has(ConnectionFlags::TIMESTAMPS);
        self.ts.is_segment_old(is_agreed, segment) && !is_outdated(self.heard_at, now)
    }

    /// RFC 7323 3.2: every segment but RST has the option once it was agreed.
    pub(crate) fn lacks_timestamp(&self, segment: &Segment<'_>) -> bool {
        self.flags.has(ConnectionFlags::TIMESTAMPS) && segment.options.timestamps.is_none()
    }

    /// An acceptable segment came: TS.Recent moves if the segment holds the byte that was to be acknowledged next
    /// (RFC 7323 4.3), which keeps the echo of the oldest segment when acknowledgements are delayed.
    pub(crate) fn heard(&mut self, segment: &Segment<'_>, env: &Env<'_>) {
        let now = env.tick();
        if let Some(timestamps) = segment.options.timestamps
            && self.flags.has(ConnectionFlags::TIMESTAMPS)
            && segment.seq.is_at_or_before(self.rcv.last_ack_sent())
            && (!self.ts.is_old(timestamps.value) || is_outdated(self.heard_at, now))
        {
            self.ts.set_recent(timestamps.value);
        }
        self.heard_at = now;
        self.timer.on_answer();
    }
}

/// Whether timestamp `a` is before `b` (RFC 7323 5.2), which numbers that wrap can only say by halves.
#[expect(clippy::cast_possible_wrap, reason = "the wrapping is the meaning")]
pub(crate) const fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// Whether TS.Recent was set too long ago.
pub(crate) const fn is_outdated(set_at: Tick, now: Tick) -> bool {
    now.0.wrapping_sub(set_at.0) > TS_RECENT_VALID_MS
}

#[cfg(test)]
mod tests;
