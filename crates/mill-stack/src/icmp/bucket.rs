//! How many messages may be sent in a while: a token bucket (RFC 4443 2.4 (f), RFC 1812 4.3.2.8).

use mill_tcp::random::Random;
use mill_tcp::time::Instant;

/// Tokens, of which each message takes one. Now and then a message takes two: so peers cannot tell by counting our
/// messages how many others have caused (CVE-2020-25705).
#[derive(Debug)]
pub(super) struct Bucket {
    per_second: u32,
    tokens: u32,
    /// When the last token was added.
    filled: Instant,
    random: Random,
}

impl Bucket {
    pub(super) const fn new(per_second: u32, seed: u64) -> Self {
        Self {
            per_second,
            tokens: burst(per_second),
            filled: Instant::from_nanos(0),
            random: Random::new(seed),
        }
    }

    /// Takes a token; says whether there was one.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        self.fill(now);
        if self.tokens == 0 {
            return false;
        }
        let price = if self.random.below(EXTRA_ONE_IN) == 0 {
            2
        } else {
            1
        };
        self.tokens = self.tokens.saturating_sub(price);
        true
    }

    fn fill(&mut self, now: Instant) {
        if self.per_second == 0 {
            return;
        }
        let nanos = u128::from(NANOS / u64::from(self.per_second)).max(1);
        let new = now.since(self.filled).as_nanos() / nanos;
        if new == 0 {
            return;
        }
        let room = burst(self.per_second) - self.tokens;
        let added = u32::try_from(new).unwrap_or(u32::MAX).min(room);
        self.tokens += added;
        // A full bucket gets no more, and begins to wait anew.
        self.filled = if added == room {
            now
        } else {
            let waited = u64::try_from(new * nanos).unwrap_or(u64::MAX);
            self.filled + mill_tcp::time::Duration::from_nanos(waited)
        };
    }
}

/// Messages at once after a pause: a tenth of a second's, and some for a host that is allowed few.
const fn burst(per_second: u32) -> u32 {
    let tenth = per_second / 10;
    if per_second == 0 {
        0
    } else if tenth < 10 {
        10
    } else {
        tenth
    }
}

/// One message in so many takes two tokens.
const EXTRA_ONE_IN: u64 = 16;

const NANOS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn a_bucket_gives_a_burst_and_then_its_rate_less_a_little() {
        let mut bucket = Bucket::new(1000, 7);
        let mut taken = 0;
        while bucket.take(at(1000)) {
            taken += 1;
        }
        assert!((80..=100).contains(&taken), "{taken}");
        let mut taken = 0;
        for ms in 1001..=11_000 {
            for _ in 0..5 {
                taken += u32::from(bucket.take(at(ms)));
            }
        }
        assert!((9000..=10_000).contains(&taken), "{taken}");
    }

    #[test]
    fn no_rate_means_nothing_at_all() {
        let mut bucket = Bucket::new(0, 7);
        assert!(!bucket.take(at(0)) && !bucket.take(at(100_000)));
    }

    #[test]
    fn time_that_is_too_short_for_a_token_is_not_lost() {
        let mut bucket = Bucket::new(10, 7);
        while bucket.take(at(0)) {}
        let mut taken = 0;
        for ms in 1..=10_000 {
            taken += u32::from(bucket.take(at(ms)));
        }
        assert!((80..=100).contains(&taken), "{taken}");
    }
}
