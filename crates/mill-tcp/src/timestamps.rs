//! Timestamps and protection against wrapped sequence numbers (RFC 7323 3, 4.3, 5).

use crate::connection::{Connection, ConnectionFlags};
use crate::env::Env;
use crate::segment::Segment;
use crate::time::{Instant, Tick};
use mill_wire::tcp_option::Timestamps;

/// After so long without a segment TS.Recent says nothing more (RFC 7323 5.5): 24 days, milliseconds.
const TS_RECENT_VALID_MS: u32 = 24 * 24 * 60 * 60 * 1000;

impl Connection {
    /// TSval: milliseconds, from a random beginning (RFC 7323 5.4, 7).
    pub(crate) const fn timestamp_now(&self, env: &Env<'_>) -> u32 {
        self.timestamp_at(env.now)
    }

    pub(crate) const fn timestamp_at(&self, now: Instant) -> u32 {
        now.tick().0.wrapping_add(self.ts_offset)
    }

    /// The option of every segment but RST, once both sides agreed (RFC 7323 3.2).
    pub(crate) fn timestamps_option(&self, env: &Env<'_>) -> Option<Timestamps> {
        let is_agreed = self.flags.has(ConnectionFlags::TIMESTAMPS);
        is_agreed.then(|| Timestamps {
            value: self.timestamp_now(env),
            echo: self.ts_recent,
        })
    }

    /// RFC 7323 5.3 R1: the segment is older than one that came before it.
    pub(crate) fn is_timestamp_old(&self, segment: &Segment<'_>, now: Tick) -> bool {
        self.flags.has(ConnectionFlags::TIMESTAMPS)
            && segment.options.timestamps.is_some_and(|stamp| {
                is_before(stamp.value, self.ts_recent) && !is_outdated(self.heard_at, now)
            })
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
            && (!is_before(timestamps.value, self.ts_recent) || is_outdated(self.heard_at, now))
        {
            self.ts_recent = timestamps.value;
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
