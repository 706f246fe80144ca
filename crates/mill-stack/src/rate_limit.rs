//! So many in a second, and no more.

use mill_tcp::random::Random;
use mill_tcp::time::Instant;

/// What is left of a second's share.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RateLimit {
    /// Its number, counted from one.
    second: u64,
    left: u32,
}

impl RateLimit {
    /// Takes one of `per_second`; says whether there was one left. Each second begins with a random number between half
    /// of them and all: so nobody learns, by counting the answers that are left, whether segments with another's
    /// address were answered (CVE-2016-5696, CVE-2020-25705).
    pub(crate) fn take(&mut self, per_second: u32, random: &mut Random, now: Instant) -> bool {
        let second = now.as_millis() / 1000 + 1;
        if second != self.second {
            self.second = second;
            let spread = random.below(u64::from(per_second) / 2 + 1);
            self.left = per_second.saturating_sub(u32::try_from(spread).unwrap_or(0));
        }
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn each_second_has_its_own_share() {
        let mut limit = RateLimit::default();
        let mut random = Random::new(7);
        assert!(limit.take(1, &mut random, at(500)));
        assert!(!limit.take(1, &mut random, at(999)));
        assert!(limit.take(1, &mut random, at(1000)));
        assert!(!limit.take(1, &mut random, at(1000)));
        assert!(!limit.take(0, &mut random, at(2000)));
    }

    #[test]
    fn nobody_knows_how_large_a_share_is() {
        let mut limit = RateLimit::default();
        let mut random = Random::new(7);
        let shares: alloc::collections::BTreeSet<u32> = (0..100)
            .map(|second| {
                let mut taken = 0;
                while limit.take(1000, &mut random, at(second * 1000)) {
                    taken += 1;
                }
                taken
            })
            .collect();
        assert!(shares.iter().all(|share| (500..=1000).contains(share)));
        assert!(shares.len() > 50, "{shares:?}");
    }
}
