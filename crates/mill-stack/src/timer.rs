//! The timer wheel of connections: a hierarchical wheel of ticks of a millisecond (Varghese and Lauck 1987).
//!
//! ```text
//! level 0   64 buckets of 1 tick        each level's bucket is as long as all buckets of the level below it;
//! level 1   64 buckets of 64 ticks      an entry lies at the level of the highest digit (base 64) in which its
//! …                                     time differs from now, and moves down when its bucket comes
//! level 5   64 buckets of 2^30 ticks
//! ```
//!
//! Entries are numbers (of slots) and lie in lists that run through one array, so that arming, disarming and expiring
//! never allocate. Each number has one entry at most.

use alloc::vec::Vec;
use mill_tcp::time::{Instant, Tick};

/// The wheel.
#[derive(Debug)]
pub struct Wheel {
    links: Vec<Link>,
    /// First entries of the buckets, level by level.
    heads: [[u32; BUCKETS]; LEVELS],
    /// A bit for each bucket that has entries.
    occupied: [u64; LEVELS],
    /// Everything before this tick has expired. Ticks here do not wrap; the lower 32 bits are those of `Tick`.
    now: u64,
    /// No bucket with entries begins before this tick.
    due_from: u64,
    count: usize,
}

impl Wheel {
    pub fn new(now: Instant) -> Self {
        Self {
            links: Vec::new(),
            heads: [[NONE; BUCKETS]; LEVELS],
            occupied: [0; LEVELS],
            now: now.as_millis(),
            due_from: u64::MAX,
            count: 0,
        }
    }

    /// Entries armed.
    pub const fn len(&self) -> usize {
        self.count
    }

    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// When entry `index` expires.
    #[inline]
    pub fn armed_at(&self, index: u32) -> Option<Tick> {
        let link = self.links.get(index as usize)?;
        (link.bucket != NO_BUCKET).then_some(link.at)
    }

    /// Lets entry `index` expire at `at`, or as soon as possible if that is past.
    pub fn arm(&mut self, index: u32, at: Tick) {
        self.disarm(index);
        let place = index as usize;
        if place >= self.links.len() {
            self.links.resize(place + 1, Link::DISARMED);
        }
        self.insert(index, at);
        self.count += 1;
    }

    /// As [`Wheel::arm`], but only if the entry would expire later or not at all: a caller that finds no timer due
    /// when an entry expires early arms it again. So most changes of a timer, which move it into the future, cost
    /// nothing.
    #[inline]
    pub fn arm_by(&mut self, index: u32, at: Tick) {
        match self.armed_at(index) {
            Some(armed) if armed.since(at) <= 0 => {}
            _ => self.arm(index, at),
        }
    }

    pub fn disarm(&mut self, index: u32) {
        if self.armed_at(index).is_some() {
            self.unlink(index);
            self.count -= 1;
        }
    }

    /// The next entry that is due at `now`, which is disarmed; `None` if there is none or `work` is used up. `work`
    /// goes down by one for each entry that expires or moves to a lower level.
    #[inline]
    pub fn expire(&mut self, now: Instant, work: &mut u32) -> Option<u32> {
        let now = now.as_millis();
        if now < self.due_from {
            self.now = self.now.max(now);
            return None;
        }
        self.expire_due(now, work)
    }

    fn expire_due(&mut self, now: u64, work: &mut u32) -> Option<u32> {
        while *work > 0 {
            let next = self.next_bucket();
            self.due_from = next.map_or(u64::MAX, |(_, begins)| begins);
            let Some((level, begins)) = next.filter(|(_, begins)| *begins <= now) else {
                self.now = self.now.max(now);
                return None;
            };
            self.now = self.now.max(begins);
            let bucket = digit(begins, level);
            let index = self.head(level, bucket);
            debug_assert_ne!(index, NONE, "an occupied bucket has an entry");
            *work -= 1;
            self.unlink(index);
            if level == 0 {
                self.count -= 1;
                return Some(index);
            }
            let at = self
                .links
                .get(index as usize)
                .map_or(Tick(0), |link| link.at);
            self.insert(index, at);
        }
        None
    }

    /// When `expire` has work next: exact within 64 ticks, else earlier than the entry.
    pub fn next_expiry(&self) -> Option<Instant> {
        let (_, begins) = self.next_bucket()?;
        Some(Instant::from_nanos(
            begins.max(self.now).saturating_mul(NANOS_PER_TICK),
        ))
    }

    /// The occupied bucket that comes next, and its first tick. Of two that begin together the longer one comes first:
    /// its entries move down before any of them expires.
    fn next_bucket(&self) -> Option<(usize, u64)> {
        let mut next: Option<(usize, u64)> = None;
        for (level, occupied) in self.occupied.iter().enumerate() {
            if *occupied == 0 {
                continue;
            }
            let current = digit(self.now, level);
            let ahead = occupied.rotate_right(u32::try_from(current).unwrap_or(0));
            let bucket = u64::from(ahead.trailing_zeros());
            let shift = level * DIGIT_BITS;
            let begins = ((self.now >> shift) + bucket) << shift;
            if next.is_none_or(|(_, soonest)| begins <= soonest) {
                next = Some((level, begins));
            }
        }
        next
    }

    fn insert(&mut self, index: u32, at: Tick) {
        let ahead = u64::try_from(at.since(tick_of(self.now))).unwrap_or(0);
        let when = self.now + ahead;
        let differs = 63 - ((self.now ^ when) | 1).leading_zeros() as usize;
        let level = (differs / DIGIT_BITS).min(LEVELS - 1);
        let bucket = digit(when, level);
        let shift = level * DIGIT_BITS;
        self.due_from = self.due_from.min((when >> shift) << shift);
        let head = self.head(level, bucket);
        if let Some(next) = self.links.get_mut(head as usize) {
            next.previous = index;
        }
        if let Some(link) = self.links.get_mut(index as usize) {
            *link = Link {
                at,
                previous: NONE,
                next: head,
                bucket: u16::try_from(level * BUCKETS + bucket).unwrap_or(NO_BUCKET),
            };
        }
        self.set_head(level, bucket, index);
    }

    fn unlink(&mut self, index: u32) {
        let Some(link) = self.links.get_mut(index as usize) else {
            return;
        };
        let Link {
            previous,
            next,
            bucket,
            ..
        } = *link;
        link.bucket = NO_BUCKET;
        let bucket = usize::from(bucket);
        match self.links.get_mut(previous as usize) {
            Some(link) => link.next = next,
            None => self.set_head(bucket / BUCKETS, bucket % BUCKETS, next),
        }
        if let Some(link) = self.links.get_mut(next as usize) {
            link.previous = previous;
        }
    }

    fn head(&self, level: usize, bucket: usize) -> u32 {
        let heads = self.heads.get(level);
        heads
            .and_then(|heads| heads.get(bucket))
            .copied()
            .unwrap_or(NONE)
    }

    fn set_head(&mut self, level: usize, bucket: usize, index: u32) {
        if let Some(head) = self
            .heads
            .get_mut(level)
            .and_then(|heads| heads.get_mut(bucket))
        {
            *head = index;
        }
        if let Some(occupied) = self.occupied.get_mut(level) {
            if index == NONE {
                *occupied &= !(1 << bucket);
            } else {
                *occupied |= 1 << bucket;
            }
        }
    }
}

/// An entry: 16 bytes.
#[derive(Clone, Copy, Debug)]
struct Link {
    at: Tick,
    previous: u32,
    next: u32,
    bucket: u16,
}

const _: () = assert!(size_of::<Link>() == 16);

impl Link {
    const DISARMED: Self = Self {
        at: Tick(0),
        previous: NONE,
        next: NONE,
        bucket: NO_BUCKET,
    };
}

/// Bytes of memory for each number that ever had an entry.
pub const ENTRY_BYTES: usize = size_of::<Link>();

/// The end of a list; no entry has this number.
const NONE: u32 = u32::MAX;

const NO_BUCKET: u16 = u16::MAX;

const DIGIT_BITS: usize = 6;
const BUCKETS: usize = 1 << DIGIT_BITS;

/// 64^6 ticks are 2 years; ticks can be compared over 24 days.
const LEVELS: usize = 6;

const NANOS_PER_TICK: u64 = 1_000_000;

#[expect(clippy::cast_possible_truncation, reason = "a digit has six bits")]
const fn digit(ticks: u64, level: usize) -> usize {
    ((ticks >> (level * DIGIT_BITS)) & (BUCKETS as u64 - 1)) as usize
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "ticks wrap, and are compared so"
)]
const fn tick_of(ticks: u64) -> Tick {
    Tick(ticks as u32)
}

#[cfg(test)]
mod tests;
