//! What a wire does to frames: one direction, as options.

pub use super::router::{Router, Says};
use crate::random::Random;
use mill_runtime::time::{Duration, Instant};

/// One direction of a cable. What has several causes happens in the order of the fields: a frame that finds the queue
/// full is not lost a second time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wire {
    /// Nothing gets through: a partition if both directions are cut, a one-way failure if one is.
    pub cut: bool,
    /// IP packets longer than this are dropped by a router at the beginning of the wire; `None` carries everything.
    pub mtu: Option<u16>,
    /// What that router says of it.
    pub router: Router,
    /// How fast frames leave the queue before the wire; `None` takes no time, and has no queue.
    pub bits_per_second: Option<u64>,
    /// Bytes that may wait for the wire; a frame beyond them is dropped.
    pub queue_bytes: u64,
    /// From so many waiting bytes on, frames that say they are capable of it are marked instead of being dropped early
    /// (RFC 3168); `None` never marks.
    pub mark_bytes: Option<u64>,
    pub loss: Loss,
    /// Frames in a million with flipped bits.
    pub corrupt_per_million: u32,
    /// Frames in a million that arrive twice.
    pub duplicate_per_million: u32,
    /// From one end to the other.
    pub delay: Duration,
    /// Each frame takes up to this much longer; without overtaking another.
    pub jitter: Duration,
    /// Frames in a million that others overtake …
    pub reorder_per_million: u32,
    /// … because they take up to this much longer.
    pub reorder_delay: Duration,
}

/// Which frames are lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    Never,
    /// Each frame for itself.
    Random {
        per_million: u32,
    },
    /// Gilbert and Elliott's model: the wire is good or bad, changes between the two with a frame's probability, and
    /// loses frames while it is bad. What made it bad passes also while no frame is sent: after a tenth of a second without
    /// a frame it is good again, or retransmissions ever farther apart would all be part of one burst.
    Bursts {
        good_to_bad_per_million: u32,
        bad_to_good_per_million: u32,
        /// While bad.
        lost_per_million: u32,
    },
    /// Exactly these, counted from 0 since the wire was set.
    Listed(&'static [u64]),
}

impl Wire {
    /// Takes no time and loses nothing.
    pub const IDEAL: Self = Self {
        cut: false,
        mtu: None,
        router: Router::TRUTHFUL,
        bits_per_second: None,
        queue_bytes: u64::MAX,
        mark_bytes: None,
        loss: Loss::Never,
        corrupt_per_million: 0,
        duplicate_per_million: 0,
        delay: Duration::ZERO,
        jitter: Duration::ZERO,
        reorder_per_million: 0,
        reorder_delay: Duration::ZERO,
    };

    /// As [`Wire::IDEAL`], with a delay.
    pub const fn delayed(delay: Duration) -> Self {
        Self {
            delay,
            ..Self::IDEAL
        }
    }

    /// Whether every frame arrives once, intact, and in order, as long as the queue has room.
    pub fn is_faithful(&self) -> bool {
        !self.cut
            && self.mtu.is_none()
            && self.router.slanders_per_million == 0
            && self.loss == Loss::Never
            && self.corrupt_per_million == 0
            && self.duplicate_per_million == 0
            && self.reorder_per_million == 0
    }

    pub(super) fn transmission_time(&self, len: usize) -> Duration {
        let Some(rate) = self.bits_per_second else {
            return Duration::ZERO;
        };
        let bits = len as u128 * 8;
        let nanos = bits * NANOS_PER_SECOND / u128::from(rate.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How many bytes leave the queue in this time.
    pub(super) fn bytes_in(&self, time: Duration) -> u64 {
        let bits = u128::from(self.bits_per_second.unwrap_or(0)) * time.as_nanos();
        u64::try_from(bits / 8 / NANOS_PER_SECOND).unwrap_or(u64::MAX)
    }
}

impl Default for Wire {
    fn default() -> Self {
        Self::IDEAL
    }
}

/// A loss model and where it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossState {
    is_bad: bool,
    count: u64,
    last_at: Instant,
}

impl LossState {
    pub(super) const fn new() -> Self {
        Self {
            is_bad: false,
            count: 0,
            last_at: Instant::from_nanos(0),
        }
    }

    /// Whether the next frame is lost. Draws no number where none is needed, so that adding a fault to a world changes
    /// nothing before the fault.
    pub(super) fn loses_next(&mut self, loss: Loss, now: Instant, random: &mut Random) -> bool {
        let number = self.count;
        self.count += 1;
        self.is_bad &= now.since(self.last_at) < BURST_PAUSE;
        self.last_at = now;
        match loss {
            Loss::Never => false,
            Loss::Random { per_million } => random.happens(per_million),
            Loss::Listed(numbers) => numbers.contains(&number),
            Loss::Bursts {
                good_to_bad_per_million,
                bad_to_good_per_million,
                lost_per_million,
            } => {
                let leaves = if self.is_bad {
                    bad_to_good_per_million
                } else {
                    good_to_bad_per_million
                };
                self.is_bad ^= random.happens(leaves);
                self.is_bad && random.happens(lost_per_million)
            }
        }
    }
}

/// Time without frames after which a burst of losses is over: less than any retransmission timeout.
const BURST_PAUSE: Duration = Duration::from_millis(100);

const NANOS_PER_SECOND: u128 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of 100 000 frames are lost, and the longest run of them.
    fn check(loss: Loss) -> (usize, usize) {
        let (mut random, mut state) = (Random::new(3), LossState::new());
        let lost: Vec<bool> = (0..100_000)
            .map(|_| state.loses_next(loss, Instant::from_nanos(0), &mut random))
            .collect();
        let longest = lost.split(|lost| !lost).map(<[bool]>::len).max();
        (
            lost.iter().filter(|lost| **lost).count(),
            longest.unwrap_or(0),
        )
    }

    #[test]
    fn loss_is_as_frequent_and_as_bursty_as_it_says() {
        assert_eq!(check(Loss::Never), (0, 0));
        assert_eq!(check(Loss::Listed(&[3, 4, 7])), (3, 2));
        let (count, run) = check(Loss::Random {
            per_million: 20_000,
        });
        assert!((1_800..2_200).contains(&count) && run <= 4, "{count} {run}");
        // A fifth of the time is bad, and a bad time lasts twenty frames.
        let (count, run) = check(Loss::Bursts {
            good_to_bad_per_million: 12_500,
            bad_to_good_per_million: 50_000,
            lost_per_million: 1_000_000,
        });
        assert!(
            (17_000..23_000).contains(&count) && run > 50,
            "{count} {run}"
        );
    }

    #[test]
    fn a_rate_takes_time_for_each_byte() {
        let wire = Wire {
            bits_per_second: Some(8_000_000),
            ..Wire::IDEAL
        };
        assert_eq!(wire.transmission_time(1500), Duration::from_micros(1500));
        assert_eq!(wire.bytes_in(Duration::from_millis(1)), 1000);
        assert_eq!(Wire::IDEAL.transmission_time(1500), Duration::ZERO);
    }
}
