//! Monotonic and wall-clock time as plain values; code that needs the time gets it as an argument.

use core::ops::{Add, Sub};
pub use core::time::Duration;

/// A point on a monotonic clock, in nanoseconds since an origin that only the engine knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(u64);

impl Instant {
    /// Later than every instant a clock returns; the deadline of an endless wait.
    pub const FAR: Self = Self(u64::MAX);

    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to this instant, zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    /// Saturates at [`Instant::FAR`].
    fn add(self, duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    /// Saturates at the clock's origin.
    fn sub(self, duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_sub(nanos))
    }
}

/// Wall-clock time: seconds since 1970-01-01T00:00:00Z without leap seconds, and the nanoseconds of that second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixTime {
    pub seconds: i64,
    pub nanos: u32,
}

impl UnixTime {
    pub const fn from_seconds(seconds: i64) -> Self {
        Self { seconds, nanos: 0 }
    }

    pub const fn millis(self) -> u32 {
        self.nanos / 1_000_000
    }

    /// The time `after` later.
    #[must_use]
    pub fn after(self, time: Duration) -> Self {
        let nanos = self.nanos + time.subsec_nanos();
        let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        let carry = i64::from(nanos / NANOS_PER_SECOND);
        Self {
            seconds: self.seconds.saturating_add(seconds).saturating_add(carry),
            nanos: nanos % NANOS_PER_SECOND,
        }
    }
}

const NANOS_PER_SECOND: u32 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_clock_time_carries_its_seconds() {
        let check = |nanos, millis, expected| {
            let time = UnixTime { seconds: 7, nanos };
            let (seconds, nanos) = expected;
            let later = UnixTime { seconds, nanos };
            assert_eq!(time.after(Duration::from_millis(millis)), later);
        };
        check(999_999_999, 0, (7, 999_999_999));
        check(999_000_000, 1, (8, 0));
        check(999_999_999, 1999, (9, 998_999_999));
    }

    #[test]
    fn adding_to_the_far_future_stays_there() {
        assert_eq!(Instant::FAR + Duration::from_secs(1), Instant::FAR);
        assert_eq!(
            Instant::from_nanos(u64::MAX - 5) + Duration::from_nanos(10),
            Instant::FAR
        );
    }

    #[test]
    fn time_since_a_later_instant_is_zero() {
        let (early, late) = (Instant::from_nanos(10), Instant::from_nanos(30));
        assert_eq!(late.since(early), Duration::from_nanos(20));
        assert_eq!(early.since(late), Duration::ZERO);
    }
}
