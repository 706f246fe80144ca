//! BBR version 3 (draft-ietf-ccwg-bbr): not losses but measured rate and round trip say how fast to send, and how much may be in
//! flight.
//!
//! ```text
//! rate.rs     acknowledgement → a sample of the path's rate
//! model.rs    samples → the path's rate, round trip and bounds
//! phase.rs    what is done next: fill, drain, cruise, probe for more, measure the round trip
//! bbr.rs      the congestion window and the pace that come of it; pacing.rs keeps to it
//! ```
//!
//! Otherwise than in the draft, losses are a sign of congestion only where they are more than its threshold and a few segments, and
//! where the round trip tells of a queue that may be full (`PathModel::is_too_much`): so random losses cost no more than what they
//! lose. And what an acknowledgement says stands for each packet that is lost. The state lives as long as the connection.

use super::CWND_MAX;
use super::pacing::{Pacer, quantum};
use crate::connection::{Cold, Connection};
use crate::env::Env;
use crate::recovery::Progress;
use crate::scoreboard::Delivery;
use crate::time::Instant;
use alloc::boxed::Box;
use mill_wire::seq::SeqNumber;
use model::PathModel;
use phase::{Cycle, Fullness, Phase};
use rate::RateSample;

/// Samples of the rate.
mod rate;

/// The largest value of late.
mod filter;

/// What is known of the path.
mod model;

/// What is done next.
mod phase;

#[cfg(test)]
mod tests;

/// Bytes, microseconds, and bytes a second.
#[derive(Debug)]
pub(crate) struct Bbr {
    model: PathModel,
    phase: Phase,
    cycle: Cycle,
    full: Fullness,
    probe_rtt_until: Option<u64>,
    probe_rtt_round_over: bool,
    /// Data leaves after a pause in which nothing was in flight.
    is_restarting: bool,
    /// The window before the round trip was measured, or before a timeout; and it is to be that again.
    prior_cwnd: u32,
    is_window_restored: bool,
    pacing_rate: u64,
    /// Bytes found lost since the last acknowledgement.
    lost_since: u32,
    /// The peer's window has held data back in this round.
    is_peer_limited: bool,
}

/// An acknowledgement, and the connection at that time.
#[derive(Debug)]
pub(super) struct Ack<'a> {
    pub(super) now: u64,
    pub(super) delivery: &'a Delivery,
    pub(super) lost: u32,
    /// Of what was sent once and arrived last.
    pub(super) rtt: Option<u64>,
    pub(super) in_flight: u32,
    pub(super) cwnd: u32,
    pub(super) mss: u32,
    /// The window has held data back in the last round trip.
    pub(super) is_window_used: bool,
    pub(super) random: u64,
}

impl Bbr {
    fn new(now: Instant, rtt: Option<u64>, cwnd: u32) -> Self {
        let micros = now.as_micros();
        let interval = rtt.unwrap_or(1_000).max(1);
        let rate = u64::from(cwnd) * 1_000_000 / interval;
        Self {
            model: PathModel::new(micros, rtt),
            phase: Phase::Startup,
            cycle: Cycle::new(micros),
            full: Fullness::default(),
            probe_rtt_until: None,
            probe_rtt_round_over: false,
            is_restarting: false,
            prior_cwnd: 0,
            is_window_restored: false,
            pacing_rate: rate * Phase::Startup.gains().0 / 1000,
            lost_since: 0,
            is_peer_limited: false,
        }
    }

    /// Bytes are held for lost.
    pub(crate) fn note_lost(&mut self, bytes: u32) {
        self.lost_since = self.lost_since.saturating_add(bytes);
    }

    /// The window after an acknowledgement.
    fn on_ack(&mut self, ack: &Ack<'_>) -> u32 {
        // Also the shortest round trip so far may be this one.
        let shortest = self.min_rtt().min(ack.rtt.unwrap_or(u64::MAX));
        let times = (ack.now, shortest);
        let sample = self.model.rates.on_ack(ack.delivery, ack.lost, times);
        self.model.on_sample(&sample, ack.rtt);
        let is_full = self.full.was_full;
        self.model
            .note_aggregation(ack.now, &sample, ack.cwnd, is_full);
        self.follow(ack, &sample);
        let window = (ack.cwnd, ack.mss);
        self.model.end_loss_round(self.phase.is_probing(), window);
        self.model.end_ack(&sample);
        self.set_pace();
        self.window(ack, &sample)
    }

    /// Bytes a second.
    pub(super) const fn pacing_rate(&self) -> u64 {
        self.pacing_rate
    }

    fn min_rtt(&self) -> u64 {
        match self.model.min_rtt {
            u64::MAX => 0,
            known => known,
        }
    }

    /// BBRSetPacingRate: a little less than the rate, so that no queue grows of it. The rate is that at which bytes arrive; what the path
    /// loses anyway leaves on top, or the wire would not be full; not while a queue is to be drained.
    fn set_pace(&mut self) {
        let (gain, _) = self.phase.gains();
        let on_top = if self.phase.is_draining() {
            1_000
        } else {
            self.model.loss_allowance()
        };
        let gain = gain * PACE_PER_CENT * on_top / 1_000;
        let rate = u128::from(self.model.bw()) * u128::from(gain) / 100_000;
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        if rate > 0 && (self.full.was_full || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// BBRInflight: thousandths of what the path carries in a round trip, and what its ends merge.
    fn inflight(&self, gain: u64) -> Option<u32> {
        let bdp = self.model.bdp(self.model.bw(), gain)?;
        Some(self.quantized(bdp))
    }

    fn quantized(&self, inflight: u32) -> u32 {
        let more = if self.phase == Phase::Up { 2 } else { 0 };
        let budget = quantum(self.pacing_rate, 0).saturating_mul(3);
        inflight.max(budget).saturating_add(more)
    }

    /// BBRInflightWithHeadroom.
    fn with_headroom(&self, mss: u32) -> u32 {
        match self.model.inflight_hi {
            u32::MAX => u32::MAX,
            bound => {
                let headroom = (bound / 20 * 3).max(mss);
                bound.saturating_sub(headroom).max(WINDOW_MIN * mss)
            }
        }
    }

    fn probe_rtt_window(&self, mss: u32) -> u32 {
        let (_, gain) = Phase::ProbeRtt.gains();
        let bdp = self.model.bdp(self.model.bw(), gain);
        bdp.unwrap_or(0).max(WINDOW_MIN * mss)
    }

    /// BBRSetCwnd.
    fn window(&mut self, ack: &Ack<'_>, sample: &RateSample) -> u32 {
        let (_, gain) = self.phase.gains();
        let most = self.inflight(gain).map(|inflight| {
            let with_extra = inflight.saturating_add(self.model.extra_acked());
            with_extra.max(WINDOW_MIN * ack.mss)
        });
        let mut cwnd = ack.cwnd;
        if core::mem::take(&mut self.is_window_restored) {
            cwnd = cwnd.max(core::mem::take(&mut self.prior_cwnd));
        }
        let grown = cwnd.saturating_add(sample.newly_delivered);
        cwnd = match most {
            Some(most) if self.full.was_full => grown.min(most),
            Some(most) if cwnd >= most => cwnd,
            _ => grown,
        };
        cwnd = cwnd.max(WINDOW_MIN * ack.mss);
        if self.phase == Phase::ProbeRtt {
            cwnd = cwnd.min(self.probe_rtt_window(ack.mss));
        }
        cwnd.min(self.bound(ack.mss)).min(CWND_MAX)
    }

    /// BBRBoundCwndForModel.
    fn bound(&self, mss: u32) -> u32 {
        let bound = match self.phase {
            Phase::Startup | Phase::Drain => u32::MAX,
            Phase::Down | Phase::Refill | Phase::Up => self.model.inflight_hi,
            Phase::Cruise | Phase::ProbeRtt => self.with_headroom(mss),
        };
        bound.min(self.model.inflight_lo()).max(WINDOW_MIN * mss)
    }
}

impl Connection {
    /// Something leaves, while `in_flight` bytes are on their way; a connection with BBR begins to measure with the first.
    pub(crate) fn note_departure(
        &self,
        cold: &mut Cold,
        (start, end): (SeqNumber, SeqNumber),
        in_flight: u32,
        env: &Env<'_>,
    ) {
        let rtt = self.rtt.min_us();
        let rtt = (rtt != 0 && rtt != u32::MAX).then_some(u64::from(rtt));
        let cwnd = self.congestion.cwnd();
        let pacer = &mut cold.congestion.pacer;
        let bbr = cold.congestion.bbr.get_or_insert_with(|| {
            *pacer = Pacer::starting_at(env.now);
            Box::new(Bbr::new(env.now, rtt, cwnd))
        });
        let micros = env.now.as_micros();
        if in_flight == 0 && bbr.model.rates.is_limited() {
            bbr.is_restarting = true;
            bbr.model.restart(micros);
        }
        bbr.model.rates.on_sent((start, end), micros, in_flight);
    }

    /// The application has nothing more to send, and the window has room.
    pub(crate) fn note_limited(&mut self) {
        let Some(mut cold) = self.cold.take() else {
            return;
        };
        let in_flight = self.pipe(&cold);
        let has_room = self.congestion.room(in_flight) > 0;
        if let Some(bbr) = &mut cold.congestion.bbr
            && has_room
            && cold.scoreboard.lost_bytes() == 0
        {
            bbr.model.rates.limit(in_flight);
        }
        self.cold = Some(cold);
    }

    /// The peer's window holds data back, and not the path.
    pub(crate) fn note_peer_limited(&mut self) {
        if let Some(bbr) = self
            .cold
            .as_mut()
            .and_then(|cold| cold.congestion.bbr.as_mut())
        {
            bbr.is_peer_limited = true;
        }
    }

    /// An acknowledgement, in place of growth and reduction of the window.
    pub(crate) fn follow_bbr(&mut self, cold: &mut Cold, progress: &Progress, env: &mut Env<'_>) {
        let Some(mut bbr) = cold.congestion.bbr.take() else {
            return;
        };
        let newest = progress
            .delivery
            .newest
            .filter(|newest| !newest.is_retransmission);
        let rtt = newest.map(|newest| u64::from(progress.now.since(newest.at)).max(1));
        let ack = Ack {
            now: env.now.as_micros(),
            delivery: &progress.delivery,
            lost: core::mem::take(&mut bbr.lost_since),
            rtt,
            in_flight: self.pipe(cold),
            cwnd: self.congestion.cwnd(),
            mss: self.snd_mss.into(),
            is_window_used: cold.congestion.usage.is_limited,
            random: env.shared.random.next(),
        };
        if progress.is_congested {
            bbr.model.note_congestion();
        }
        let cwnd = bbr.on_ack(&ack);
        self.congestion.set(cwnd.max(ack.mss));
        cold.congestion.bbr = Some(bbr);
    }

    /// The retransmission timer expired: the window is a segment beside what is in flight, until what was lost is replaced.
    pub(super) fn begin_bbr_timeout(&self, cold: &mut Cold) {
        let cwnd = self.congestion.cwnd();
        if let Some(bbr) = &mut cold.congestion.bbr {
            bbr.prior_cwnd = bbr.prior_cwnd.max(cwnd);
        }
    }

    /// All that was sent when losses were found, or when the timer expired, is acknowledged.
    pub(crate) fn end_bbr_recovery(cold: &mut Cold) {
        if let Some(bbr) = &mut cold.congestion.bbr {
            bbr.is_window_restored = bbr.phase != Phase::ProbeRtt;
        }
    }
}

/// BBR.PacingMarginPercent.
const PACE_PER_CENT: u64 = 99;

/// BBR.MinPipeCwnd, segments.
const WINDOW_MIN: u32 = 4;
