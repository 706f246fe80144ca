//! When a host's owner looks for frames: the trade of processor time against latency.

use mill_tcp::time::Duration;

/// When to look at the link, once there is nothing else to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polling {
    /// Sleep until frames come. Costs nothing while idle, and a wake-up for each burst.
    Interrupt,
    /// Go on looking for so long after the last work, then sleep until frames come.
    Adaptive(Duration),
    /// Between two looks sleep for so long, whatever comes.
    SleepSpin(Duration),
    /// Look all the time.
    Spin,
    /// Look so many times a second, whatever comes, as DragonFly's `kern.polling` does; at least once.
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

/// What `adaptive` and `sleep-spin` mean without a time. Onload's profile "balanced" has the same value.
pub const DEFAULT_SPIN: Duration = Duration::from_micros(50);
