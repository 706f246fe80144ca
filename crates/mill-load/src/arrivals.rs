//! The times at which requests are due, independent of earlier answers.

use crate::plan::Arrivals;
use crate::random::Random;
use mill_runtime::time::{Duration, Instant};

/// One thread's schedule. It advances only when an arrival is taken, so that untaken arrivals need no memory, however
/// far the thread lags behind.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// When the next arrival is due, in nanoseconds with a fraction: rounding errors must not add up.
    next_ns: f64,
    begin: Instant,
    gap_ns: f64,
    law: Arrivals,
}

impl Schedule {
    /// `rate` per second for this thread; thread `thread` of `threads` is shifted so that all together are even.
    pub(crate) fn new(
        begin: Instant,
        rate: f64,
        law: Arrivals,
        (thread, threads): (u32, u32),
        random: &mut Random,
    ) -> Self {
        let gap_ns = (1e9 / rate.max(f64::MIN_POSITIVE)).min(GAP_MAX_NS);
        let next_ns = match law {
            Arrivals::Uniform => gap_ns * f64::from(thread) / f64::from(threads.max(1)),
            Arrivals::Poisson => random.exponential() * gap_ns,
        };
        Self {
            next_ns,
            begin,
            gap_ns,
            law,
        }
    }

    /// When the next arrival is due.
    pub(crate) fn next(&self) -> Instant {
        self.begin + nanos(self.next_ns)
    }

    /// Takes the next arrival, which may be due in the future.
    pub(crate) fn take(&mut self, random: &mut Random) -> Instant {
        let due = self.next();
        self.next_ns += match self.law {
            Arrivals::Uniform => self.gap_ns,
            Arrivals::Poisson => random.exponential() * self.gap_ns,
        };
        due
    }

    /// Drops the arrivals before `since` that were not taken.
    pub(crate) fn forget(&mut self, since: Instant) {
        if self.next() < since {
            self.next_ns = nanos_of(since.since(self.begin));
        }
    }

    /// How many arrivals are due until `end` and were not taken; beyond a million random ones, their mean number. The
    /// schedule must not be used afterwards.
    pub(crate) fn count_until(&mut self, end: Instant, random: &mut Random) -> u64 {
        let mut count = 0;
        while self.law == Arrivals::Poisson && self.next() < end && count < COUNT_MAX {
            self.take(random);
            count += 1;
        }
        let left_ns = nanos_of(end.since(self.begin)) - self.next_ns;
        if left_ns > 0.0 {
            count = count.saturating_add(whole((left_ns / self.gap_ns).ceil()));
        }
        count
    }
}

fn nanos(value: f64) -> Duration {
    Duration::from_nanos(whole(value))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "2^53 ns are a hundred days, and less than a microsecond is lost after a century"
)]
fn nanos_of(duration: Duration) -> f64 {
    duration.as_nanos() as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "never negative, and a float's cast saturates"
)]
fn whole(value: f64) -> u64 {
    value as u64
}

/// The maximum of random arrivals that are counted one by one after the end: a rate far beyond the machine's must not
/// make the end slow. A million take some ten milliseconds.
const COUNT_MAX: u64 = 1_000_000;

/// The longest gap between two arrivals, in nanoseconds: 31 years. Infinity times zero would be NaN, and all arrivals
/// due at once.
const GAP_MAX_NS: f64 = 1e18;

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: Instant = Instant::from_nanos(1_000_000_000);

    #[test]
    fn uniform_arrivals_of_all_threads_together_are_even() {
        let mut random = Random::new(1);
        let mut due: Vec<u128> = (0..4)
            .flat_map(|thread| {
                let mut schedule =
                    Schedule::new(BEGIN, 250.0, Arrivals::Uniform, (thread, 4), &mut random);
                let mut random = Random::new(2);
                (0..5)
                    .map(move |_| schedule.take(&mut random).since(BEGIN).as_nanos())
                    .collect::<Vec<_>>()
            })
            .collect();
        due.sort_unstable();
        let even: Vec<u128> = (0..20).map(|n| n * 1_000_000).collect();
        assert_eq!(due, even);
    }

    #[test]
    fn rounding_does_not_add_up() {
        let mut random = Random::new(1);
        let mut schedule = Schedule::new(BEGIN, 3.0, Arrivals::Uniform, (0, 1), &mut random);
        for _ in 0..3_000_000 {
            schedule.take(&mut random);
        }
        let error = schedule.next().since(BEGIN).as_secs_f64() - 1_000_000.0;
        assert!(error.abs() < 1e-3, "{error}");
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_the_spread_of_an_exponential() {
        let mut random = Random::new(7);
        let mut schedule = Schedule::new(BEGIN, 1000.0, Arrivals::Poisson, (0, 1), &mut random);
        let mut last = BEGIN;
        let gaps: Vec<f64> = (0..100_000)
            .map(|_| {
                let due = schedule.take(&mut random);
                let gap = due.since(last).as_secs_f64();
                last = due;
                gap
            })
            .collect();
        let mean = gaps.iter().sum::<f64>() / 100_000.0;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / 100_000.0;
        assert!((mean - 1e-3).abs() < 2e-5, "{mean}");
        assert!((variance.sqrt() - 1e-3).abs() < 4e-5, "{variance}");
    }

    #[test]
    fn untaken_arrivals_are_counted() {
        let mut random = Random::new(1);
        let mut schedule = Schedule::new(BEGIN, 1000.0, Arrivals::Uniform, (0, 1), &mut random);
        schedule.take(&mut random);
        let end = BEGIN + Duration::from_millis(10);
        assert_eq!(schedule.count_until(end, &mut random), 9);
        assert_eq!(schedule.count_until(BEGIN, &mut random), 0);
    }

    #[test]
    fn a_rate_far_beyond_the_machine_is_counted_to_its_end() {
        let check = |law, tolerance: f64| {
            let mut random = Random::new(1);
            let mut schedule = Schedule::new(BEGIN, 1e9, law, (0, 1), &mut random);
            let end = BEGIN + Duration::from_secs(10);
            let count = schedule.count_until(end, &mut random) as f64;
            assert!((count / 1e10 - 1.0).abs() <= tolerance, "{count}");
        };
        check(Arrivals::Uniform, 0.0);
        check(Arrivals::Poisson, 1e-6);
    }

    #[test]
    fn a_rate_of_almost_nothing_is_no_rate_without_end() {
        for rate in [0.0, f64::MIN_POSITIVE, 1e-300, -1.0, f64::NAN] {
            for law in [Arrivals::Uniform, Arrivals::Poisson] {
                let mut random = Random::new(1);
                let mut schedule = Schedule::new(BEGIN, rate, law, (0, 1), &mut random);
                schedule.take(&mut random);
                let next = schedule.next().since(BEGIN);
                assert!(next > Duration::from_secs(3600), "{rate} {law:?} {next:?}");
            }
        }
    }

    #[test]
    fn forgotten_arrivals_are_not_made_up_for() {
        let mut random = Random::new(1);
        let mut schedule = Schedule::new(BEGIN, 1000.0, Arrivals::Uniform, (0, 1), &mut random);
        let at = |ms| BEGIN + Duration::from_millis(ms);
        schedule.forget(at(7));
        assert_eq!(schedule.take(&mut random), at(7));
        schedule.forget(at(5));
        assert_eq!(schedule.take(&mut random), at(8));
    }
}
