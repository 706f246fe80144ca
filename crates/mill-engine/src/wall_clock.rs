//! Wall-clock time at the cost of an addition: read from the system at most a thousand times a second.

use core::cell::Cell;
use mill_runtime::time::{Duration, Instant, UnixTime};
use mill_sys::clock;

/// The wall-clock time at the last reading.
#[derive(Debug, Default)]
pub(crate) struct WallClock {
    asked: Cell<Option<(Instant, Duration)>>,
}

impl WallClock {
    /// `now`, and the wall-clock time then.
    pub(crate) fn clock(&self, now: Instant) -> (Instant, UnixTime) {
        (now, self.at(now))
    }

    /// The wall-clock time at `now`. If the clock is set, that is noticed within a millisecond.
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

/// How long a reading is valid: logs and header fields show no finer time.
const VALID: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_advances_between_two_readings() {
        let wall_clock = WallClock::default();
        let nanos =
            |time: UnixTime| i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos);
        let at = |micros: u64| Instant::from_nanos(1_000_000_000 + micros * 1000);
        let first = nanos(wall_clock.at(at(0)));
        assert_eq!(nanos(wall_clock.at(at(0))), first);
        assert_eq!(nanos(wall_clock.at(at(999))), first + 999_000);
        // The system's time, which has hardly advanced meanwhile.
        let asked = nanos(wall_clock.at(at(1000)));
        assert!(asked >= first && asked < first + 60_000_000_000, "{asked}");
    }
}
