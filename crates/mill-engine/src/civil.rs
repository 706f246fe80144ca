//! Civil time at the price of an addition: asked of the system a thousand times a second at the most.

use core::cell::Cell;
use mill_runtime::time::{Duration, Instant, UnixTime};
use mill_sys::clock;

/// The civil time when it was asked for last.
#[derive(Debug, Default)]
pub(crate) struct Civil {
    asked: Cell<Option<(Instant, Duration)>>,
}

impl Civil {
    /// `now`, and the civil time then.
    pub(crate) fn clock(&self, now: Instant) -> (Instant, UnixTime) {
        (now, self.at(now))
    }

    /// The civil time at `now`. A clock that somebody has set is noticed a moment later.
    fn at(&self, now: Instant) -> UnixTime {
        let civil = match self.asked.get() {
            Some((at, civil)) if now.since(at) < VALID => civil + now.since(at),
            _ => {
                let civil = clock::realtime();
                self.asked.set(Some((now, civil)));
                civil
            }
        };
        UnixTime {
            seconds: i64::try_from(civil.as_secs()).unwrap_or(i64::MAX),
            nanos: civil.subsec_nanos(),
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
        let civil = Civil::default();
        let nanos =
            |time: UnixTime| i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos);
        let at = |micros: u64| Instant::from_nanos(1_000_000_000 + micros * 1000);
        let first = nanos(civil.at(at(0)));
        assert_eq!(nanos(civil.at(at(0))), first);
        assert_eq!(nanos(civil.at(at(999))), first + 999_000);
        // What the system says, which has hardly gone on meanwhile.
        let asked = nanos(civil.at(at(1000)));
        assert!(asked >= first && asked < first + 60_000_000_000, "{asked}");
    }
}
