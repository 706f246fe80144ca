//! The timer wheel: when to poll a task at the latest.
//!
//! Four levels of 64 slots; a slot of level n spans 64^n ticks of 1 ms, so the wheel reaches 4.6 hours ahead
//! and what lies further is entered at its end and moved on when it comes due.
//!
//! ```text
//! level 0   |1ms|1ms|…64…|
//! level 1   |   64 ms    |   64 ms    |…
//! level 2   |  4.1 s …
//! level 3   |  4.4 min …
//! ```
//!
//! (Varghese and Lauck, "Hashed and Hierarchical Timing Wheels", SOSP 1987, scheme 7.)

use crate::tasks::TaskId;
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

/// An entry never expires early, and late by less than one tick plus the turn it falls into.
#[derive(Debug)]
pub struct TimerWheel {
    slots: [[Vec<Entry>; SLOTS]; LEVELS],
    /// Bit n of level l: slot n of level l has entries.
    occupied: [u64; LEVELS],
    /// All ticks before this one have expired.
    tick: u64,
    /// Entries on the move between levels; kept for its capacity.
    moving: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    task: TaskId,
    at: Instant,
}
const _: () = assert!(size_of::<Entry>() == 16);

impl TimerWheel {
    pub fn new(now: Instant) -> Self {
        Self {
            slots: core::array::from_fn(|_| core::array::from_fn(|_| Vec::new())),
            occupied: [0; LEVELS],
            tick: now.as_nanos() / TICK_NANOS,
            moving: Vec::new(),
        }
    }

    /// Enters a task. Amortised constant; allocates only while a slot grows past its largest size so far.
    pub fn arm(&mut self, task: TaskId, at: Instant) {
        // Rounded up, so that nothing expires early; the current tick has not expired yet.
        let due = at.as_nanos().div_ceil(TICK_NANOS).max(self.tick);
        let (level, slot) = self.place(due);
        self.slots[level][slot].push(Entry { task, at });
        self.occupied[level] |= 1 << slot;
    }

    /// Expires all ticks up to `now`, giving each due entry to `due`.
    pub fn expire(&mut self, now: Instant, mut due: impl FnMut(TaskId, Instant)) {
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
            let slot = slot_of(self.tick, 0);
            if self.occupied[0] & (1 << slot) != 0 {
                self.occupied[0] &= !(1 << slot);
                let mut entries = core::mem::take(&mut self.slots[0][slot]);
                for entry in entries.drain(..) {
                    due(entry.task, entry.at);
                }
                self.slots[0][slot] = entries;
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
            if self.occupied[level] & (1 << slot) == 0 {
                continue;
            }
            self.occupied[level] &= !(1 << slot);
            let mut moving = core::mem::take(&mut self.moving);
            moving.append(&mut self.slots[level][slot]);
            for entry in moving.drain(..) {
                self.arm(entry.task, entry.at);
            }
            self.moving = moving;
        }
    }

    /// The level and slot for a tick: the lowest level on which it is less than a round ahead.
    fn place(&self, due: u64) -> (usize, usize) {
        let due = due.min(self.tick + REACH_TICKS - 1);
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

#[cfg(test)]
mod tests;
