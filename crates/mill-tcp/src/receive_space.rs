//! The receive sequence space (RFC 9293 3.3.1, 3.4) as a value.
//!
//! ```text
//!        RCV.NXT                                       RCV.NXT + RCV.WND
//! -------|---------------------------------------------|---------->
//!  taken   may be received: the window that was advertised
//! ```

use mill_wire::seq::SeqNumber;

/// The window that is offered.
mod window;

/// How the buffer, hence the window, grows.
mod tuning;

/// RCV.NXT, the window as the peer knows it, and the buffer that it follows from.
///
/// Invariants: the right edge of the window is at or behind RCV.NXT and never moves left; what the reader has not
/// consumed lies before RCV.NXT.
#[derive(Debug, Default)]
pub(crate) struct ReceiveSpace {
    nxt: SeqNumber,
    /// The right edge of the window as the peer knows it.
    adv: SeqNumber,
    /// Last.ACK.sent (RFC 7323 4.3).
    last_ack_sent: SeqNumber,
    /// Room for bytes that wait for the reader; the window follows from it.
    buffer_bytes: u32,
    /// Delivered and not consumed yet.
    unread_bytes: u32,
    /// Window tuning: how far the reader had consumed when the round began, which was at `round_at`.
    round_from: SeqNumber,
    /// Ticks modulo 2^16; a round longer than a minute may look short, which grows a window once for nothing.
    round_at: u16,
    /// The largest segment seen from the peer, for delayed acknowledgements and windows.
    mss: u16,
}

impl ReceiveSpace {
    /// Before the peer's SYN is known.
    pub(crate) fn with_buffer(buffer_bytes: u32) -> Self {
        Self {
            buffer_bytes,
            mss: MSS_INITIAL,
            ..Self::default()
        }
    }

    /// The peer's SYN came; `window` is what ours offers, which is not scaled.
    pub(crate) fn on_syn(&mut self, irs: SeqNumber, window: u16) {
        self.nxt = irs + 1;
        self.adv = self.nxt + u32::from(window);
        self.last_ack_sent = self.nxt;
    }

    /// The window that an earlier host has offered, which does not move back.
    pub(crate) fn set_adv(&mut self, adv: SeqNumber) {
        self.adv = self.adv.max(adv);
    }

    /// The next number in order.
    #[inline]
    pub(crate) const fn nxt(&self) -> SeqNumber {
        self.nxt
    }

    /// The right edge of the window.
    #[inline]
    pub(crate) const fn adv(&self) -> SeqNumber {
        self.adv
    }

    /// RCV.WND: how far the peer may still send.
    #[inline]
    pub(crate) fn wnd(&self) -> u32 {
        u32::try_from(self.adv.since(self.nxt)).unwrap_or(0)
    }

    #[inline]
    pub(crate) const fn unread_bytes(&self) -> u32 {
        self.unread_bytes
    }

    #[inline]
    pub(crate) const fn mss(&self) -> u16 {
        self.mss
    }

    /// Text up to `end` is the reader's; how many bytes.
    #[inline]
    pub(crate) fn deliver_to(&mut self, end: SeqNumber) -> u32 {
        let bytes = end - self.nxt;
        debug_assert!(bytes <= self.wnd(), "delivered beyond the window");
        self.nxt = end;
        self.unread_bytes += bytes;
        bytes
    }

    /// The peer's FIN, next in order, which needs no room.
    pub(crate) fn on_fin(&mut self) {
        self.nxt += 1;
        self.adv = self.adv.max(self.nxt);
    }

    /// An acknowledgement of everything in order leaves.
    #[inline]
    pub(crate) const fn on_ack_sent(&mut self) {
        self.last_ack_sent = self.nxt;
    }

    #[inline]
    pub(crate) const fn last_ack_sent(&self) -> SeqNumber {
        self.last_ack_sent
    }

    /// Up to here the reader has consumed.
    #[inline]
    fn consumed(&self) -> SeqNumber {
        self.nxt - self.unread_bytes
    }

    /// Sequence numbers that came and were not acknowledged.
    #[inline]
    pub(crate) fn unacknowledged(&self) -> u32 {
        self.nxt - self.last_ack_sent
    }

    /// A segment of the peer's had so many bytes.
    #[inline]
    pub(crate) fn measure_segment(&mut self, bytes: u16) {
        self.mss = self.mss.max(bytes);
    }

    /// The buffer takes so many bytes from now on. The edge stays where the peer knows it, also if that is beyond.
    pub(crate) const fn set_buffer(&mut self, bytes: u32) {
        self.buffer_bytes = bytes;
    }

    /// The buffer is to take so many bytes at least; says whether it had to grow.
    pub(crate) fn reserve(&mut self, bytes: u32) -> bool {
        let grows = bytes > self.buffer_bytes;
        self.buffer_bytes = self.buffer_bytes.max(bytes);
        grows
    }
}

/// What a peer's full segments are taken for until larger ones have come, bytes; Linux's `TCP_MSS_DEFAULT`.
pub(crate) const MSS_INITIAL: u16 = 536;

#[cfg(test)]
impl ReceiveSpace {
    pub(crate) const fn buffer_bytes(&self) -> u32 {
        self.buffer_bytes
    }

    /// As if so many bytes had come, been acknowledged and read.
    pub(crate) fn skip(&mut self, bytes: u32) {
        self.nxt += bytes;
        self.adv += bytes;
        self.last_ack_sent += bytes;
        self.round_from += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IRS: SeqNumber = SeqNumber(u32::MAX - 10);

    fn space() -> ReceiveSpace {
        let mut rcv = ReceiveSpace::with_buffer(4_000);
        rcv.on_syn(IRS, 4_000);
        rcv
    }

    #[test]
    fn what_is_delivered_waits_for_the_reader_and_its_acknowledgement_to_be_sent() {
        let mut rcv = space();
        assert_eq!(rcv.deliver_to(IRS + 101), 100);
        let figures = (rcv.wnd(), rcv.unread_bytes(), rcv.unacknowledged());
        assert_eq!(figures, (3_900, 100, 100));
        rcv.on_ack_sent();
        assert_eq!((rcv.unacknowledged(), rcv.last_ack_sent()), (0, IRS + 101));
    }

    /// RFC 9293 3.10.7.4, eighth: FIN is taken with a closed window too.
    #[test]
    fn a_fin_needs_no_window() {
        let mut rcv = space();
        rcv.on_fin();
        assert_eq!((rcv.wnd(), rcv.unread_bytes()), (3_999, 0));
        rcv.deliver_to(IRS + 4_001);
        rcv.on_fin();
        assert_eq!((rcv.wnd(), rcv.nxt()), (0, IRS + 4_002));
        assert_eq!(rcv.adv(), rcv.nxt());
    }

    #[test]
    fn a_buffer_grows_by_reservation_and_never_shrinks() {
        let mut rcv = space();
        assert!(!rcv.reserve(4_000) && rcv.reserve(4_001) && !rcv.reserve(1));
        assert_eq!(rcv.buffer_bytes(), 4_001);
    }
}
