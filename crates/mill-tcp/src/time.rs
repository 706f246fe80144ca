//! Monotonic time, and the 32-bit ticks that timers are kept in.

use core::ops::{Add, Sub};
pub use core::time::Duration;

/// A point on a monotonic clock, in nanoseconds since an origin that only the caller knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(u64);

impl Instant {
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// The time from `earlier` to this instant, zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The tick that has begun last.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "ticks wrap, and are compared so"
    )]
    pub const fn tick(self) -> Tick {
        Tick(self.as_millis() as u32)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_sub(nanos))
    }
}

/// A point in time in milliseconds modulo 2^32: two of them can be compared while less than 24 days apart, which
/// all timers of TCP are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tick(pub u32);

impl Tick {
    /// Milliseconds from `earlier` to this, negative if it is before.
    #[expect(clippy::cast_possible_wrap, reason = "the wrapping is the meaning")]
    pub const fn since(self, earlier: Self) -> i32 {
        self.0.wrapping_sub(earlier.0) as i32
    }

    /// The first tick that lies `duration` or more ahead; at least one, at most 2^30 ticks.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        // Not by `as_nanos`, whose 128 bits are slow to divide.
        let below_second = duration.subsec_nanos().div_ceil(1_000_000);
        let millis = duration
            .as_secs()
            .saturating_mul(1_000)
            .saturating_add(below_second.into())
            .clamp(1, 1 << 30);
        Self(
            self.0
                .wrapping_add(u32::try_from(millis).unwrap_or(1 << 30)),
        )
    }

    /// Whether this has come at `now`.
    pub const fn is_due(self, now: Self) -> bool {
        now.since(self) >= 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_is_due_from_its_time_on_also_round_the_end_of_the_numbers() {
        let now = Tick(u32::MAX);
        let at = now.after(Duration::from_micros(1500));
        assert_eq!(at, Tick(1));
        assert!(!at.is_due(now) && !at.is_due(Tick(0)));
        assert!(at.is_due(Tick(1)) && at.is_due(Tick(100)));
        assert_eq!(at.since(now), 2);
        assert_eq!(now.after(Duration::ZERO), Tick(0));
        assert_eq!(
            Tick(5).after(Duration::from_nanos(1_999_000_001)),
            Tick(2005)
        );
        assert_eq!(Tick(5).after(Duration::MAX), Tick(5 + (1 << 30)));
    }

    #[test]
    fn instants_saturate() {
        let early = Instant::from_nanos(5);
        assert_eq!(
            (early + Duration::from_nanos(3)).since(early),
            Duration::from_nanos(3)
        );
        assert_eq!(early.since(early + Duration::from_secs(1)), Duration::ZERO);
        assert_eq!(early - Duration::from_secs(1), Instant::from_nanos(0));
        assert_eq!(Instant::from_nanos(2_999_999).tick(), Tick(2));
    }
}
