//! Whether a connection stays open after an answer, RFC 9112 9.3 and nginx's settings.

use crate::h1::head::ConnectionOption;
use crate::version::Version;

/// The settings and the connection's past, as far as they matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// `keepalive_timeout` is not 0.
    pub is_enabled: bool,
    /// Requests on this connection, the current one included.
    pub requests: u64,
    /// `keepalive_requests`: at this many the connection is closed.
    pub requests_max: u64,
    /// Milliseconds since the connection was accepted.
    pub age_ms: u64,
    /// `keepalive_time`: beyond this age the connection is closed.
    pub age_ms_max: u64,
}

impl KeepAlive {
    /// Keeps the connection for another request. An HTTP/1.0 client must ask for it.
    pub const fn keeps(&self, version: Version, option: ConnectionOption) -> bool {
        let asked = match option {
            ConnectionOption::Close => false,
            ConnectionOption::KeepAlive => true,
            ConnectionOption::Unstated => matches!(version, Version::Http11),
        };
        asked
            && self.is_enabled
            && self.requests < self.requests_max
            && self.age_ms <= self.age_ms_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ConnectionOption::{Close, Unstated};

    #[test]
    fn the_decision_follows_version_option_and_settings() {
        let young = KeepAlive {
            is_enabled: true,
            requests: 1,
            requests_max: 1000,
            age_ms: 0,
            age_ms_max: 3_600_000,
        };
        let check = |settings: KeepAlive, version, option, expected| {
            assert_eq!(settings.keeps(version, option), expected, "{settings:?}");
        };
        check(young, Version::Http11, Unstated, true);
        check(young, Version::Http11, Close, false);
        check(young, Version::Http10, Unstated, false);
        check(young, Version::Http10, ConnectionOption::KeepAlive, true);
        check(
            KeepAlive {
                is_enabled: false,
                ..young
            },
            Version::Http11,
            Unstated,
            false,
        );
        check(
            KeepAlive {
                requests: 999,
                ..young
            },
            Version::Http11,
            Unstated,
            true,
        );
        check(
            KeepAlive {
                requests: 1000,
                ..young
            },
            Version::Http11,
            Unstated,
            false,
        );
        check(
            KeepAlive {
                age_ms: 3_600_000,
                ..young
            },
            Version::Http11,
            Unstated,
            true,
        );
        check(
            KeepAlive {
                age_ms: 3_600_001,
                ..young
            },
            Version::Http11,
            Unstated,
            false,
        );
    }
}
