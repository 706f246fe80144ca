//! Losses by the time that segments have been away (RFC 8985 6).

use super::duplicates::DUPLICATES_OF_LOSS;
use super::{Phase, Progress};
use crate::connection::{Cold, Connection, ConnectionFlags};
use crate::env::Env;
use crate::scoreboard::Moment;
use crate::scoreboard::delivery::{Newest, is_sent_after};
use mill_wire::seq::SeqNumber;

/// RFC 8985 5.2.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rack {
    /// Of all that has arrived, what was sent last: RACK.xmit_ts and RACK.end_seq.
    newest: Option<Newest>,
    /// RACK.rtt, microseconds.
    rtt_us: u32,
    /// RACK.reo_wnd_mult: quarters of the smallest round trip that reordering is given.
    window_quarters: u32,
    /// RACK.reo_wnd_persist: recoveries until that is one again.
    recoveries_left: u8,
    /// RACK.dsack_round: no second step in this round trip.
    dsack_round_end: Option<SeqNumber>,
    /// The farthest that a segment arrived behind one that was sent later, bytes; for status reports, not used here.
    reordered_bytes: u32,
    /// Something may turn out to be lost when its time is over; then RACK wants the timer.
    is_pending: bool,
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            newest: None,
            rtt_us: 0,
            window_quarters: 1,
            recoveries_left: RECOVERIES_OF_WIDE_WINDOW,
            dsack_round_end: None,
            reordered_bytes: 0,
            is_pending: false,
        }
    }
}

impl Rack {
    /// Nothing may turn out to be lost by its time alone.
    #[inline]
    pub(super) const fn end_wait(&mut self) {
        self.is_pending = false;
    }

    pub(super) const fn reordered_bytes(&self) -> u32 {
        self.reordered_bytes
    }

    /// RFC 8985 6.2 step 4: a window widened by D-SACKs narrows after so many recoveries without one.
    pub(super) const fn on_recovery_end(&mut self) {
        self.recoveries_left = self.recoveries_left.saturating_sub(1);
        if self.recoveries_left == 0 {
            self.window_quarters = 1;
        }
    }
}

impl Connection {
    /// Steps 1 to 3, and the D-SACK part of step 4.
    #[inline]
    pub(super) fn update_rack(&mut self, cold: &mut Cold, progress: &Progress) {
        let rack = &mut cold.recovery.rack;
        if let Some(newest) = progress.delivery.newest {
            let rtt_us = progress.now.since(newest.at);
            // Step 2: the acknowledgement of a retransmission may be the original's, come late.
            let is_ambiguous =
                newest.is_retransmission && (rtt_us < self.rtt.min_us() || progress.is_echo_older);
            if !is_ambiguous {
                rack.rtt_us = rtt_us;
                let last = rack.newest.get_or_insert(newest);
                if is_sent_after((newest.at, newest.end), (last.at, last.end)) {
                    *last = newest;
                }
            }
        }
        if progress.delivery.is_reordered {
            self.flags.set(ConnectionFlags::REORDERED, true);
            let distance = progress.delivery.reordered_bytes;
            rack.reordered_bytes = rack.reordered_bytes.max(distance);
        }
        if rack
            .dsack_round_end
            .is_some_and(|end| progress.ack.is_at_or_after(end))
        {
            rack.dsack_round_end = None;
        }
        if progress.duplicate_bytes > 0 && rack.dsack_round_end.is_none() {
            rack.dsack_round_end = Some(self.snd.nxt());
            rack.window_quarters = rack.window_quarters.saturating_add(1);
            rack.recoveries_left = RECOVERIES_OF_WIDE_WINDOW;
        }
    }

    /// Steps 4 and 5. Returns the bytes found lost.
    pub(crate) fn detect_losses(&mut self, cold: &mut Cold, now: Moment, env: &mut Env<'_>) -> u32 {
        let Some(newest) = cold.recovery.rack.newest else {
            return 0;
        };
        let away_us_max = self.rack_patience_us(cold);
        let losses = cold.scoreboard.detect_losses(newest, away_us_max, now);
        cold.recovery.rack.is_pending = losses.is_pending;
        env.shared.counters.lost_retransmits += u64::from(losses.retransmissions);
        losses.bytes
    }

    /// Step 4: how long reordering may delay a segment, in microseconds.
    fn reordering_window_us(&self, cold: &Cold) -> u32 {
        let rack = &cold.recovery.rack;
        let is_enough = cold.scoreboard.sacked_bytes()
            >= DUPLICATES_OF_LOSS.saturating_mul(self.snd_mss.into());
        let was_reordered = self.flags.has(ConnectionFlags::REORDERED);
        if !was_reordered && (cold.recovery.phase != Phase::Open || is_enough) {
            return 0;
        }
        let window_us = u64::from(rack.window_quarters) * u64::from(self.rtt.min_us()) / 4;
        u32::try_from(window_us)
            .unwrap_or(u32::MAX)
            .min(self.rtt.srtt_us())
    }

    /// What a segment may take at most: what is away for longer when the retransmission timer expires is lost
    /// (RFC 8985 6.3).
    pub(crate) fn rack_patience_us(&self, cold: &Cold) -> u32 {
        let rtt_us = cold.recovery.rack.rtt_us;
        rtt_us.saturating_add(self.reordering_window_us(cold))
    }

    /// How long RACK waits for what may be lost, if anything may: until all that left before the newest arrival has
    /// had its time.
    pub(crate) fn reordering_wait_us(&self, cold: &Cold, now: Moment) -> Option<u32> {
        let rack = &cold.recovery.rack;
        let newest = rack.newest.filter(|_| rack.is_pending)?;
        let away_us_max = self.rack_patience_us(cold);
        Some(away_us_max.saturating_sub(now.since(newest.at)))
    }
}

/// RFC 8985 6.2 step 4: recoveries that a widened window lasts.
const RECOVERIES_OF_WIDE_WINDOW: u8 = 16;
