//! What a key owes: its requests beyond the rate, in thousandths, as nginx counts them.
//!
//! Each request owes 1000, and a rate of 1000 pays one back in a second. Time is in whole milliseconds, and what is paid back is
//! rounded down: at rates below one request a second, requests in quick succession lose thousandths. nginx does the same, and a
//! test compares the two.

/// What is known of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Owed {
    excess: u64,
    /// When `excess` was true, in milliseconds. `None`: no request was counted yet.
    last_ms: Option<u64>,
    /// Requests that have found this key and wait for those of their other limits: it must not be forgotten meanwhile.
    pub(super) pending: u32,
}

impl Owed {
    /// What it owes with one more request now.
    pub(super) fn with_one_more(&self, rate: u64, now_ms: u64) -> u64 {
        let Some(elapsed) = self.elapsed(now_ms) else {
            return 0;
        };
        let paid = rate.saturating_mul(elapsed) / 1000;
        self.excess.saturating_add(ONE).saturating_sub(paid)
    }

    /// Counts the request.
    pub(super) fn set(&mut self, excess: u64, now_ms: u64) {
        if self.elapsed(now_ms) != Some(0) {
            self.last_ms = Some(now_ms);
        }
        self.excess = excess;
    }

    /// It was not used for a minute, and owes nothing any more.
    pub(super) fn is_over(&self, rate: u64, now_ms: u64) -> bool {
        let elapsed = now_ms.abs_diff(self.last_ms.unwrap_or(0));
        elapsed >= CLOCK_STEP_MS && self.excess <= rate.saturating_mul(elapsed) / 1000
    }

    /// Since the last request. The clocks of workers differ by a turn: a little earlier is the same time. Much earlier is another
    /// clock.
    fn elapsed(&self, now_ms: u64) -> Option<u64> {
        let last_ms = self.last_ms?;
        Some(match now_ms.checked_sub(last_ms) {
            Some(elapsed) => elapsed,
            None if last_ms - now_ms > CLOCK_STEP_MS => 1,
            None => 0,
        })
    }
}

/// How long a request that owes `excess` is to wait, where `allowed` may go at once.
pub(super) fn delay_ms(excess: u64, allowed: u64, rate: u64) -> u64 {
    excess.saturating_sub(allowed).saturating_mul(1000) / rate.max(1)
}

/// One request.
const ONE: u64 = 1000;

/// A minute.
const CLOCK_STEP_MS: u64 = 60_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// What is owed after requests at these times.
    fn after(rate: u64, times: &[u64]) -> Vec<u64> {
        let mut owed = Owed::default();
        let one = |&now_ms| {
            let excess = owed.with_one_more(rate, now_ms);
            owed.set(excess, now_ms);
            excess
        };
        times.iter().map(one).collect()
    }

    #[test]
    fn a_request_owes_what_the_rate_has_not_paid_back() {
        let check =
            |rate, times: &[u64], expected: &[u64]| assert_eq!(after(rate, times), expected);
        check(1000, &[5, 5, 5], &[0, 1000, 2000]);
        check(1000, &[5, 1004, 1005, 3005], &[0, 1, 1000, 0]);
        check(10_000, &[0, 50, 100, 99], &[0, 500, 1000, 2000]);
        // 1r/m: nothing is paid back in a time in which less than a thousandth is.
        check(16, &[0, 50, 100, 63_000], &[0, 1000, 2000, 1994]);
        check(16, &[0, 62, 125], &[0, 1000, 1999]);
        check(u64::MAX, &[0, 0, 1], &[0, 1000, 0]);
    }

    #[test]
    fn clocks_of_workers_may_differ() {
        let check = |times: &[u64], expected: &[u64]| assert_eq!(after(1000, times), expected);
        // The later time stays.
        check(&[100_000, 99_999, 100_000], &[0, 1000, 2000]);
        check(&[100_000, 40_000, 100_500], &[0, 1000, 1500]);
        check(&[100_000, 39_999, 40_000], &[0, 999, 1998]);
    }

    #[test]
    fn a_key_is_over_when_it_owes_nothing_after_a_minute() {
        let mut owed = Owed::default();
        owed.set(60_001, 0);
        assert!(!owed.is_over(1000, 60_000));
        assert!(owed.is_over(1000, 60_001));
        owed.set(0, 0);
        assert!(!owed.is_over(1000, 59_999));
        assert!(owed.is_over(1000, 60_000));
    }

    #[test]
    fn a_delay_is_what_the_rate_takes_to_pay() {
        let check = |excess, allowed, rate, expected| {
            assert_eq!(delay_ms(excess, allowed, rate), expected);
        };
        check(1000, 0, 1000, 1000);
        check(1500, 0, 10_000, 150);
        check(1500, 1000, 10_000, 50);
        check(1000, 1000, 10_000, 0);
        check(999, 1000, 10_000, 0);
        check(1000, u64::MAX, 1, 0);
        check(1, 0, 10_000, 0);
    }
}
