//! The window scales of both sides (RFC 7323 2), in a byte: neither is more than 14.

/// Shifts of the peer's window and of ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WindowShifts(u8);

impl WindowShifts {
    /// Snd.Wind.Shift: of the peer's window.
    #[inline]
    pub(crate) const fn snd(self) -> u8 {
        self.0 & 15
    }

    /// Rcv.Wind.Shift: of ours.
    #[inline]
    pub(crate) const fn rcv(self) -> u8 {
        self.0 >> 4
    }

    pub(crate) const fn set_snd(&mut self, shift: u8) {
        debug_assert!(shift < 16);
        self.0 = (self.0 & 0xf0) | (shift & 15);
    }

    pub(crate) const fn set_rcv(&mut self, shift: u8) {
        debug_assert!(shift < 16);
        self.0 = (self.0 & 15) | (shift & 15) << 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_has_its_own() {
        for (snd, rcv) in [(0, 0), (14, 0), (0, 14), (7, 9), (14, 14)] {
            let mut shifts = WindowShifts(0xff);
            shifts.set_snd(snd);
            shifts.set_rcv(rcv);
            assert_eq!((shifts.snd(), shifts.rcv()), (snd, rcv));
        }
    }
}
