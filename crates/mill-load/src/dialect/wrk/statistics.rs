//! wrk's statistics: a counter per value, and the formulas of its columns.

/// The data of wrk's columns, which scripts see as `latency` and `requests`. Values are microseconds, or requests per
/// second.
pub trait Statistics {
    /// The least value, [`u64::MAX`] if there is none.
    fn min(&self) -> u64;

    /// The greatest value, zero if there is none.
    fn max(&self) -> u64;

    fn mean(&self) -> f64;

    fn stdev(&self) -> f64;

    /// The value below which `percent` of all values lie.
    fn percentile(&self, percent: f64) -> u64;

    /// How many different values there are (`#latency` in a script).
    fn distinct(&self) -> u64;

    /// The `index`-th of the different values in ascending order, from 0, and its count.
    fn nth(&self, index: u64) -> Option<(u64, u64)>;

    /// The share of values within one `stdev` of the `mean`, in percent; not a number if there are none.
    fn within_stdev(&self) -> f64;
}

/// A counter for each value below a limit. Memory is allocated in pages as values occur, so a thread only uses memory
/// for values that it has seen.
#[derive(Clone, Debug)]
pub struct Counters {
    limit: u64,
    pages: Vec<Option<Box<[u64]>>>,
    count: u64,
    min: u64,
    max: u64,
}

impl Counters {
    /// Counters of 0 to `max`.
    pub fn up_to(max: u64) -> Self {
        Self {
            limit: max.saturating_add(1),
            pages: Vec::new(),
            count: 0,
            min: u64::MAX,
            max: 0,
        }
    }

    /// Counts `value`; false if it is beyond the limit: wrk drops those. Allocates when a page is first used.
    pub fn record(&mut self, value: u64) -> bool {
        if value >= self.limit {
            return false;
        }
        self.add_at(value, 1);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        true
    }

    /// The number of values, those added by a correction included.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Adds the counts of another thread.
    pub fn add(&mut self, other: &Self) {
        for (value, count) in other.nonzero(0, other.max) {
            self.add_at(value, count);
        }
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// wrk's correction for requests that a waiting connection did not send: each value of at least twice `interval`
    /// also counts as one that is `interval` shorter, down to `interval`. Minimum and maximum are not changed, and
    /// values added below the minimum are in no sum, only in the count.
    pub fn correct(&mut self, interval: u64) {
        if interval == 0 {
            return;
        }
        let mut page = self.pages.len();
        while page > 0 {
            page -= 1;
            if self.pages.get(page).is_some_and(Option::is_some) {
                self.correct_page(page, interval);
            }
        }
    }

    /// Adds the counts of one page again, lower by `interval`. The pages above are done, so its counts are final.
    fn correct_page(&mut self, page: usize, interval: u64) {
        let first = page as u64 * PAGE as u64;
        for offset in (0..PAGE as u64).rev() {
            let value = first + offset;
            let Some(lower) = value.checked_sub(interval) else {
                return;
            };
            let count = self.at(value);
            if count > 0 && lower > interval {
                self.add_at(lower, count);
            }
        }
    }

    fn at(&self, value: u64) -> u64 {
        let (page, offset) = place(value);
        let page = self.pages.get(page).and_then(Option::as_ref);
        page.and_then(|page| page.get(offset)).copied().unwrap_or(0)
    }

    fn add_at(&mut self, value: u64, count: u64) {
        let (page, offset) = place(value);
        if page >= self.pages.len() {
            self.pages.resize(page + 1, None);
        }
        if let Some(slot) = self.pages.get_mut(page) {
            let page = slot.get_or_insert_with(|| vec![0; PAGE].into_boxed_slice());
            if let Some(counter) = page.get_mut(offset) {
                *counter += count;
                self.count += count;
            }
        }
    }

    /// Values from `low` to `high` that were counted, ascending.
    fn nonzero(&self, low: u64, high: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let pages = self.pages.iter().enumerate();
        pages
            .filter_map(|(number, page)| page.as_ref().map(|page| (number, page)))
            .flat_map(|(number, page)| {
                let first = number as u64 * PAGE as u64;
                (first..).zip(page.iter().copied())
            })
            .filter(move |(value, count)| *count > 0 && (low..=high).contains(value))
    }

    fn counted(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.nonzero(self.min, self.max)
    }
}

impl Statistics for Counters {
    fn min(&self) -> u64 {
        self.min
    }

    fn max(&self) -> u64 {
        self.max
    }

    fn mean(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let sum: u128 = self
            .counted()
            .map(|(value, count)| u128::from(value) * u128::from(count))
            .sum();
        sum as f64 / self.count as f64
    }

    fn stdev(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let mean = self.mean();
        let sum: f64 = self
            .counted()
            .map(|(value, count)| (value as f64 - mean).powi(2) * count as f64)
            .sum();
        (sum / (self.count - 1) as f64).sqrt()
    }

    fn percentile(&self, percent: f64) -> u64 {
        let rank = whole((percent / 100.0 * self.count as f64 + 0.5).round());
        let mut total = 0;
        for (value, count) in self.counted() {
            total += count;
            if total >= rank {
                return value;
            }
        }
        0
    }

    fn distinct(&self) -> u64 {
        self.counted().count() as u64
    }

    fn nth(&self, index: u64) -> Option<(u64, u64)> {
        self.counted().nth(usize::try_from(index).ok()?)
    }

    fn within_stdev(&self) -> f64 {
        let (mean, stdev) = (self.mean(), self.stdev());
        let within: u64 = self
            .counted()
            .filter(|(value, _)| (mean - stdev..=mean + stdev).contains(&(*value as f64)))
            .map(|(_, count)| count)
            .sum();
        within as f64 / self.count as f64 * 100.0
    }
}

/// The whole part of a number; negative numbers and NaN become zero.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast from float saturates, which is what is wanted"
)]
pub(crate) const fn whole(value: f64) -> u64 {
    value as u64
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "values are below the limit of a run's microseconds, pages of them fit a usize"
)]
const fn place(value: u64) -> (usize, usize) {
    let value = value as usize;
    (value / PAGE, value % PAGE)
}

/// Counters of a page: 32 KiB, about the latencies of one quiet server.
const PAGE: usize = 4096;

#[cfg(test)]
mod tests;
