//! A worker's figures, readable from other threads.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::ServerCounters;

/// Where one worker shows its counters to the other threads.
///
/// Only that worker calls [`Published::publish`], so a plain store of each figure is enough: there
/// is never a second writer whose addition could be lost. Each figure is exact as of some turn of
/// the worker. Two figures read together may stem from two neighbouring turns, as they may in
/// nginx's shared statistics.
///
/// Aligned to two cache lines, because the processor fetches lines in pairs: no worker's stores
/// slow down another's.
#[derive(Debug)]
#[repr(align(128))]
pub struct Published {
    values: [AtomicU64; ServerCounters::COUNT],
}

impl Published {
    /// All figures zero.
    pub const fn new() -> Self {
        Self {
            values: [const { AtomicU64::new(0) }; ServerCounters::COUNT],
        }
    }

    /// Shows `counters` to the other threads. Costs one store a figure; no barrier, no allocation.
    pub fn publish(&self, counters: &ServerCounters) {
        for (shown, value) in self.values.iter().zip(counters.values()) {
            shown.store(value, Ordering::Relaxed);
        }
    }

    /// The figures published last.
    pub fn read(&self) -> ServerCounters {
        ServerCounters::from_values(
            self.values
                .each_ref()
                .map(|shown| shown.load(Ordering::Relaxed)),
        )
    }
}

impl Default for Published {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::Published;
    use crate::ServerCounters;

    #[test]
    fn nothing_published_reads_as_zero() {
        assert_eq!(Published::new().read(), ServerCounters::default());
    }

    #[test]
    fn what_was_published_last_is_read_in_every_field() {
        let published = Published::new();
        let mut figure = 0;
        let distinct = ServerCounters::from_values([0; ServerCounters::COUNT].map(|_| {
            figure += 1;
            figure
        }));
        published.publish(&distinct);
        assert_eq!(published.read(), distinct);
        published.publish(&ServerCounters::default());
        assert_eq!(published.read(), ServerCounters::default());
    }

    #[test]
    fn a_reader_on_another_thread_never_sees_a_counter_fall() {
        const TURNS: u64 = 10_000;
        let published = Published::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for requests in 1..=TURNS {
                    published.publish(&ServerCounters {
                        requests,
                        ..Default::default()
                    });
                }
            });
            let mut seen = 0;
            while seen < TURNS {
                let now = published.read().requests;
                assert!(now >= seen, "{now} after {seen}");
                seen = now;
            }
        });
    }

    #[test]
    fn the_figures_of_all_workers_add_up() {
        let workers = [Published::new(), Published::new(), Published::new()];
        for (requests, worker) in [1, 10, 100].into_iter().zip(&workers) {
            worker.publish(&ServerCounters {
                requests,
                ..Default::default()
            });
        }
        let sum: ServerCounters = workers.iter().map(Published::read).sum();
        assert_eq!(
            sum,
            ServerCounters {
                requests: 111,
                ..Default::default()
            }
        );
    }

    #[test]
    fn two_workers_never_share_a_pair_of_cache_lines() {
        assert_eq!(align_of::<Published>(), 128);
        assert_eq!(size_of::<Published>() % 128, 0);
    }
}
