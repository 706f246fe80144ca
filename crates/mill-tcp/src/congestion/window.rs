//! The congestion window and its threshold as a value (RFC 5681 2, RFC 9438 4.1.2).

/// Bytes that may be in flight. The algorithms beside this file change it; what else does is an event with a name.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CongestionWindow {
    pub(super) cwnd: u32,
    pub(super) ssthresh: u32,
    /// CUBIC's window before its last reduction (RFC 9438 4.1.2); outlives the cold part.
    pub(super) w_max: u32,
}

impl CongestionWindow {
    /// The first window (RFC 6928 2); no loss has been seen yet.
    pub(super) const fn initial(cwnd: u32) -> Self {
        Self {
            cwnd,
            ssthresh: SSTHRESH_UNKNOWN,
            w_max: 0,
        }
    }

    #[inline]
    pub(crate) const fn cwnd(&self) -> u32 {
        self.cwnd
    }

    pub(crate) const fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    /// The window was another algorithm's: it grows on from there.
    pub(crate) const fn leave_slow_start(&mut self) {
        self.ssthresh = self.cwnd;
    }

    pub(super) const fn set(&mut self, cwnd: u32) {
        self.cwnd = cwnd;
    }

    /// Bytes that may still leave while `pipe` are in the network.
    #[inline]
    pub(crate) const fn room(&self, pipe: u32) -> u32 {
        self.cwnd.saturating_sub(pipe)
    }

    #[inline]
    pub(super) const fn is_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// The window will double for at least another round trip; Linux looks so far ahead in `tcp_update_pacing_rate`.
    pub(super) const fn is_doubling(&self) -> bool {
        self.cwnd < self.ssthresh / 2
    }

    /// No loss has been seen yet ("arbitrarily high", RFC 5681 3.1).
    pub(super) const fn is_first_slow_start(&self) -> bool {
        self.ssthresh == SSTHRESH_UNKNOWN
    }

    /// Not used for `halvings` timeouts: half of it is forgotten with each, down to the first window (RFC 5681 4.1). What
    /// was possible is remembered, so that slow start goes back there.
    pub(super) fn on_idle(&mut self, halvings: u32, initial: u32) {
        if !self.is_first_slow_start() {
            self.ssthresh = self.ssthresh.max(self.cwnd / 4 * 3);
        }
        let halved = self.cwnd.checked_shr(halvings).unwrap_or(0);
        self.cwnd = halved.max(initial.min(self.cwnd));
    }

    /// Segments have another size: a window of one smaller segment, as after a timeout, is one of a larger segment now,
    /// else nothing would ever leave (RFC 5681 4.1 counts the loss window in segments).
    pub(crate) fn on_mss(&mut self, mss: u32) {
        self.cwnd = self.cwnd.max(mss);
    }

    /// The retransmission timer expired, and `pipe` left only a moment ago: one segment may leave beside it (RFC 5681 3.1,
    /// RFC 8985 6.3).
    pub(crate) const fn on_timeout(&mut self, pipe: u32, mss: u32) {
        self.cwnd = pipe.saturating_add(mss);
    }

    /// A step of proportional rate reduction: `allowance` may leave beside `pipe` (RFC 9937 6).
    pub(crate) fn on_reduction_step(&mut self, pipe: u32, allowance: u32, mss: u32) {
        self.cwnd = pipe.saturating_add(allowance).max(mss);
    }

    /// The reduction is over: its target is the window, whatever that was in the end (RFC 9937 6).
    pub(crate) fn on_reduction_end(&mut self, mss: u32) {
        self.cwnd = self.ssthresh.max(mss);
    }

    /// The reduction to its threshold that `before` preceded was a mistake (RFC 4015 3.2, RFC 9438 4.9).
    pub(crate) fn restore(&mut self, before: &Self) {
        self.cwnd = self.cwnd.max(before.cwnd);
        self.ssthresh = self.ssthresh.max(before.ssthresh);
        self.w_max = before.w_max;
    }
}

const SSTHRESH_UNKNOWN: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_leaves_room_for_one_segment_and_a_reduction_ends_at_the_threshold() {
        let mut window = CongestionWindow::initial(10_000);
        assert!(window.is_slow_start() && window.is_first_slow_start());
        window.on_timeout(300, 1_000);
        assert_eq!((window.room(300), window.room(2_000)), (1_000, 0));
        window.ssthresh = 5_000;
        window.on_reduction_end(1_000);
        assert_eq!(window.cwnd(), 5_000);
        window.on_reduction_end(6_000);
        assert_eq!(window.cwnd(), 6_000);
    }

    #[test]
    fn an_idle_window_is_halved_down_to_the_first_one() {
        let check = |cwnd: u32, halvings: u32, expected: u32| {
            let mut window = CongestionWindow::initial(cwnd);
            window.on_idle(halvings, 10_000);
            assert_eq!(window.cwnd(), expected, "{cwnd} {halvings}");
            assert!(window.is_first_slow_start());
        };
        check(80_000, 2, 20_000);
        check(80_000, 4, 10_000);
        check(80_000, 40, 10_000);
        check(4_000, 1, 4_000);
    }

    #[test]
    fn a_step_of_the_reduction_is_never_less_than_a_segment() {
        let check = |pipe: u32, allowance: u32, expected: u32| {
            let mut window = CongestionWindow::initial(10_000);
            window.on_reduction_step(pipe, allowance, 1_000);
            assert_eq!(window.cwnd(), expected, "{pipe} {allowance}");
        };
        check(0, 999, 1_000);
        check(3_000, 500, 3_500);
    }

    #[test]
    fn what_is_restored_is_no_less_than_before() {
        let before = CongestionWindow {
            cwnd: 8_000,
            ssthresh: 6_000,
            w_max: 9_000,
        };
        let mut window = CongestionWindow {
            cwnd: 4_000,
            ssthresh: 7_000,
            w_max: 8_000,
        };
        window.restore(&before);
        let figures = (window.cwnd, window.ssthresh, window.w_max);
        assert_eq!(figures, (8_000, 7_000, 9_000));
    }
}
