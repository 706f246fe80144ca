//! What BBR is doing (draft-ietf-ccwg-bbr 3.4, 5.3): filling the path, draining the queue that came of it, and then cycles in
//! which it probes for more.
//!
//! ```text
//! Startup ──▶ Drain ──▶ Down ──▶ Cruise ──▶ Refill ──▶ Up ──▶ Down …       ProbeRtt from each, every five seconds
//! ```

use super::rate::RateSample;
use super::{Ack, Bbr};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

/// What acknowledgements tell of a probe for more (BBR.ack_phase).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbeAcks {
    None,
    Refilling,
    Starting,
    Feedback,
    Stopping,
}

/// Where the cycle of probing is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycle {
    began_at: u64,
    /// BBR.bw_probe_wait, microseconds, and the rounds since the last probe.
    wait: u64,
    rounds: u64,
    acks: ProbeAcks,
    /// What was sent while probing may tell that it was too much (BBR.bw_probe_samples).
    has_samples: bool,
    /// BBR.bw_probe_up_rounds, .bw_probe_up_acks; and bytes acknowledged for each segment that may be more.
    up_rounds: u32,
    up_acks: u32,
    up_cost: u32,
}

impl Cycle {
    pub(super) const fn new(now: u64) -> Self {
        Self {
            began_at: now,
            wait: 0,
            rounds: 0,
            acks: ProbeAcks::None,
            has_samples: false,
            up_rounds: 0,
            up_acks: 0,
            up_cost: u32::MAX,
        }
    }
}

/// Whether the path is full (BBR.full_bw).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fullness {
    rate: u64,
    rounds: u32,
    /// Now, and at any time.
    is_full: bool,
    pub(super) was_full: bool,
}

impl Phase {
    /// Thousandths of the rate, and of what the path carries in a round trip.
    pub(super) const fn gains(self) -> (u64, u64) {
        match self {
            Self::Startup => (2773, 2000),
            Self::Drain => (500, 2000),
            Self::Down => (900, 2000),
            Self::Cruise | Self::Refill => (1000, 2000),
            Self::Up => (1250, 2250),
            Self::ProbeRtt => (1000, 500),
        }
    }

    /// Losses are an answer then, not a surprise.
    pub(super) const fn is_probing(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }

    /// What waits before the wire is to become less.
    pub(super) const fn is_draining(self) -> bool {
        matches!(self, Self::Drain | Self::Down | Self::ProbeRtt)
    }

    const fn is_of_cycle(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }
}

impl Bbr {
    /// Everything of an acknowledgement that may change the phase.
    pub(super) fn follow(&mut self, ack: &Ack<'_>, sample: &RateSample) {
        self.check_full(sample);
        self.check_startup(ack, sample);
        self.check_drain(ack);
        self.follow_cycle(ack, sample);
        self.model.on_rtt(ack.now, ack.rtt);
        self.check_probe_rtt(ack, sample);
    }

    /// BBRCheckFullBWReached. Otherwise than in the draft a round in which the peer's window held data back, and nothing waited in the path,
    /// says nothing: a receiver whose window grows with what it reads is behind after losses, as bytes behind a hole are not read.
    fn check_full(&mut self, sample: &RateSample) {
        if self.full.is_full || sample.is_limited {
            return;
        }
        let rate = sample.rate.unwrap_or(0);
        if rate >= self.full.rate + self.full.rate / 4 && rate > 0 {
            self.begin_fullness(rate);
            return;
        }
        if !self.model.is_round_start {
            return;
        }
        if core::mem::take(&mut self.is_peer_limited) && !self.model.has_queue() {
            return;
        }
        self.full.rounds += 1;
        self.full.is_full = self.full.rounds >= FULL_ROUNDS;
        self.full.was_full |= self.full.is_full;
    }

    /// BBRResetFullBW.
    fn begin_fullness(&mut self, rate: u64) {
        self.full = Fullness {
            rate,
            rounds: 0,
            is_full: false,
            was_full: self.full.was_full,
        };
    }

    /// BBRCheckStartupDone, BBRCheckStartupHighLoss.
    fn check_startup(&mut self, ack: &Ack<'_>, sample: &RateSample) {
        if self.phase != Phase::Startup {
            return;
        }
        let few = u64::from(ack.mss) * STARTUP_LOSSES;
        if self.model.is_loss_round_start
            && self.model.has_lost_too_much(ack.mss)
            && self.model.lost_in_round() >= few
        {
            self.full.was_full = true;
            let latest = u32::try_from(sample.delivered).unwrap_or(u32::MAX);
            let bdp = self.model.bdp(self.model.max_bw(), 1000);
            self.model.inflight_hi = bdp.unwrap_or(0).max(latest);
        }
        if self.full.was_full {
            self.phase = Phase::Drain;
        }
    }

    fn check_drain(&mut self, ack: &Ack<'_>) {
        let bdp = self.model.bdp(self.model.max_bw(), 1000);
        if self.phase == Phase::Drain && bdp.is_none_or(|bdp| ack.in_flight <= bdp) {
            self.start_down(ack);
        }
    }

    /// BBRUpdateProbeBWCyclePhase.
    fn follow_cycle(&mut self, ack: &Ack<'_>, sample: &RateSample) {
        if !self.full.was_full {
            return;
        }
        self.adapt_upper_bound(ack, sample);
        if self.model.is_round_start {
            self.cycle.rounds += 1;
        }
        let is_probe_over = self.phase == Phase::Up && self.is_time_to_go_down(ack, sample);
        match self.phase {
            Phase::Down | Phase::Cruise if self.is_time_to_probe(ack) => self.start_refill(),
            Phase::Down if self.is_time_to_cruise(ack) => self.phase = Phase::Cruise,
            Phase::Refill if self.model.is_round_start => {
                self.cycle.has_samples = true;
                self.start_up(ack, sample);
            }
            Phase::Up if is_probe_over => self.start_down(ack),
            _ => {}
        }
    }

    /// BBRStartProbeBW_DOWN.
    pub(super) fn start_down(&mut self, ack: &Ack<'_>) {
        self.model.forget_congestion();
        let random = ack.random;
        self.cycle = Cycle {
            began_at: ack.now,
            wait: PROBE_WAIT + random % PROBE_WAIT_SPREAD,
            rounds: random & 1,
            acks: ProbeAcks::Stopping,
            up_cost: u32::MAX,
            ..self.cycle
        };
        self.model.start_round();
        self.phase = Phase::Down;
    }

    fn start_refill(&mut self) {
        self.model.forget_lower_bounds();
        self.cycle.up_rounds = 0;
        self.cycle.up_acks = 0;
        self.cycle.acks = ProbeAcks::Refilling;
        self.model.start_round();
        self.phase = Phase::Refill;
    }

    fn start_up(&mut self, ack: &Ack<'_>, sample: &RateSample) {
        self.cycle.acks = ProbeAcks::Starting;
        self.model.start_round();
        self.begin_fullness(sample.rate.unwrap_or(0));
        self.cycle.began_at = ack.now;
        self.phase = Phase::Up;
        self.raise_slope(ack);
    }

    /// BBRIsTimeToProbeBW: after some seconds, or after as many rounds as Reno would need to grow by a window.
    fn is_time_to_probe(&self, ack: &Ack<'_>) -> bool {
        let window = ack.cwnd.min(self.inflight(1000).unwrap_or(u32::MAX));
        let reno_rounds = u64::from(window / ack.mss.max(1)).min(RENO_ROUNDS_MAX);
        ack.now > self.cycle.began_at + self.cycle.wait || self.cycle.rounds >= reno_rounds
    }

    fn is_time_to_cruise(&self, ack: &Ack<'_>) -> bool {
        ack.in_flight <= self.with_headroom(ack.mss)
            && self.inflight(1000).is_none_or(|bdp| ack.in_flight <= bdp)
    }

    /// BBRIsTimeToGoDown.
    fn is_time_to_go_down(&mut self, ack: &Ack<'_>, sample: &RateSample) -> bool {
        if ack.is_window_used && ack.cwnd >= self.model.inflight_hi {
            // The bound, not the path, is what limits.
            self.begin_fullness(sample.rate.unwrap_or(0));
            return false;
        }
        self.full.is_full
    }

    /// BBRAdaptLongTermModel.
    fn adapt_upper_bound(&mut self, ack: &Ack<'_>, sample: &RateSample) {
        if self.model.is_round_start {
            match self.cycle.acks {
                ProbeAcks::Starting => self.cycle.acks = ProbeAcks::Feedback,
                ProbeAcks::Stopping => {
                    self.cycle.has_samples = false;
                    self.cycle.acks = ProbeAcks::None;
                    if self.phase.is_of_cycle() && !sample.is_limited {
                        self.model.advance_max_bw();
                    }
                }
                _ => {}
            }
        }
        if self.is_too_much(ack, sample) || self.model.inflight_hi == u32::MAX {
            return;
        }
        self.model.inflight_hi = self.model.inflight_hi.max(sample.in_flight);
        if self.phase == Phase::Up {
            self.raise_bound(ack, sample);
        }
    }

    /// BBRIsInflightTooHigh, BBRHandleInflightTooHigh.
    fn is_too_much(&mut self, ack: &Ack<'_>, sample: &RateSample) -> bool {
        let in_flight = u64::from(sample.in_flight);
        let is_too_much = in_flight > 0 && self.model.is_too_much(sample.lost, in_flight, ack.mss);
        if is_too_much && self.cycle.has_samples {
            self.cycle.has_samples = false;
            if !sample.is_limited {
                let target = ack.cwnd.min(self.inflight(1000).unwrap_or(u32::MAX));
                self.model.inflight_hi = sample.in_flight.max(target / 10 * 7);
            }
            if self.phase == Phase::Up {
                self.start_down(ack);
            }
        }
        is_too_much
    }

    /// BBRProbeInflightLongtermUpward: the bound grows by a segment for so many bytes, twice as fast in each round.
    fn raise_bound(&mut self, ack: &Ack<'_>, sample: &RateSample) {
        if !ack.is_window_used || ack.cwnd < self.model.inflight_hi {
            return;
        }
        self.cycle.up_acks = self.cycle.up_acks.saturating_add(sample.newly_delivered);
        if self.cycle.up_acks >= self.cycle.up_cost {
            let segments = self.cycle.up_acks / self.cycle.up_cost;
            self.cycle.up_acks -= segments * self.cycle.up_cost;
            let more = segments.saturating_mul(ack.mss);
            self.model.inflight_hi = self.model.inflight_hi.saturating_add(more);
        }
        if self.model.is_round_start {
            self.raise_slope(ack);
        }
    }

    fn raise_slope(&mut self, ack: &Ack<'_>) {
        let growth = 1_u32 << self.cycle.up_rounds;
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(30);
        self.cycle.up_cost = (ack.cwnd / growth).max(ack.mss);
    }

    /// BBRCheckProbeRTT.
    fn check_probe_rtt(&mut self, ack: &Ack<'_>, sample: &RateSample) {
        if self.phase != Phase::ProbeRtt && self.model.is_probe_rtt_due && !self.is_restarting {
            self.phase = Phase::ProbeRtt;
            self.prior_cwnd = self.prior_cwnd.max(ack.cwnd);
            self.probe_rtt_until = None;
            self.cycle.acks = ProbeAcks::Stopping;
            self.model.start_round();
        }
        if self.phase == Phase::ProbeRtt {
            self.drain_for_rtt(ack);
        }
        if sample.delivered > 0 {
            self.is_restarting = false;
        }
    }

    /// BBRHandleProbeRTT.
    fn drain_for_rtt(&mut self, ack: &Ack<'_>) {
        self.model.rates.limit(ack.in_flight);
        match self.probe_rtt_until {
            None if ack.in_flight <= self.probe_rtt_window(ack.mss) => {
                self.probe_rtt_until = Some(ack.now + PROBE_RTT_DURATION);
                self.probe_rtt_round_over = false;
                self.model.start_round();
            }
            None => {}
            Some(until) => {
                self.probe_rtt_round_over |= self.model.is_round_start;
                if self.probe_rtt_round_over && ack.now > until {
                    self.end_probe_rtt(ack);
                }
            }
        }
    }

    fn end_probe_rtt(&mut self, ack: &Ack<'_>) {
        self.model.end_probe_rtt(ack.now);
        self.model.forget_lower_bounds();
        self.is_window_restored = true;
        if self.full.was_full {
            self.start_down(ack);
            self.phase = Phase::Cruise;
        } else {
            self.phase = Phase::Startup;
        }
    }
}

/// Rounds without a quarter more, after which the path is full (BBR.StartupFullBwCnt of the code).
const FULL_ROUNDS: u32 = 3;

/// Segments lost in a round from which on Startup may end for it (BBRStartupFullLossCnt).
const STARTUP_LOSSES: u64 = 6;

/// Between two probes for more: two to three seconds, and as many rounds as Reno would take, 63 at most.
const PROBE_WAIT: u64 = 2_000_000;
const PROBE_WAIT_SPREAD: u64 = 1_000_000;
const RENO_ROUNDS_MAX: u64 = 63;

/// BBR.ProbeRTTDuration.
const PROBE_RTT_DURATION: u64 = 200_000;
