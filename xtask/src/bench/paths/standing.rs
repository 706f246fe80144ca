//! How much waits before the wire, by time.

use std::time::Duration;

/// What waited at each tick since the beginning.
#[derive(Debug, Default)]
pub(super) struct Standing {
    begun: Duration,
    bytes: Vec<u64>,
}

/// What waited in a while, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Queued {
    pub(super) mean: f64,
    pub(super) p95: f64,
}

/// Between two looks: a tenth of the shortest queue.
const TICK: Duration = Duration::from_millis(1);

impl Standing {
    pub(super) const fn since(begun: Duration) -> Self {
        Self {
            begun,
            bytes: Vec::new(),
        }
    }

    /// Asks for all ticks that have passed, before the queue changes.
    pub(super) fn pass(&mut self, now: Duration, backlog: impl Fn(Duration) -> u64) {
        loop {
            let count = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
            let tick = self.begun + TICK * count;
            if tick > now {
                return;
            }
            self.bytes.push(backlog(tick));
        }
    }

    /// What waited between two times.
    pub(super) fn between(&self, from: Duration, to: Duration) -> Queued {
        let place = |at: Duration| {
            let ticks = at.saturating_sub(self.begun).as_nanos() / TICK.as_nanos();
            usize::try_from(ticks)
                .unwrap_or(usize::MAX)
                .min(self.bytes.len())
        };
        let mut bytes = self.bytes[place(from)..place(to).max(place(from))].to_vec();
        bytes.sort_unstable();
        let Some(last) = bytes.len().checked_sub(1) else {
            return Queued::default();
        };
        let sum: u64 = bytes.iter().sum();
        Queued {
            mean: sum as f64 / bytes.len() as f64,
            p95: bytes[last * 95 / 100] as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn each_tick_is_asked_for_once_and_at_its_time() {
        let mut standing = Standing::since(ms(100));
        standing.pass(ms(99), |_| panic!("before the beginning"));
        let nanos = |at: Duration| u64::try_from(at.as_nanos()).unwrap();
        standing.pass(ms(102), nanos);
        standing.pass(ms(102), |_| panic!("asked before"));
        standing.pass(Duration::from_micros(103_900), nanos);
        let expected = [100, 101, 102, 103].map(|at| at * 1_000_000);
        assert_eq!(standing.bytes, expected);
    }

    #[test]
    fn a_while_has_a_mean_and_what_95_of_100_looks_do_not_exceed() {
        let mut standing = Standing::since(ms(0));
        standing.pass(ms(200), |at| u64::try_from(at.as_millis()).unwrap());
        // 100 to 199.
        let queued = standing.between(ms(100), ms(200));
        assert_eq!((queued.mean, queued.p95), (149.5, 194.0));
        assert_eq!(standing.between(ms(50), ms(50)), Queued::default());
        assert_eq!(standing.between(ms(900), ms(999)), Queued::default());
    }
}
