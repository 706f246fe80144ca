//! Answers by their status, which several workers may count.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A counter for each status from 100 to 599.
pub struct StatusCounts([AtomicU64; STATUSES]);

const FIRST: u16 = 100;
const STATUSES: usize = 500;

impl StatusCounts {
    /// One relaxed addition; another status is not counted.
    pub fn count(&self, status: u16) {
        let index = usize::from(status.wrapping_sub(FIRST));
        if let Some(counter) = self.0.get(index) {
            counter.fetch_add(1, Relaxed);
        }
    }

    /// Each status that was counted, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u64)> {
        let counts = self.0.iter().map(|counter| counter.load(Relaxed));
        (FIRST..).zip(counts).filter(|(_, count)| *count != 0)
    }

    /// 1xx to 5xx.
    pub fn by_class(&self) -> [u64; 5] {
        let mut classes = [0; 5];
        for (status, count) in self.iter() {
            classes[usize::from(status / 100 - 1)] += count;
        }
        classes
    }

    /// Counts from zero again.
    pub fn reset(&self) {
        self.0.iter().for_each(|counter| counter.store(0, Relaxed));
    }
}

impl Default for StatusCounts {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl fmt::Debug for StatusCounts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_counted_by_themselves_and_by_class() {
        let counts = StatusCounts::default();
        for status in [0, 99, 100, 200, 200, 204, 404, 599, 600, u16::MAX] {
            counts.count(status);
        }
        let expected = [(100, 1), (200, 2), (204, 1), (404, 1), (599, 1)];
        assert_eq!(counts.iter().collect::<Vec<_>>(), expected);
        assert_eq!(counts.by_class(), [1, 3, 0, 1, 1]);
        counts.reset();
        assert_eq!(counts.iter().count(), 0);
    }
}
