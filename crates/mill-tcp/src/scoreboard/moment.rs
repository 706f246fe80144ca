//! A point in time in microseconds modulo 2^32, for round trips.

use crate::time::Instant;

/// Two of them can be compared while they are less than 35 minutes apart; nothing stays in flight so long, because
/// the connection gives up before (`Config::retries_max`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment(pub u32);

impl Moment {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "moments wrap, and are compared so"
    )]
    pub const fn of(now: Instant) -> Self {
        Self(now.as_micros() as u32)
    }

    /// Microseconds since `earlier`, zero if that is later.
    #[expect(clippy::cast_possible_wrap, reason = "the wrapping is the meaning")]
    pub const fn since(self, earlier: Self) -> u32 {
        let difference = self.0.wrapping_sub(earlier.0);
        if (difference as i32) < 0 {
            0
        } else {
            difference
        }
    }

    #[expect(clippy::cast_possible_wrap, reason = "the wrapping is the meaning")]
    pub const fn is_after(self, other: Self) -> bool {
        self.0.wrapping_sub(other.0) as i32 > 0
    }
}
