//! Whether settings let a connection stay open after an answer. What the client asks for is
//! [`ConnectionOption::persists`](crate::head::ConnectionOption::persists).

use core::time::Duration;

/// The relevant settings, and the connection's requests and age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// `keepalive_timeout` is not 0.
    pub is_enabled: bool,
    /// Requests on this connection, the current one included.
    pub requests: u64,
    /// `keepalive_requests`: at this many the connection is closed.
    pub requests_max: u64,
    /// Since the connection was accepted.
    pub age: Duration,
    /// `keepalive_time`: beyond this age the connection is closed.
    pub age_max: Duration,
}

impl KeepAlive {
    /// Whether the settings allow another request on the connection.
    #[inline]
    pub fn allows(&self) -> bool {
        self.is_enabled && self.requests < self.requests_max && self.age <= self.age_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_kept_up_to_its_number_of_requests_and_its_age() {
        let young = KeepAlive {
            is_enabled: true,
            requests: 1,
            requests_max: 1000,
            age: Duration::ZERO,
            age_max: Duration::from_secs(3600),
        };
        let check = |settings: KeepAlive, expected| {
            assert_eq!(settings.allows(), expected, "{settings:?}");
        };
        check(young, true);
        let is_enabled = false;
        check(
            KeepAlive {
                is_enabled,
                ..young
            },
            false,
        );
        for (requests, expected) in [(999, true), (1000, false), (1001, false)] {
            check(KeepAlive { requests, ..young }, expected);
        }
        for (nanoseconds, expected) in [(3_600_000_000_000, true), (3_600_000_000_001, false)] {
            let age = Duration::from_nanos(nanoseconds);
            check(KeepAlive { age, ..young }, expected);
        }
    }
}
