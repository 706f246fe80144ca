//! How long answers took: a histogram of fixed size that several workers may count in.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Counters of times up to about two minutes, in four steps an octave: a quantile is at most a quarter too large.
pub struct Latency {
    buckets: [AtomicU64; BUCKETS],
    sum_us: AtomicU64,
}

/// A copy of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatencyCounts {
    buckets: [u64; BUCKETS],
    sum_us: u64,
}

/// Times below 2^FIRST us are one bucket, those from 2^(FIRST + OCTAVES) us on are another one.
const FIRST: u32 = 6;
const OCTAVES: u32 = 21;
const STEPS: u32 = 4;
const BUCKETS: usize = (OCTAVES * STEPS + 2) as usize;

impl Latency {
    /// Two relaxed additions.
    pub fn count(&self, time: Duration) {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        if let Some(bucket) = self.buckets.get(index(us)) {
            bucket.fetch_add(1, Relaxed);
        }
        self.sum_us.fetch_add(us, Relaxed);
    }

    /// A copy of the counters.
    pub fn counts(&self) -> LatencyCounts {
        LatencyCounts {
            buckets: std::array::from_fn(|index| self.buckets[index].load(Relaxed)),
            sum_us: self.sum_us.load(Relaxed),
        }
    }

    /// Counts from zero again.
    pub fn reset(&self) {
        let all = self.buckets.iter().chain([&self.sum_us]);
        all.for_each(|counter| counter.store(0, Relaxed));
    }
}

impl LatencyCounts {
    /// Adds the answers of another histogram.
    pub fn merge(&mut self, other: &Self) {
        let pairs = self.buckets.iter_mut().zip(&other.buckets);
        pairs.for_each(|(bucket, more)| *bucket += more);
        self.sum_us += other.sum_us;
    }

    pub fn total(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The sum of all times.
    pub const fn sum(&self) -> Duration {
        Duration::from_micros(self.sum_us)
    }

    /// The time that so many thousandths of the answers did not take longer than; `None` before the first answer.
    pub fn quantile(&self, thousandths: u64) -> Option<Duration> {
        let rank = (self.total() * thousandths).div_ceil(1000).max(1);
        let mut below = 0;
        let found = self.buckets.iter().position(|count| {
            below += count;
            below >= rank
        });
        found.map(|index| Duration::from_micros(limit_us(index)))
    }

    /// How many answers took less than a time, for the end of each octave.
    pub fn cumulative(&self) -> impl Iterator<Item = (Duration, u64)> {
        (0..=OCTAVES * STEPS).step_by(STEPS as usize).map(|last| {
            let last = last as usize;
            let below = self.buckets.iter().take(last + 1).sum();
            (Duration::from_micros(limit_us(last)), below)
        })
    }
}

fn index(us: u64) -> usize {
    let Some(octave) = us.checked_ilog2().and_then(|log| log.checked_sub(FIRST)) else {
        return 0;
    };
    if octave >= OCTAVES {
        return BUCKETS - 1;
    }
    let step = (us >> (octave + FIRST - 2)) % u64::from(STEPS);
    let index = u64::from(octave * STEPS) + step + 1;
    usize::try_from(index).unwrap_or(BUCKETS - 1)
}

/// All times in the bucket are shorter; those in the last one have no limit, and count as twice the longest other one.
fn limit_us(index: usize) -> u64 {
    let Some(above) = index.checked_sub(1) else {
        return 1 << FIRST;
    };
    let (octave, step) = (above / STEPS as usize, above % STEPS as usize);
    ((1 << octave) << FIRST) / 4 * (5 + step as u64)
}

impl Default for LatencyCounts {
    fn default() -> Self {
        Self {
            buckets: [0; BUCKETS],
            sum_us: 0,
        }
    }
}

impl Default for Latency {
    fn default() -> Self {
        Self {
            buckets: std::array::from_fn(|_| AtomicU64::new(0)),
            sum_us: AtomicU64::new(0),
        }
    }
}

impl fmt::Debug for Latency {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Latency({} answers)", self.counts().total())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_the_first_bucket_whose_limit_is_above_it() {
        for us in (0..1 << 12)
            .chain((0..64).map(|bit| 1 << bit))
            .chain([u64::MAX])
        {
            let index = index(us);
            assert!(index < BUCKETS, "{us}");
            assert!(us < limit_us(index) || index == BUCKETS - 1, "{us}");
            assert!(index == 0 || us >= limit_us(index - 1), "{us}");
        }
    }

    #[test]
    fn quantiles_are_at_most_a_quarter_too_large() {
        let latency = Latency::default();
        assert_eq!(latency.counts().quantile(500), None);
        for ms in 1..=1000 {
            latency.count(Duration::from_millis(ms));
        }
        let counts = latency.counts();
        assert_eq!(counts.total(), 1000);
        assert_eq!(counts.sum(), Duration::from_millis(500_500));
        for (thousandths, exact) in [(0, 1), (500, 500), (990, 990), (1000, 1000)] {
            let found = counts.quantile(thousandths).expect("there are answers");
            let exact = Duration::from_millis(exact);
            assert!(
                found > exact && found <= exact * 5 / 4,
                "{thousandths}: {found:?}"
            );
        }
        let (last, below) = counts.cumulative().last().expect("there are octaves");
        assert_eq!((last, below), (Duration::from_micros(1 << 27), 1000));
        let mut twice = LatencyCounts::default();
        twice.merge(&counts);
        twice.merge(&counts);
        assert_eq!((twice.total(), twice.sum()), (2000, counts.sum() * 2));
        assert_eq!(twice.quantile(500), counts.quantile(500));
        latency.reset();
        assert_eq!(latency.counts().total(), 0);
    }
}
