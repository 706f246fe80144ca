//! A limit per second.

use mill_tcp::random::Random;
use mill_tcp::time::Instant;

/// The limit of a second, and how much of it was used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RateLimit {
    /// Its number, counted from one.
    second: u64,
    share: u32,
    taken: u32,
}

impl RateLimit {
    /// Takes one of `per_second`; returns whether one was left. Each second's limit is a random number between half
    /// of it and all: so peers cannot learn, by counting the answers that are left, whether segments with another's
    /// address were answered (CVE-2016-5696, CVE-2020-25705).
    ///
    /// The share comes in ten parts, one each tenth of the second, and what is not taken stays: a burst does not use up
    /// all of it at once, and a peer that got no answer gets one to what it repeats a moment later.
    pub(crate) fn take(&mut self, per_second: u32, random: &mut Random, now: Instant) -> bool {
        let (second, millis) = (now.as_millis() / 1000 + 1, now.as_millis() % 1000);
        if second != self.second {
            self.second = second;
            let spread = random.below(u64::from(per_second) / 2 + 1);
            self.share = per_second.saturating_sub(u32::try_from(spread).unwrap_or(0));
            self.taken = 0;
        }
        let parts = millis / (1000 / PARTS) + 1;
        if u64::from(self.taken) >= (u64::from(self.share) * parts).div_ceil(PARTS) {
            return false;
        }
        self.taken += 1;
        true
    }
}

/// Parts in which a second's share comes.
const PARTS: u64 = 10;

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
    fn the_share_of_a_second_cannot_be_predicted() {
        let mut limit = RateLimit::default();
        let mut random = Random::new(7);
        let shares: alloc::collections::BTreeSet<u32> = (0..100)
            .map(|second| {
                let mut taken = 0;
                for part in 0..PARTS {
                    while limit.take(1000, &mut random, at(second * 1000 + part * 100)) {
                        taken += 1;
                    }
                }
                taken
            })
            .collect();
        assert!(shares.iter().all(|share| (500..=1000).contains(share)));
        assert!(shares.len() > 50, "{shares:?}");
    }

    #[test]
    fn a_burst_leaves_something_for_the_rest_of_the_second() {
        let check = |per_second: u32, share_min: u32, share_max: u32| {
            let mut limit = RateLimit::default();
            let mut random = Random::new(7);
            let mut all = 0;
            for part in 0..PARTS {
                let mut taken = 0;
                while limit.take(per_second, &mut random, at(5000 + part * 100 + 99)) {
                    taken += 1;
                }
                let parts = share_min / 10..=share_max.div_ceil(10);
                assert!(parts.contains(&taken), "{per_second}, {part}: {taken}");
                all += taken;
            }
            assert!(
                (share_min..=share_max).contains(&all),
                "{per_second}: {all}"
            );
        };
        check(1000, 500, 1000);
        check(20, 10, 20);
        check(10, 5, 10);
        check(3, 2, 3);
        check(1, 1, 1);
        check(0, 0, 0);
    }

    #[test]
    fn what_was_not_taken_stays_until_the_end_of_the_second() {
        let mut limit = RateLimit::default();
        let mut random = Random::new(7);
        assert!(limit.take(1000, &mut random, at(0)));
        let mut taken = 1;
        while limit.take(1000, &mut random, at(999)) {
            taken += 1;
        }
        assert!((500..=1000).contains(&taken), "{taken}");
    }
}
