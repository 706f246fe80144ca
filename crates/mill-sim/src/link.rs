//! How bytes travel between two ends.

use crate::random::Random;
use mill_runtime::time::Duration;

/// The properties of one connection's way, the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// From one end to the other.
    pub delay: Duration,
    /// Each segment takes up to this much longer; segments never overtake each other.
    pub jitter: Duration,
    /// `None` takes no time to put bytes on the way.
    pub bytes_per_second: Option<u64>,
    /// Bytes that may be between the sender's `write` and the receiver's reading: the sender's buffer, the way
    /// and the receiver's buffer in one number. A receiver that does not read stalls the sender after this many.
    pub window_bytes: u64,
    pub segments: Segments,
}

/// How a stream of bytes is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segments {
    /// As long as possible, but no longer than this many bytes.
    UpTo(usize),
    /// Each of a random length from one byte to this many.
    Random(usize),
}

impl Link {
    /// A way that takes no time and carries Ethernet's segments.
    pub const IDEAL: Self = Self {
        delay: Duration::ZERO,
        jitter: Duration::ZERO,
        bytes_per_second: None,
        window_bytes: WINDOW_BYTES,
        segments: Segments::UpTo(SEGMENT_BYTES),
    };

    /// A way that takes time and is ideal otherwise.
    pub const fn delayed(delay: Duration) -> Self {
        let mut link = Self::IDEAL;
        link.delay = delay;
        link
    }

    /// A way that holds so many bytes and is ideal otherwise.
    pub const fn with_window(window_bytes: u64) -> Self {
        let mut link = Self::IDEAL;
        link.window_bytes = window_bytes;
        link
    }

    pub(crate) fn transmission_time(&self, len: usize) -> Duration {
        let Some(rate) = self.bytes_per_second else {
            return Duration::ZERO;
        };
        let nanos =
            u128::try_from(len).unwrap_or(u128::MAX) * 1_000_000_000 / u128::from(rate.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    pub(crate) fn jitter(&self, random: &mut Random) -> Duration {
        let most = u64::try_from(self.jitter.as_nanos()).unwrap_or(u64::MAX);
        // Without jitter no number is drawn, so that turning it on changes nothing else of a seed's world.
        Duration::from_nanos(if most == 0 { 0 } else { random.up_to(most) })
    }
}

impl Default for Link {
    fn default() -> Self {
        Self::IDEAL
    }
}

impl Segments {
    pub(crate) fn next_len_max(self, random: &mut Random) -> u64 {
        match self {
            Self::UpTo(most) => most.max(1) as u64,
            Self::Random(most) => 1 + random.up_to(most.max(1) as u64 - 1),
        }
    }
}

/// Bytes: the largest TCP payload in an Ethernet frame with no options (1500 - 20 - 20).
pub(crate) const SEGMENT_BYTES: usize = 1460;

/// Bytes: small enough that an ordinary test body stalls on it, large enough that an ordinary answer does not.
const WINDOW_BYTES: u64 = 65_536;
