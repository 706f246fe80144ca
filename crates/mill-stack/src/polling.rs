//! When a host polls its link: the trade of processor time against latency.

use mill_tcp::time::Duration;

/// When to poll the link, once there is no other work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polling {
    /// Sleep until frames arrive. Costs nothing while idle, and a wake-up for each burst.
    Interrupt,
    /// Go on polling for so long after the last work, then sleep until frames arrive.
    Adaptive(Duration),
    /// Sleep for so long between two polls, even if frames arrive.
    SleepSpin(Duration),
    /// Poll all the time.
    Spin,
    /// Poll so many times a second, even if frames arrive, as DragonFly's `kern.polling` does; at least once.
    Rate(u32),
}

impl Polling {
    /// Whether the arrival of frames ends a sleep.
    pub const fn is_woken(self) -> bool {
        matches!(self, Self::Interrupt | Self::Adaptive(_))
    }
}

/// Sleeping after 50 µs without work: longer than the pauses of a busy peer, and too short to show in an idle process.
impl Default for Polling {
    fn default() -> Self {
        Self::Adaptive(DEFAULT_SPIN)
    }
}

/// The default time of `adaptive` and `sleep-spin`. Onload's profile "balanced" has the same value.
pub const DEFAULT_SPIN: Duration = Duration::from_micros(50);
