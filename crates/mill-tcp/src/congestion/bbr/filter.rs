//! The largest value of late.

/// Of two windows of the same length, the present one and the one before: old values are forgotten within two.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxFilter([u64; 2]);

impl MaxFilter {
    pub(super) fn max(self) -> u64 {
        self.0[0].max(self.0[1])
    }

    pub(super) fn note(&mut self, value: u64) {
        self.0[1] = self.0[1].max(value);
    }

    /// A window begins.
    pub(super) const fn advance(&mut self) {
        self.0 = [self.0[1], 0];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_forgotten_with_the_second_window_after_it() {
        let mut filter = MaxFilter::default();
        filter.note(7);
        filter.advance();
        filter.note(3);
        assert_eq!(filter.max(), 7);
        filter.advance();
        assert_eq!(filter.max(), 3);
        filter.advance();
        assert_eq!(filter.max(), 0);
    }
}
