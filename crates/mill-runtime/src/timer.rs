//! The timer wheel: when to poll a task at the latest.
//!
//! Four levels of 64 slots; a slot of level n spans 64^n ticks of 1 ms, so the wheel reaches 4.6 hours ahead
//! and what lies further comes due at its end, early, to be armed again.
//!
//! ```text
//! level 0   |1ms|1ms|…64…|
//! level 1   |   64 ms    |   64 ms    |…
//! level 2   |  4.1 s …
//! level 3   |  4.4 min …
//! ```
//!
//! (Varghese and Lauck, "Hashed and Hierarchical Timing Wheels", SOSP 1987, scheme 7.)
//!
//! Entries are numbers of slots in [`crate::tasks::Tasks`], and lie in lists that run through one array. Each slot
//! has one entry at most, however many tasks have used it: so the wheel's memory follows how many tasks live at once,
//! not how many there have been, however far ahead their deadlines were.

use crate::time::Instant;
use alloc::vec::Vec;

/// The unit of the wheel, in nanoseconds.
pub const TICK_NANOS: u64 = 1_000_000;

const LEVELS: usize = 4;
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
const REACH_TICKS: u64 = 1 << (SLOT_BITS * 4);
const _: () = assert!(REACH_TICKS == (SLOTS * SLOTS * SLOTS * SLOTS) as u64 && LEVELS == 4);

/// How far to shift a tick so that one slot of each level is one.
const SHIFTS: [u32; LEVELS] = [0, SLOT_BITS, 2 * SLOT_BITS, 3 * SLOT_BITS];

/// An entry never expires early, unless it lies beyond the wheel's reach, and late by less than one tick plus the turn
/// it falls into.
#[derive(Debug)]
pub struct TimerWheel {
    /// By number.
    links: Vec<Link>,
    slots: [[List; SLOTS]; LEVELS],
    /// Bit n of level l: slot n of level l has entries.
    occupied: [u64; LEVELS],
    /// All ticks before this one have expired.
    tick: u64,
    count: usize,
}

/// A number's entry, if it has one.
#[derive(Clone, Copy, Debug)]
struct Link {
    /// The tick at which it is due, modulo 2^32; it lies less than the wheel's reach ahead.
    due: u32,
    previous: u32,
    next: u32,
    /// Which list it is in, level by level; `NO_SLOT` without an entry.
    slot: u16,
}
const _: () = assert!(size_of::<Link>() == 16);

impl Link {
    const DISARMED: Self = Self {
        due: 0,
        previous: NONE,
        next: NONE,
        slot: NO_SLOT,
    };
}

/// The entries of a slot, in the order in which they were entered.
#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
}

impl List {
    const EMPTY: Self = Self {
        first: NONE,
        last: NONE,
    };
}

impl TimerWheel {
    pub fn new(now: Instant) -> Self {
        Self {
            links: Vec::new(),
            slots: [[List::EMPTY; SLOTS]; LEVELS],
            occupied: [0; LEVELS],
            tick: now.as_nanos() / TICK_NANOS,
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

    /// Enters a number, in place of the entry that it may have. Constant; allocates only for the largest number so far.
    pub fn arm(&mut self, number: u32, at: Instant) {
        let place = number as usize;
        if place >= self.links.len() {
            self.links.resize(place + 1, Link::DISARMED);
        }
        if self.links[place].slot == NO_SLOT {
            self.count += 1;
        } else {
            self.unlink(number);
        }
        // Rounded up, so that nothing expires early; the current tick has not expired yet.
        let due = at.as_nanos().div_ceil(TICK_NANOS).max(self.tick);
        self.insert(number, due.min(self.tick + REACH_TICKS - 1));
    }

    /// Expires all ticks up to `now`, giving each due number to `due`.
    pub fn expire(&mut self, now: Instant, mut due: impl FnMut(u32)) {
        let last = now.as_nanos() / TICK_NANOS;
        while self.tick <= last {
            let Some(next) = self.next_tick() else {
                self.tick = last + 1;
                return;
            };
            if next > last {
                self.advance_to(last + 1);
                return;
            }
            self.advance_to(next);
            let mut number = self.empty(0, slot_of(self.tick, 0));
            while let Some(link) = self.links.get_mut(number as usize) {
                let next = link.next;
                link.slot = NO_SLOT;
                self.count -= 1;
                due(number);
                number = next;
            }
            self.advance_to(next + 1);
        }
    }

    /// When [`TimerWheel::expire`] should run next; earlier than the next entry when that one is far away.
    pub fn next_expiry(&self) -> Option<Instant> {
        let tick = self.next_tick()?;
        Some(Instant::from_nanos(tick.saturating_mul(TICK_NANOS)))
    }

    /// The next tick at which an entry is due or a higher level's slot has to be spread.
    fn next_tick(&self) -> Option<u64> {
        let mut next = None;
        for (level, (occupied, shift)) in self.occupied.into_iter().zip(SHIFTS).enumerate() {
            if occupied == 0 {
                continue;
            }
            let current = self.tick >> shift;
            let hand = slot_of(current, 0);
            let turned = (occupied >> hand) | (occupied << ((SLOTS - hand) % SLOTS));
            let ahead = u64::from(turned.trailing_zeros());
            // At its own slot a higher level holds what lies a whole round ahead: it was spread on arrival.
            let ahead = if level > 0 && ahead == 0 {
                SLOTS as u64
            } else {
                ahead
            };
            let tick = (current + ahead) << shift;
            next = Some(next.map_or(tick, |best: u64| best.min(tick)));
        }
        next
    }

    /// Moves the wheel's hand, spreading each higher slot that it reaches over the level below.
    fn advance_to(&mut self, tick: u64) {
        let before = self.tick;
        self.tick = tick;
        for level in (1..LEVELS).rev() {
            let shift = SHIFTS[level];
            if before >> shift == tick >> shift {
                continue;
            }
            let slot = slot_of(tick, shift);
            let mut number = self.empty(level, slot);
            while let Some(link) = self.links.get(number as usize) {
                let (next, due) = (link.next, self.due_of(link));
                self.insert(number, due);
                number = next;
            }
        }
    }

    /// The tick of an entry, which has not expired.
    #[expect(clippy::cast_possible_truncation, reason = "ticks of entries wrap")]
    fn due_of(&self, link: &Link) -> u64 {
        self.tick + u64::from(link.due.wrapping_sub(self.tick as u32))
    }

    /// Takes all entries out of a slot; returns the first of them, from which they follow each other.
    fn empty(&mut self, level: usize, slot: usize) -> u32 {
        self.occupied[level] &= !(1 << slot);
        core::mem::replace(&mut self.slots[level][slot], List::EMPTY).first
    }

    /// Enters a number that has no entry, at a tick within reach.
    #[expect(clippy::cast_possible_truncation, reason = "ticks of entries wrap")]
    fn insert(&mut self, number: u32, due: u64) {
        let (level, slot) = self.place(due);
        let list = &mut self.slots[level][slot];
        let previous = core::mem::replace(&mut list.last, number);
        match self.links.get_mut(previous as usize) {
            Some(link) => link.next = number,
            None => list.first = number,
        }
        self.links[number as usize] = Link {
            due: due as u32,
            previous,
            next: NONE,
            slot: (level * SLOTS + slot) as u16,
        };
        self.occupied[level] |= 1 << slot;
    }

    /// Takes a number's entry out of its list.
    fn unlink(&mut self, number: u32) {
        let Link {
            previous,
            next,
            slot,
            ..
        } = self.links[number as usize];
        let (level, slot) = (usize::from(slot) / SLOTS, usize::from(slot) % SLOTS);
        let list = &mut self.slots[level][slot];
        match self.links.get_mut(previous as usize) {
            Some(link) => link.next = next,
            None => list.first = next,
        }
        match self.links.get_mut(next as usize) {
            Some(link) => link.previous = previous,
            None => list.last = previous,
        }
        if list.first == NONE {
            self.occupied[level] &= !(1 << slot);
        }
    }

    /// The level and slot for a tick: the lowest level on which it is less than a round ahead.
    fn place(&self, due: u64) -> (usize, usize) {
        debug_assert!((self.tick..self.tick + REACH_TICKS).contains(&due));
        for (level, shift) in SHIFTS.into_iter().enumerate() {
            if (due >> shift) - (self.tick >> shift) < SLOTS as u64 {
                return (level, slot_of(due, shift));
            }
        }
        // Less than the reach ahead, yet a whole round on the top level: its last slot before the hand's own.
        let shift = SHIFTS[LEVELS - 1];
        (
            LEVELS - 1,
            slot_of(self.tick + REACH_TICKS - (1 << shift), shift),
        )
    }
}

/// The slot of a tick on the level whose slots span `1 << shift` ticks.
#[expect(clippy::cast_possible_truncation, reason = "a remainder of 64 fits")]
const fn slot_of(tick: u64, shift: u32) -> usize {
    ((tick >> shift) % SLOTS as u64) as usize
}

/// The end of a list; no entry has this number.
const NONE: u32 = u32::MAX;

const NO_SLOT: u16 = u16::MAX;

#[cfg(test)]
mod tests;
