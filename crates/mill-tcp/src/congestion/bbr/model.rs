//! What BBR knows of the path (draft-ietf-ccwg-bbr 4.5, 5.3.2, 5.5): its rate, its round trip, and how much may be in flight.

use super::filter::MaxFilter;
use super::rate::{RateSample, Rates};

/// Bytes, microseconds, and bytes a second.
#[derive(Debug)]
pub(super) struct PathModel {
    pub(super) rates: Rates,
    /// BBR.max_bw.
    max_bw: MaxFilter,
    /// BBR.bw_shortterm and BBR.inflight_shortterm: bounds by recent losses.
    bw_lo: u64,
    inflight_lo: u32,
    /// BBR.inflight_longterm: what once was too much.
    pub(super) inflight_hi: u32,
    /// BBR.min_rtt, and when it was measured.
    pub(super) min_rtt: u64,
    min_rtt_at: u64,
    /// BBR.probe_rtt_min_delay, and when; it has expired.
    probe_min_rtt: u64,
    probe_min_rtt_at: u64,
    pub(super) is_probe_rtt_due: bool,
    /// BBR.round_count …
    next_round_at: u64,
    pub(super) is_round_start: bool,
    pub(super) rounds: u64,
    /// … and the same for losses.
    next_loss_round_at: u64,
    pub(super) is_loss_round_start: bool,
    /// What was lost and delivered when the round of losses began.
    round_lost: u64,
    round_delivered: u64,
    /// The peer has reported congestion (RFC 3168) in it.
    is_congested: bool,
    /// The shortest round trip in it.
    round_rtt: u64,
    /// What the path loses without a queue, of a million; a mean of late rounds.
    random_losses: u64,
    /// BBR.bw_latest and BBR.inflight_latest.
    bw_latest: u64,
    inflight_latest: u64,
    /// BBR.extra_acked: more than the rate explains arrives at once.
    extra: MaxFilter,
    extra_since: u64,
    extra_delivered: u64,
    extra_rounds: u32,
}

impl PathModel {
    pub(super) fn new(now: u64, rtt: Option<u64>) -> Self {
        let min_rtt = rtt.unwrap_or(u64::MAX);
        Self {
            rates: Rates::default(),
            max_bw: MaxFilter::default(),
            bw_lo: u64::MAX,
            inflight_lo: u32::MAX,
            inflight_hi: u32::MAX,
            min_rtt,
            min_rtt_at: now,
            probe_min_rtt: min_rtt,
            probe_min_rtt_at: now,
            is_probe_rtt_due: false,
            next_round_at: 0,
            is_round_start: false,
            rounds: 0,
            next_loss_round_at: 0,
            is_loss_round_start: false,
            round_lost: 0,
            round_delivered: 0,
            is_congested: false,
            round_rtt: u64::MAX,
            random_losses: 0,
            bw_latest: 0,
            inflight_latest: 0,
            extra: MaxFilter::default(),
            extra_since: now,
            extra_delivered: 0,
            extra_rounds: 0,
        }
    }

    pub(super) fn max_bw(&self) -> u64 {
        self.max_bw.max()
    }

    /// BBR.bw.
    pub(super) fn bw(&self) -> u64 {
        self.max_bw().min(self.bw_lo)
    }

    pub(super) fn inflight_lo(&self) -> u32 {
        self.inflight_lo
    }

    /// Bytes of `gain` thousandths of what the path carries in a round trip at this rate; none before both are known.
    pub(super) fn bdp(&self, bw: u64, gain: u64) -> Option<u32> {
        if self.min_rtt == u64::MAX || bw == 0 {
            return None;
        }
        let bytes = u128::from(bw) * u128::from(self.min_rtt) * u128::from(gain);
        Some(u32::try_from(bytes / 1_000_000_000).unwrap_or(u32::MAX))
    }

    pub(super) fn extra_acked(&self) -> u32 {
        u32::try_from(self.extra.max()).unwrap_or(u32::MAX)
    }

    /// The peer reports congestion: as if more were lost than may be.
    pub(super) const fn note_congestion(&mut self) {
        self.is_congested = true;
    }

    /// A round begins now (BBRStartRound).
    pub(super) fn start_round(&mut self) {
        self.next_round_at = self.rates.delivered();
    }

    /// A cycle of probing is over: rates of the one before the last are forgotten.
    pub(super) const fn advance_max_bw(&mut self) {
        self.max_bw.advance();
    }

    /// BBRResetShortTermModel.
    pub(super) const fn forget_lower_bounds(&mut self) {
        self.bw_lo = u64::MAX;
        self.inflight_lo = u32::MAX;
    }

    /// BBRResetCongestionSignals.
    pub(super) fn forget_congestion(&mut self) {
        self.is_congested = false;
        self.bw_latest = 0;
        self.inflight_latest = 0;
        self.begin_loss_count();
    }

    /// BBRUpdateLatestDeliverySignals, BBRUpdateMaxBw.
    pub(super) fn on_sample(&mut self, sample: &RateSample, rtt: Option<u64>) {
        self.round_rtt = self.round_rtt.min(rtt.unwrap_or(u64::MAX));
        self.bw_latest = self.bw_latest.max(sample.rate.unwrap_or(0));
        self.inflight_latest = self.inflight_latest.max(sample.delivered);
        self.is_round_start = false;
        self.is_loss_round_start = false;
        if sample.delivered == 0 {
            return;
        }
        if sample.prior_delivered >= self.next_loss_round_at {
            self.next_loss_round_at = self.rates.delivered();
            self.is_loss_round_start = true;
        }
        if sample.prior_delivered >= self.next_round_at {
            self.start_round();
            self.rounds += 1;
            self.is_round_start = true;
        }
        if let Some(rate) = sample.rate
            && (!sample.is_limited || rate >= self.max_bw())
        {
            self.max_bw.note(rate);
        }
    }

    /// Whether so many of `total` bytes are more than a path may lose without a full queue: more than [`LOSS_PER_MILLE_MAX`] beside
    /// what it loses anyway, where there is a queue, as the round trip tells, and much more where there is none. A few segments are never
    /// too many.
    pub(super) fn is_too_much(&self, lost: u64, total: u64, mss: u32) -> bool {
        let most = if self.has_queue() {
            let anyway = self.random_losses * 3 / 2_000;
            (LOSS_PER_MILLE_MAX + anyway).min(LOSS_PER_MILLE_MAX_WITHOUT_QUEUE)
        } else {
            LOSS_PER_MILLE_MAX_WITHOUT_QUEUE
        };
        lost >= FEW_SEGMENTS * u64::from(mss) && lost * 1000 > total * most
    }

    /// Thousandths of the rate at which to send for what is lost on the way anyway. Not for all of it: the rate is the largest of late, and
    /// by chance larger than what the path carries, the more the more is lost. With all of it a queue stands (`bench paths`, loss-5).
    pub(super) fn loss_allowance(&self) -> u64 {
        1_000 + self.random_losses.min(RANDOM_LOSSES_MAX) / ALLOWANCE_PART / 1_000
    }

    /// Every packet of this round has waited somewhere.
    pub(super) const fn has_queue(&self) -> bool {
        self.round_rtt != u64::MAX && self.round_rtt > self.min_rtt.saturating_mul(9) / 8
    }

    /// A round of losses without a queue says what the path loses anyway.
    fn note_random_losses(&mut self) {
        let lost = self.lost_in_round();
        let total = lost + self.rates.delivered() - self.round_delivered;
        if self.round_rtt == u64::MAX || self.has_queue() || total == 0 {
            return;
        }
        let share = lost * 1_000_000 / total;
        self.random_losses = (self.random_losses * (RANDOM_ROUNDS - 1) + share) / RANDOM_ROUNDS;
    }

    /// Too much was lost in the round of losses so far, or the peer reports congestion.
    pub(super) fn has_lost_too_much(&self, mss: u32) -> bool {
        let lost = self.lost_in_round();
        let delivered = self.rates.delivered() - self.round_delivered;
        self.is_congested || self.is_too_much(lost, lost + delivered, mss)
    }

    pub(super) fn lost_in_round(&self) -> u64 {
        self.rates.lost() - self.round_lost
    }

    /// At the end of a round of losses: BBRAdaptLowerBoundsFromCongestion, unless more is being tried (`is_probing`). Otherwise
    /// than in the draft losses that are no sign of a full queue lower nothing: on a path with random losses there are some in nearly
    /// every round.
    pub(super) fn end_loss_round(&mut self, is_probing: bool, (cwnd, mss): (u32, u32)) {
        if !self.is_loss_round_start {
            return;
        }
        self.note_random_losses();
        if !is_probing && self.has_lost_too_much(mss) {
            let bw = if self.bw_lo == u64::MAX {
                self.max_bw()
            } else {
                self.bw_lo
            };
            let inflight = if self.inflight_lo == u32::MAX {
                cwnd
            } else {
                self.inflight_lo
            };
            self.bw_lo = self.bw_latest.max(bw / 10 * 7);
            let latest = u32::try_from(self.inflight_latest).unwrap_or(u32::MAX);
            self.inflight_lo = latest.max(inflight / 10 * 7);
        }
        self.begin_loss_count();
        self.is_congested = false;
    }

    fn begin_loss_count(&mut self) {
        self.round_lost = self.rates.lost();
        self.round_delivered = self.rates.delivered();
        self.round_rtt = u64::MAX;
    }

    /// BBRAdvanceLatestDeliverySignals.
    pub(super) fn end_ack(&mut self, sample: &RateSample) {
        if self.is_loss_round_start {
            self.bw_latest = sample.rate.unwrap_or(0);
            self.inflight_latest = sample.delivered;
        }
    }

    /// BBRUpdateMinRTT.
    pub(super) fn on_rtt(&mut self, now: u64, rtt: Option<u64>) {
        self.is_probe_rtt_due = now > self.probe_min_rtt_at + PROBE_RTT_INTERVAL;
        if let Some(rtt) = rtt
            && (rtt < self.probe_min_rtt || self.is_probe_rtt_due)
        {
            self.probe_min_rtt = rtt;
            self.probe_min_rtt_at = now;
        }
        let has_expired = now > self.min_rtt_at + MIN_RTT_FILTER;
        if self.probe_min_rtt < self.min_rtt || has_expired {
            self.min_rtt = self.probe_min_rtt;
            self.min_rtt_at = self.probe_min_rtt_at;
        }
    }

    /// The queue was drained for a while: the next time is an interval away.
    pub(super) const fn end_probe_rtt(&mut self, now: u64) {
        self.probe_min_rtt_at = now;
    }

    /// BBRUpdateACKAggregation. Until the path is full one round is remembered, then some.
    pub(super) fn note_aggregation(
        &mut self,
        now: u64,
        sample: &RateSample,
        cwnd: u32,
        is_full: bool,
    ) {
        if self.is_round_start {
            self.extra_rounds += 1;
            let rounds_max = if is_full { EXTRA_ROUNDS } else { 1 };
            if self.extra_rounds >= rounds_max {
                self.extra_rounds = 0;
                self.extra.advance();
            }
        }
        let interval = u128::from(now.saturating_sub(self.extra_since));
        let expected = u128::from(self.bw()) * interval / 1_000_000;
        let mut expected = u64::try_from(expected).unwrap_or(u64::MAX);
        if self.extra_delivered <= expected {
            self.extra_delivered = 0;
            self.extra_since = now;
            expected = 0;
        }
        self.extra_delivered += u64::from(sample.newly_delivered);
        let extra = self.extra_delivered.saturating_sub(expected);
        self.extra.note(extra.min(cwnd.into()));
    }

    /// Nothing was in flight for a while.
    pub(super) const fn restart(&mut self, now: u64) {
        self.extra_since = now;
        self.extra_delivered = 0;
    }
}

/// BBR.LossThresh, thousandths; and where the round trip is as short as ever, so that no queue can be full. A policer, which drops without a
/// queue, drops more.
const LOSS_PER_MILLE_MAX: u64 = 20;
const LOSS_PER_MILLE_MAX_WITHOUT_QUEUE: u64 = 100;

/// So much of them, of a million, and no more, …
const RANDOM_LOSSES_MAX: u64 = 100_000;
/// … and a quarter of that is sent on top.
const ALLOWANCE_PART: u64 = 4;

/// Rounds in the mean of what is lost without a queue.
const RANDOM_ROUNDS: u64 = 16;

/// Segments that are too few to tell a share by.
const FEW_SEGMENTS: u64 = 3;

/// BBR.ProbeRTTInterval and BBR.MinRTTFilterLen.
const PROBE_RTT_INTERVAL: u64 = 5_000_000;
const MIN_RTT_FILTER: u64 = 10_000_000;

/// Half of BBR.ExtraAckedFilterLen, as the filter has two windows.
const EXTRA_ROUNDS: u32 = 5;
