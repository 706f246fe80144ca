//! Wall-clock time at the price of an addition: asked of the system a thousand times a second at the most.

use core::cell::Cell;
use mill_runtime::time::{Duration, Instant, UnixTime};
use mill_sys::clock;

/// The wall-clock time when it was asked for last.
#[derive(Debug, Default)]
pub(crate) struct WallClock {
    asked: Cell<Option<(Instant, Duration)>>,
}

impl WallClock {
    /// `now`, and the wall-clock time then.
    pub(crate) fn clock(&self, now: Instant) -> (Instant, UnixTime) {
        (now, self.at(now))
    }

    /// The wall-clock time at `now`. A clock that somebody has set is noticed a moment later.
    fn at(&self, now: Instant) -> UnixTime {
        let wall_clock = match self.asked.get() {
            Some((at, wall_clock)) if now.since(at) < VALID => wall_clock + now.since(at),
            _ => {
                let wall_clock = clock::realtime();
                self.asked.set(Some((now, wall_clock)));
                wall_clock
            }
        };
        UnixTime {
            seconds: i64::try_from(wall_clock.as_secs()).unwrap_or(i64::MAX),
            nanos: wall_clock.subsec_nanos(),
        }
    }
}

/// How long an answer of the system is good for: the finest that logs and fields show.
const VALID: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_between_two_questions() {
        let wall_clock = WallClock::default();
        let nanos =
            |time: UnixTime| i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos);
        let at = |micros: u64| Instant::from_nanos(1_000_000_000 + micros * 1000);
        let first = nanos(wall_clock.at(at(0)));
        assert_eq!(nanos(wall_clock.at(at(0))), first);
        assert_eq!(nanos(wall_clock.at(at(999))), first + 999_000);
        // What the system says, which has hardly gone on meanwhile.
        let asked = nanos(wall_clock.at(at(1000)));
        assert!(asked >= first && asked < first + 60_000_000_000, "{asked}");
    }
}
