//! So many in a second, and no more.

use mill_tcp::time::Instant;

/// What is left of a second's share.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RateLimit {
    second: u64,
    used: u32,
}

impl RateLimit {
    /// Takes one of `per_second`; says whether there was one left.
    pub(crate) const fn take(&mut self, per_second: u32, now: Instant) -> bool {
        let second = now.as_millis() / 1000;
        if second != self.second {
            self.second = second;
            self.used = 0;
        }
        if self.used >= per_second {
            return false;
        }
        self.used += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_has_its_own_share() {
        let mut limit = RateLimit::default();
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        assert!(limit.take(2, at(500)) && limit.take(2, at(999)));
        assert!(!limit.take(2, at(999)));
        assert!(limit.take(2, at(1000)));
        assert!(!limit.take(0, at(1000)));
    }
}
