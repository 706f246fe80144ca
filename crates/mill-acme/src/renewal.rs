//! When a certificate is replaced: at two thirds of its life, and later and later again while that fails.

use crate::chain::Validity;
use std::time::Duration;

impl Validity {
    /// When the next one is ordered, in seconds since 1970.
    pub fn renewal(&self) -> i64 {
        let life = self.not_after.saturating_sub(self.not_before).max(0);
        self.not_before.saturating_add(life - life / 3)
    }
}

/// How long to wait after this many failures in a row, at least as long as the authority says.
pub fn pause(failures: u32, retry_after: Option<Duration>) -> Duration {
    let doubled = PAUSE_MIN.saturating_mul(1 << failures.saturating_sub(1).min(16));
    doubled
        .min(PAUSE_MAX)
        .max(retry_after.unwrap_or_default().min(RETRY_AFTER_MAX))
}

/// The first pause, which is doubled until the longest one.
const PAUSE_MIN: Duration = Duration::from_secs(30);
const PAUSE_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Authorities limit orders by the week.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(8 * 24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::pause;
    use crate::chain::Validity;
    use std::time::Duration;

    #[test]
    fn a_certificate_is_replaced_at_two_thirds_of_its_life() {
        let check = |not_before, not_after, renewal| {
            let validity = Validity {
                not_before,
                not_after,
            };
            assert_eq!(validity.renewal(), renewal);
        };
        check(1000, 1090, 1060);
        check(0, 90 * 86_400, 60 * 86_400);
        check(10, 10, 10);
        check(10, 5, 10);
    }

    #[test]
    fn pauses_grow_up_to_a_day_or_to_what_the_authority_says() {
        let seconds = |failures, after: Option<u64>| {
            pause(failures, after.map(Duration::from_secs)).as_secs()
        };
        assert_eq!(seconds(1, None), 30);
        assert_eq!(seconds(2, None), 60);
        assert_eq!(seconds(11, None), 30 * 1024);
        assert_eq!(seconds(13, None), 86_400);
        assert_eq!(seconds(u32::MAX, None), 86_400);
        assert_eq!(seconds(1, Some(3600)), 3600);
        assert_eq!(seconds(1, Some(5)), 30);
        assert_eq!(seconds(1, Some(u64::MAX)), 8 * 86_400);
    }
}
