//! The congestion window (RFC 5681, RFC 9438, RFC 9406): bytes that may be in flight.

use crate::config::Algorithm;
use crate::connection::{Cold, Connection};
use crate::env::Env;
use crate::recovery::Progress;
use crate::scoreboard::Moment;
use alloc::boxed::Box;
use mill_wire::seq::SeqNumber;

pub(crate) use window::CongestionWindow;

/// The window and its threshold.
mod window;

/// RFC 9438.
pub mod cubic;

/// RFC 5681.
pub mod reno;

/// By measured rate and round trip.
pub(crate) mod bbr;

/// When what the window allows may leave.
pub(crate) mod pacing;

/// The end of slow start before the first loss (RFC 9406).
pub mod hystart;

/// What CUBIC and HyStart++ keep while data is in flight.
#[derive(Debug, Default)]
pub struct CongestionDetail {
    pub(crate) cubic: cubic::Cubic,
    pub(crate) hystart: hystart::Hystart,
    pub(crate) usage: Usage,
    /// What growth has left below a byte.
    pub(crate) growth_rest: u64,
    pub(crate) pacer: pacing::Pacer,
    /// Of a connection with BBR, from the first data on.
    pub(crate) bbr: Option<Box<bbr::Bbr>>,
}

/// How much of the window is used (RFC 9438 5.8, RFC 7661 4.3): what is not used must not grow.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    /// The most that was in flight in this round trip.
    flight_bytes_max: u32,
    /// The window, and nothing else, held data back in it.
    is_limited: bool,
    /// Where the round trip ends.
    end: Option<SeqNumber>,
}

/// The signal of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Fast recovery (RFC 5681 3.2), or a loss that a probe hid.
    Loss,
    /// The retransmission timer (RFC 5681 3.1).
    Timeout,
    /// ECN (RFC 3168 6.1.2).
    Echo,
}

impl CongestionDetail {
    /// The curve begins anew from the window as it is then.
    pub(crate) fn begin_epoch_anew(&mut self) {
        self.cubic.begin_epoch_anew();
        self.growth_rest = 0;
    }
}

impl Connection {
    /// The first window (RFC 6928 2), one segment if the SYN was lost (RFC 5681 3.1). RFC 5681 means a timeout of 3 s: since
    /// it is one of 1 s, a SYN may be sent again because the path is long, so only the second time counts, as in
    /// Linux (`tcp_init_transfer`).
    pub(crate) fn begin_congestion(&mut self, syn_retransmits: u8, env: &mut Env<'_>) {
        let cwnd = if syn_retransmits > 1 {
            self.snd_mss.into()
        } else {
            self.initial_window(env)
        };
        self.congestion = CongestionWindow::initial(cwnd);
    }

    /// IW, bytes.
    fn initial_window(&self, env: &Env<'_>) -> u32 {
        let segments = env.config.initial_window_segments.max(1);
        segments.saturating_mul(self.snd_mss.into())
    }

    /// The window holds data back (`is_limited`), or data leaves: `flight_bytes` are in flight.
    #[inline]
    pub(crate) fn note_usage(&self, cold: &mut Cold, flight_bytes: u32, is_limited: bool) {
        let usage = &mut cold.congestion.usage;
        if usage
            .end
            .is_none_or(|end| self.snd.una().is_at_or_after(end))
        {
            usage.end = Some(self.snd.nxt());
            usage.flight_bytes_max = flight_bytes;
            usage.is_limited = is_limited;
        } else {
            usage.flight_bytes_max = usage.flight_bytes_max.max(flight_bytes);
            usage.is_limited |= is_limited;
        }
    }

    /// New data was acknowledged, and no reduction is going on.
    #[inline]
    pub(crate) fn grow_window(&mut self, cold: &mut Cold, progress: &Progress, env: &Env<'_>) {
        // What had been reported before counted then.
        let mut acked = progress.acked_bytes.min(progress.delivery.bytes);
        let is_slow_start = self.congestion.is_slow_start();
        if is_slow_start && env.config.hystart {
            acked = self.hystart_share(cold, progress, acked);
        }
        let usage = &cold.congestion.usage;
        // In slow start a window used by half may grow, as it doubles in the next round trip.
        let window = &mut self.congestion;
        let is_used =
            usage.is_limited || (is_slow_start && window.cwnd / 2 < usage.flight_bytes_max);
        if !is_used {
            // RFC 9438 5.8: time in which the window could not grow is no time of the curve.
            cold.congestion.begin_epoch_anew();
            return;
        }
        if window.is_slow_start() {
            let room = window.ssthresh - window.cwnd;
            // RFC 5681 3.1 counts at most one segment an acknowledgement; bytes are counted here instead (as RFC 3465
            // does), without its limit, because merged segments are acknowledged together.
            window.cwnd = window.cwnd.saturating_add(acked.min(room));
            acked = acked.saturating_sub(room);
        }
        if acked > 0 && !window.is_slow_start() {
            match env.config.congestion {
                Algorithm::Cubic => self.grow_as_cubic(cold, acked, progress.now),
                // BBR until its first data has left: a socket may choose it in the midst of a flight.
                Algorithm::Reno | Algorithm::Bbr => self.grow_as_reno(cold, acked),
            }
        }
        self.congestion.cwnd = self.congestion.cwnd.min(CWND_MAX);
    }

    /// Sets `ssthresh`, and after a timeout the window; else the reduction goes on from there.
    pub(crate) fn on_congestion(&mut self, cold: &mut Cold, signal: Signal, env: &Env<'_>) {
        let mss = u32::from(self.snd_mss);
        if cold.congestion.bbr.is_some() {
            return self.begin_bbr_timeout(cold);
        }
        let target = match env.config.congestion {
            Algorithm::Cubic => self.reduce_as_cubic(cold),
            Algorithm::Reno | Algorithm::Bbr => self.congestion.cwnd / 2,
        };
        self.congestion.ssthresh = target.max(2 * mss);
        cold.congestion.begin_epoch_anew();
        cold.congestion.hystart.end();
        if signal == Signal::Timeout {
            // LW of RFC 5681 3.1.
            self.congestion.cwnd = mss;
        }
    }

    /// RFC 5681 4.1, RFC 2861 3.1, Linux's `tcp_slow_start_after_idle`: a window that was not used for a while
    /// says little of the network as it is now; half of it is forgotten each retransmission timeout, down to the
    /// first window. For when data leaves, as asking twice would halve twice; gives the window as it is then.
    pub(crate) fn restart_after_idle(&mut self, env: &Env<'_>) -> u32 {
        if !env.config.slow_start_after_idle || env.config.congestion == Algorithm::Bbr {
            return self.congestion.cwnd;
        }
        let idle_ms = u32::try_from(env.tick().since(self.sent_at)).unwrap_or(0);
        let rto_ms = u32::try_from(self.rto_base_us(env.config) / 1_000).unwrap_or(u32::MAX);
        let Some(halvings) = idle_ms.checked_div(rto_ms).filter(|&count| count > 0) else {
            return self.congestion.cwnd;
        };
        let initial = self.initial_window(env);
        self.congestion.on_idle(halvings, initial);
        self.congestion.cwnd
    }

    /// Adds `amount * acked / cwnd` bytes, and keeps what is below one.
    pub(super) fn grow_by_share(&mut self, cold: &mut Cold, amount: u32, acked: u32) {
        let cwnd = u64::from(self.congestion.cwnd.max(1));
        let product = u64::from(amount) * u64::from(acked) + cold.congestion.growth_rest;
        cold.congestion.growth_rest = product % cwnd;
        let growth = u32::try_from(product / cwnd).unwrap_or(u32::MAX);
        self.congestion.cwnd = self.congestion.cwnd.saturating_add(growth);
    }

    /// A round-trip sample for the algorithms that look at delay.
    #[inline]
    pub(crate) fn on_delay(&mut self, cold: &mut Cold, rtt_us: u32) {
        if self.congestion.is_slow_start() {
            cold.congestion.hystart.on_sample(rtt_us);
        }
    }

    fn hystart_share(&mut self, cold: &mut Cold, progress: &Progress, acked: u32) -> u32 {
        if !self.congestion.is_first_slow_start() {
            // RFC 9406 4.3: for the first slow start of a connection only.
            return acked;
        }
        let hystart = &mut cold.congestion.hystart;
        match hystart.on_ack(progress.ack, self.snd.nxt()) {
            hystart::Growth::Full => acked,
            hystart::Growth::Slow => acked / hystart::SLOW_DIVISOR,
            hystart::Growth::Over => {
                self.congestion.ssthresh = self.congestion.cwnd;
                acked
            }
        }
    }
}

/// The largest window of TCP (RFC 7323 2.3), bytes: more can't be in flight.
pub(crate) const CWND_MAX: u32 = 1 << 30;

/// A time for CUBIC, which counts milliseconds.
pub(super) const fn millis_between(later: Moment, earlier: Moment) -> u32 {
    later.since(earlier) / 1_000
}
