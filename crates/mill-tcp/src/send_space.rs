//! The send sequence space (RFC 9293 3.3.1, 3.4) as a value.
//!
//! ```text
//!        SND.UNA            SND.NXT                    SND.UNA + SND.WND
//! -------|==================|--------------------------|---------->
//!        sent, not acked     may be sent                may not be sent yet
//! ```
//!
//! Text that a SYN carries (RFC 7413) lies behind SND.NXT until the handshake is complete.

use mill_wire::seq::SeqNumber;

/// SND.UNA, SND.NXT, SND.WND, SND.WL1, SND.WL2 and MAX.SND.WND.
///
/// Invariants: SND.UNA is at or before SND.NXT; no window was larger than MAX.SND.WND.
#[derive(Debug, Default)]
pub(crate) struct SendSpace {
    una: SeqNumber,
    /// Next to send for the first time; what is sent again does not move it back. Behind FIN once that is sent.
    nxt: SeqNumber,
    /// Bytes, scaled.
    wnd: u32,
    wl1: SeqNumber,
    /// While no window is compared, which is so before the handshake is complete and after the end: the number of the
    /// RST that is to be sent.
    wl2: SeqNumber,
    /// The largest window that the peer has offered (RFC 9293 3.8.6.2.1; RFC 5961 5.2 MAX.SND.WND).
    wnd_max: u32,
}

impl SendSpace {
    /// Our SYN is to be sent.
    pub(crate) const fn before_syn(iss: SeqNumber) -> Self {
        Self {
            una: iss,
            nxt: iss,
            wnd: 0,
            wl1: SeqNumber(0),
            wl2: SeqNumber(0),
            wnd_max: 0,
        }
    }

    /// Our SYN counts as acknowledged; the peer's said `window`, which is not scaled.
    pub(crate) fn behind_syn(iss: SeqNumber, irs: SeqNumber, window: u16) -> Self {
        let wnd = u32::from(window);
        Self {
            una: iss + 1,
            nxt: iss + 1,
            wnd,
            wl1: irs,
            wl2: iss + 1,
            wnd_max: wnd,
        }
    }

    /// The first number that is not acknowledged.
    #[inline]
    pub(crate) const fn una(&self) -> SeqNumber {
        self.una
    }

    /// The next number to send for the first time.
    #[inline]
    pub(crate) const fn nxt(&self) -> SeqNumber {
        self.nxt
    }

    /// The peer's window, bytes.
    #[inline]
    pub(crate) const fn wnd(&self) -> u32 {
        self.wnd
    }

    /// The largest one so far.
    #[inline]
    pub(crate) const fn wnd_max(&self) -> u32 {
        self.wnd_max
    }

    /// Sequence numbers that were sent and are not acknowledged.
    #[inline]
    pub(crate) fn in_flight(&self) -> u32 {
        self.nxt - self.una
    }

    #[inline]
    pub(crate) fn is_all_acknowledged(&self) -> bool {
        self.una == self.nxt
    }

    /// Whether this number was sent and is not acknowledged.
    pub(crate) fn is_unacknowledged(&self, seq: SeqNumber) -> bool {
        seq.is_at_or_after(self.una) && seq.is_before(self.nxt)
    }

    /// RFC 5961 5.2: an acknowledgement of what was sent, and not absurdly old.
    pub(crate) fn is_acceptable_ack(&self, ack: SeqNumber) -> bool {
        ack.is_at_or_after(self.una - self.wnd_max) && ack.is_at_or_before(self.nxt)
    }

    /// The right edge of the peer's window.
    #[inline]
    pub(crate) fn window_end(&self) -> SeqNumber {
        self.una + self.wnd
    }

    /// Bytes until there; none if the window shrank.
    #[inline]
    pub(crate) fn window_room(&self) -> u32 {
        u32::try_from(self.window_end().since(self.nxt)).unwrap_or(0)
    }

    /// Our SYN leaves, the first time or again.
    pub(crate) fn on_syn_sent(&mut self) {
        debug_assert!(self.in_flight() <= 1);
        self.nxt = self.una + 1;
    }

    /// The SYN that left counts as not sent.
    pub(crate) fn take_syn_back(&mut self) {
        debug_assert!(self.in_flight() <= 1);
        self.nxt = self.una;
    }

    /// Our SYN is acknowledged.
    pub(crate) fn on_syn_acknowledged(&mut self) {
        debug_assert!(!self.is_all_acknowledged());
        self.una += 1;
    }

    /// The text of our SYN is acknowledged up to `ack`; what follows counts as not sent.
    pub(crate) fn on_syn_text_acknowledged(&mut self, ack: SeqNumber) {
        debug_assert!(self.is_all_acknowledged() && ack.is_after(self.nxt));
        self.una = ack;
        self.nxt = ack;
        self.wl2 = ack;
    }

    /// Everything up to `end` was sent for the first time.
    #[inline]
    pub(crate) fn on_sent(&mut self, end: SeqNumber) {
        debug_assert!(end.is_after(self.nxt));
        self.nxt = end;
    }

    /// SND.UNA moves to `ack`; the sequence numbers newly acknowledged.
    #[inline]
    pub(crate) fn on_ack(&mut self, ack: SeqNumber) -> u32 {
        debug_assert!(ack.is_at_or_after(self.una) && ack.is_at_or_before(self.nxt));
        let acked = ack - self.una;
        self.una = ack;
        acked
    }

    /// RFC 9293 3.10.7.4, fifth: the window of a segment that is not older than the last one that told it. Says whether
    /// the window is another now. Called before SND.UNA moves.
    ///
    /// What acknowledges something new is newer too, whatever its number (as in Linux): a retransmission has an old one,
    /// and if its window were left aside SND.UNA would carry the right edge with it, beyond what was offered.
    #[inline]
    pub(crate) fn update_window(&mut self, seq: SeqNumber, ack: SeqNumber, wnd: u32) -> bool {
        debug_assert!(ack.is_at_or_after(self.una));
        let is_newer = seq.is_after(self.wl1)
            || (seq == self.wl1 && ack.is_at_or_after(self.wl2))
            || ack.is_after(self.una);
        if !is_newer {
            return false;
        }
        let before = self.wnd;
        self.wnd = wnd;
        self.wnd_max = self.wnd_max.max(wnd);
        self.wl1 = self.wl1.max(seq);
        self.wl2 = self.wl2.max(ack);
        self.wnd != before
    }

    /// A segment acknowledges nothing new and leaves the window's right edge where it is.
    #[inline]
    pub(crate) fn repeats(&self, ack: SeqNumber, wnd: u32) -> bool {
        ack == self.una && wnd == self.wnd
    }

    /// Such a segment came, next in order.
    #[inline]
    pub(crate) const fn on_repeated(&mut self, seq: SeqNumber) {
        self.wl1 = seq;
    }

    /// The window of the peer's SYN, which has this number, is to be taken by [`Self::update_window`].
    pub(crate) fn expect_window_of_syn(&mut self, seq: SeqNumber) {
        self.wl1 = seq - 1;
        self.wl2 = self.una;
    }

    /// The window of the peer's SYN, which acknowledges nothing.
    pub(crate) fn set_window_of_syn(&mut self, seq: SeqNumber, window: u16) {
        self.wnd = window.into();
        self.wnd_max = self.wnd;
        self.wl1 = seq;
    }

    /// A RST is to be sent with this number.
    pub(crate) const fn keep_reset_seq(&mut self, seq: SeqNumber) {
        self.wl2 = seq;
    }

    pub(crate) const fn reset_seq(&self) -> SeqNumber {
        self.wl2
    }

    /// No RST is to be sent: windows will be compared.
    pub(crate) const fn forget_reset_seq(&mut self) {
        self.wl2 = self.una;
    }
}

#[cfg(test)]
impl SendSpace {
    /// All that was sent before `una` is acknowledged, and the peer has offered this much.
    pub(crate) fn with_window_max(una: SeqNumber, wnd_max: u32) -> Self {
        Self {
            wnd_max,
            ..Self::before_syn(una)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISS: SeqNumber = SeqNumber(u32::MAX - 100);
    const IRS: SeqNumber = SeqNumber(5_000);

    /// 500 of 1000 bytes are acknowledged.
    fn half_acknowledged() -> SendSpace {
        let mut snd = SendSpace::behind_syn(ISS, IRS, 3_000);
        snd.on_sent(ISS + 1_001);
        assert_eq!(snd.on_ack(ISS + 501), 500);
        snd
    }

    #[test]
    fn what_is_in_flight_lies_between_una_and_nxt() {
        let snd = half_acknowledged();
        assert_eq!((snd.una(), snd.nxt()), (ISS + 501, ISS + 1_001));
        assert_eq!((snd.in_flight(), snd.window_room()), (500, 2_500));
        assert!(!snd.is_unacknowledged(ISS + 500) && snd.is_unacknowledged(ISS + 501));
        assert!(snd.is_unacknowledged(ISS + 1_000) && !snd.is_unacknowledged(ISS + 1_001));
    }

    /// RFC 5961 5.2.
    #[test]
    fn an_acknowledgement_is_acceptable_as_far_back_as_the_largest_window() {
        let snd = half_acknowledged();
        for (ack, expected) in [(-3_000, true), (-3_001, false), (500, true), (501, false)] {
            let ack = SeqNumber(snd.una().0.wrapping_add_signed(ack));
            assert_eq!(snd.is_acceptable_ack(ack), expected, "{ack:?}");
        }
    }

    #[test]
    fn a_window_counts_if_its_segment_is_not_older_or_acknowledges_something_new() {
        let check = |seq: SeqNumber, acked: u32, expected: u32| {
            let mut snd = half_acknowledged();
            assert!(snd.update_window(IRS + 10, snd.una(), 2_000));
            let has_changed = snd.update_window(seq, snd.una() + acked, 1_000);
            assert_eq!((snd.wnd(), has_changed), (expected, expected == 1_000));
            assert_eq!(snd.wnd_max(), 3_000);
        };
        check(IRS + 11, 0, 1_000);
        check(IRS + 10, 0, 1_000);
        check(IRS + 9, 0, 2_000);
        check(IRS + 9, 1, 1_000);
    }

    #[test]
    fn a_window_that_shrank_has_no_room() {
        let mut snd = half_acknowledged();
        snd.update_window(IRS + 1, snd.una(), 499);
        assert_eq!(snd.window_room(), 0);
        assert_eq!(snd.window_end(), snd.nxt() - 1);
    }

    #[test]
    fn a_syn_takes_one_number_until_it_is_acknowledged_or_taken_back() {
        let mut snd = SendSpace::before_syn(ISS);
        snd.on_syn_sent();
        snd.on_syn_sent();
        assert_eq!(snd.in_flight(), 1);
        snd.take_syn_back();
        assert!(snd.is_all_acknowledged());
        snd.on_syn_sent();
        snd.on_syn_acknowledged();
        snd.on_syn_text_acknowledged(ISS + 11);
        assert_eq!((snd.una(), snd.nxt()), (ISS + 11, ISS + 11));
    }
}
