//! How many events there were in the last time frame, and in its latest eighth.

use mill_runtime::time::Instant;

/// Counts of the eighths of the last time frame: Tempesta FW's FRANG_FREQ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    /// The number of the latest eighth since the clock's origin.
    newest: u64,
    /// Each at the rest of its number.
    counts: [u32; EIGHTHS],
}

/// What a window has counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    /// In the latest eighth.
    pub(crate) burst: u32,
    /// In all of them.
    pub(crate) total: u32,
}

const EIGHTHS: usize = 8;

impl Window {
    /// Counts an event; `frame_s` is the same at each call.
    pub(crate) fn add(&mut self, now: Instant, frame_s: u16) -> Counted {
        self.advance(now, frame_s);
        let place = self.place();
        if let Some(count) = self.counts.get_mut(place) {
            *count = count.saturating_add(1);
        }
        self.counted()
    }

    /// What there was up to now.
    pub(crate) fn look(&mut self, now: Instant, frame_s: u16) -> Counted {
        self.advance(now, frame_s);
        self.counted()
    }

    /// Forgets what is older than a time frame. Time that goes back counts as the latest.
    fn advance(&mut self, now: Instant, frame_s: u16) {
        let eighth_ns = u64::from(frame_s.max(1)) * NANOS_PER_SECOND / EIGHTHS as u64;
        let number = now.as_nanos() / eighth_ns;
        if number <= self.newest {
            return;
        }
        if number - self.newest >= EIGHTHS as u64 {
            self.counts = [0; EIGHTHS];
            self.newest = number;
        }
        while self.newest < number {
            self.newest += 1;
            let place = self.place();
            if let Some(count) = self.counts.get_mut(place) {
                *count = 0;
            }
        }
    }

    fn counted(&self) -> Counted {
        let burst = self.counts.get(self.place()).copied().unwrap_or(0);
        let sum = self
            .counts
            .iter()
            .fold(0_u32, |sum, count| sum.saturating_add(*count));
        Counted { burst, total: sum }
    }

    fn place(&self) -> usize {
        usize::try_from(self.newest % EIGHTHS as u64).expect("it is less than eight")
    }
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn an_event_counts_for_its_eighth_and_for_the_time_frame() {
        let mut window = Window::default();
        let mut check = |ms: u64, burst: u32, total: u32| {
            assert_eq!(window.add(at(ms), 1), Counted { burst, total }, "{ms} ms");
        };
        check(10_000, 1, 1);
        check(10_124, 2, 2);
        check(10_125, 1, 3);
        check(10_999, 1, 4);
        // The eighth from 10 s to 10.125 s is over, and so are its two events.
        check(11_000, 1, 3);
        check(11_125, 1, 3);
        // A worker whose turn began earlier counts in the latest eighth.
        check(11_000, 2, 4);
        check(99_000, 1, 1);
    }

    #[test]
    fn a_longer_time_frame_has_longer_eighths() {
        let mut window = Window::default();
        assert_eq!(window.add(at(80_000), 8), Counted { burst: 1, total: 1 });
        assert_eq!(window.add(at(80_999), 8), Counted { burst: 2, total: 2 });
        assert_eq!(window.add(at(81_000), 8), Counted { burst: 1, total: 3 });
        assert_eq!(window.look(at(87_999), 8), Counted { burst: 0, total: 3 });
        assert_eq!(window.look(at(88_000), 8), Counted { burst: 0, total: 1 });
    }

    #[test]
    fn counts_never_overflow() {
        let mut window = Window {
            newest: 8,
            counts: [u32::MAX; EIGHTHS],
        };
        let most = Counted {
            burst: u32::MAX,
            total: u32::MAX,
        };
        assert_eq!(window.add(at(1000), 1), most);
    }
}
