//! Health checks as `health_check` and `match` describe them: when to probe, what an answer must be, and what follows
//! from passes and failures. The probes themselves are sent where requests are.

/// What an answer must be.
pub mod examination;

/// What gRPC's health service is asked, and answers.
pub mod grpc;

/// Passes and failures in a row.
pub mod verdict;

use mill_config::config::HealthCheck;
use mill_runtime::time::Duration;

/// How long to wait before the next probe of a server, after the one before has ended. `random` is any number.
pub fn delay(check: &HealthCheck, random: u64) -> Duration {
    check.interval + jitter(check, random)
}

/// The random part of it, which also delays the first probe.
pub fn jitter(check: &HealthCheck, random: u64) -> Duration {
    let most = u64::try_from(check.jitter.as_nanos()).unwrap_or(u64::MAX);
    Duration::from_nanos(random % most.saturating_add(1))
}

/// How much of an answer's content is looked at, in bytes: nginx's 256k.
pub const CONTENT_BYTES_MAX: usize = 256 * 1024;

/// How many probes of one worker are under way at most: each has a connection. The others wait for their turn.
pub const PROBES_AT_ONCE_MAX: u32 = 256;

#[cfg(test)]
mod tests;
