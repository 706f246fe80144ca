//! The retransmission timer as a value (RFC 6298 5), and the counts that its owner gives up by. Linux keeps the same
//! ones together in `inet_connection_sock`.

use super::micros;
use crate::config::Config;
use crate::time::{Instant, Tick};

/// What the one retransmission timer of a connection stands for while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerKind {
    /// RFC 6298 5.
    Retransmission,
    /// Tail loss probe (RFC 8985 7.2).
    LossProbe,
    /// RACK's reordering window (RFC 8985 6.3).
    Reordering,
    /// Zero window (RFC 9293 3.8.6.1).
    Persist,
    /// The SYN of an active open.
    Syn,
}

/// At most one deadline of the sending side, and how often those before it passed in vain.
#[derive(Debug, Default)]
pub(crate) struct RetransmissionTimer {
    /// Meaningful while `running` is something.
    at: Tick,
    running: Option<TimerKind>,
    /// Doublings of the timeout (RFC 6298 5.5). Without a measurement they outlive an acknowledgement, hence say nothing
    /// of how long the peer has been silent: that is `timeouts`.
    backoff: u8,
    /// Expiries since something new was acknowledged last (`icsk_retransmits` of Linux).
    timeouts: u8,
    /// Probes without an answer (`icsk_probes_out` of Linux): for a closed window while data waits for one, else of
    /// keep-alive.
    probes: u8,
}

const _: () = assert!(size_of::<RetransmissionTimer>() == 8);

impl RetransmissionTimer {
    /// When it expires, if it runs.
    #[inline]
    pub(crate) fn at(&self) -> Option<Tick> {
        self.running.map(|_| self.at)
    }

    #[inline]
    pub(crate) const fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// What it stands for, if it runs.
    #[inline]
    pub(crate) const fn running(&self) -> Option<TimerKind> {
        self.running
    }

    #[inline]
    pub(crate) fn runs_as(&self, kind: TimerKind) -> bool {
        self.running == Some(kind)
    }

    /// Expires as `kind` at a tick, in place of whatever it stood for.
    #[inline]
    pub(crate) const fn arm(&mut self, kind: TimerKind, at: Tick) {
        self.running = Some(kind);
        self.at = at;
    }

    /// Expires as `kind` when `after_us` have gone by, and not before the next tick.
    #[inline]
    pub(crate) fn arm_us(&mut self, kind: TimerKind, after_us: u64, now: Instant) {
        let after_ns = after_us.saturating_mul(1_000).max(1);
        let at_ns = now.as_nanos().saturating_add(after_ns);
        #[expect(clippy::cast_possible_truncation, reason = "ticks wrap")]
        let at = Tick(at_ns.div_ceil(1_000_000) as u32);
        self.arm(kind, at);
    }

    /// If it runs, it expires at `at`, or sooner if it would anyway.
    #[inline]
    pub(crate) const fn expire_by(&mut self, at: Tick) {
        if at.since(self.at) < 0 {
            self.at = at;
        }
    }

    #[inline]
    pub(crate) const fn disarm(&mut self) {
        self.running = None;
    }

    /// As what it is due, if it is; it is disarmed, or armed anew, by what follows from that.
    #[inline]
    pub(crate) fn due(&self, now: Tick) -> Option<TimerKind> {
        self.running.filter(|_| self.at.is_due(now))
    }

    /// RFC 6298 5.5: the timeout `base_us`, doubled as often as it was backed off.
    #[inline]
    pub(crate) fn backed_off_us(&self, base_us: u64, config: &Config) -> u64 {
        if self.backoff == 0 {
            return base_us;
        }
        let factor = 1_u64 << self.backoff.min(32);
        let rto_us = base_us.saturating_mul(factor);
        rto_us.min(micros(config.rto_max))
    }

    #[inline]
    pub(crate) const fn backoff(&self) -> u8 {
        self.backoff
    }

    /// RFC 6298 5.5.
    pub(crate) const fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    /// A measurement, or a first timeout of another kind: the timeout is that of the estimate again.
    #[inline]
    pub(crate) const fn end_backoff(&mut self) {
        self.backoff = 0;
    }

    /// Something was acknowledged without a measurement: the backoff is kept (RFC 6298 5.7), though not for ever.
    #[inline]
    pub(crate) fn keep_backoff(&mut self) {
        self.backoff = self.backoff.min(BACKOFF_KEPT);
    }

    pub(crate) const fn timeouts(&self) -> u8 {
        self.timeouts
    }

    /// Nothing was acknowledged in time.
    pub(crate) const fn on_timeout(&mut self) {
        self.timeouts = self.timeouts.saturating_add(1);
        self.back_off();
    }

    /// Something new was acknowledged.
    #[inline]
    pub(crate) const fn on_progress(&mut self) {
        self.timeouts = 0;
    }

    pub(crate) const fn probes(&self) -> u8 {
        self.probes
    }

    /// A probe leaves.
    pub(crate) const fn on_probe(&mut self) {
        self.probes = self.probes.saturating_add(1);
    }

    /// The peer is there.
    #[inline]
    pub(crate) const fn on_answer(&mut self) {
        self.probes = 0;
    }
}

/// Doublings of the timeout that outlive an acknowledgement of something sent twice: a factor of 64.
const BACKOFF_KEPT: u8 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_is_due_as_what_it_was_armed_for_last() {
        let mut timer = RetransmissionTimer::default();
        assert_eq!((timer.at(), timer.due(Tick(5))), (None, None));
        timer.arm(TimerKind::Syn, Tick(5));
        timer.arm(TimerKind::Persist, Tick(7));
        assert!(timer.runs_as(TimerKind::Persist) && !timer.runs_as(TimerKind::Syn));
        assert_eq!((timer.at(), timer.due(Tick(6))), (Some(Tick(7)), None));
        assert_eq!(timer.due(Tick(7)), Some(TimerKind::Persist));
        timer.disarm();
        assert_eq!((timer.at(), timer.due(Tick(7))), (None, None));
    }

    /// Ticks are milliseconds; a timeout is never shorter than asked for.
    #[test]
    fn microseconds_are_rounded_up_to_the_next_tick() {
        let check = |now_ns: u64, after_us: u64, expected: u32| {
            let mut timer = RetransmissionTimer::default();
            let now = Instant::from_nanos(now_ns);
            timer.arm_us(TimerKind::Retransmission, after_us, now);
            assert_eq!(timer.at(), Some(Tick(expected)), "{now_ns} {after_us}");
        };
        check(1_000_000_000, 0, 1_001);
        check(1_000_000_000, 1_000, 1_001);
        check(1_000_000_500, 999, 1_001);
        check(1_000_000_500, 1_000, 1_002);
    }

    #[test]
    fn a_deadline_moves_only_to_an_earlier_one() {
        let mut timer = RetransmissionTimer::default();
        timer.arm(TimerKind::Retransmission, Tick(100));
        timer.expire_by(Tick(101));
        assert_eq!(timer.at(), Some(Tick(100)));
        timer.expire_by(Tick(99));
        assert_eq!(timer.at(), Some(Tick(99)));
    }

    #[test]
    fn progress_forgets_timeouts_and_only_a_measurement_the_whole_backoff() {
        let mut timer = RetransmissionTimer::default();
        for _ in 0..300 {
            timer.on_timeout();
        }
        assert_eq!((timer.timeouts(), timer.backoff()), (255, 255));
        timer.on_progress();
        timer.keep_backoff();
        assert_eq!((timer.timeouts(), timer.backoff()), (0, 6));
        timer.end_backoff();
        assert_eq!(timer.backoff(), 0);
        timer.on_probe();
        assert_eq!((timer.probes(), timer.timeouts()), (1, 0));
        timer.on_answer();
        assert_eq!(timer.probes(), 0);
    }
}
