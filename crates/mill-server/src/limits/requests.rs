//! Counting requests by a key: the table of a `limit_req_zone`.
//!
//! Several limits of a request are examined one after the other, as in nginx: a key of all but the last is looked up first
//! ([`RequestTable::look_up`]), and counted only when no limit refuses the request ([`RequestTable::count`]).

use super::owed::{Owed, delay_ms};
use super::shards::{KeyHash, Shards};
use super::table::{Table, bytes_for_keys};
use super::zones::{ZoneFigures, ZoneTable};
use crate::local::Local;
use mill_config::config::{RequestLimit, RequestZone};
use mill_runtime::engine::Engine;

/// The keys of a zone.
#[derive(Debug)]
pub struct RequestTable {
    shards: Shards<Part>,
}

#[derive(Debug)]
struct Part {
    keys: Table<Owed>,
    figures: RequestFigures,
}

/// What became of requests that a zone has counted, and how many keys it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestFigures {
    pub keys: u64,
    pub passed: u64,
    pub delayed: u64,
    pub rejected: u64,
    pub delayed_dry_run: u64,
    pub rejected_dry_run: u64,
}

/// How a request is counted: by which limit, at which rate, when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counting<'l> {
    pub(crate) limit: &'l RequestLimit,
    /// Thousandths of a request in a second.
    pub(crate) rate: u64,
    pub(crate) now_ms: u64,
    pub(crate) dry_run: bool,
}

/// The result of a look-up.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Looked {
    /// Beyond `burst`: what the key would owe.
    Refused { excess: u64 },
    /// There is no room for the key, though an old one was forgotten.
    Full,
    /// It was counted.
    Counted(Excess),
    /// It waits for the other limits.
    Pending(Place),
}

/// The result of a look-up of a request that is not to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AtOnce {
    No,
    Counted,
    Pending(Place),
}

/// What a key owes now, and how long its request is to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Excess {
    pub(crate) thousandths: u64,
    pub(crate) delay_ms: u64,
}

/// Where a key is that waits for other limits. Counted or released, once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    hash: KeyHash,
    slot: u32,
}

impl RequestTable {
    /// Finds the key, and counts the request if `is_last`; takes one lock.
    pub(crate) fn look_up<E: Engine>(
        &self,
        key: &[u8],
        counting: &Counting<'_>,
        is_last: bool,
        local: &Local<E>,
    ) -> Looked {
        let (hash, mut part) = self.shards.lock(key, local, Part::new);
        let part = &mut *part;
        let known = part.keys.find(hash.0, key);
        if let Some(slot) = known {
            part.keys.touch(slot);
            let owed = part.keys.value(slot);
            let excess = owed.with_one_more(counting.rate, counting.now_ms);
            if excess > counting.limit.burst {
                *part.figures.of_refused(counting.dry_run) += 1;
                return Looked::Refused { excess };
            }
        }
        let Some(slot) = known.or_else(|| part.make_room_for(hash, key, counting)) else {
            *part.figures.of_refused(counting.dry_run) += 1;
            return Looked::Full;
        };
        if is_last {
            return Looked::Counted(part.count(slot, counting));
        }
        part.keys.value(slot).pending += 1;
        Looked::Pending(Place { hash, slot })
    }

    /// Counts a request whose key was found.
    pub(crate) fn count(&self, place: Place, counting: &Counting<'_>) -> Excess {
        let Some(mut part) = self.shards.lock_again(place.hash) else {
            return Excess::NONE;
        };
        part.keys.value(place.slot).pending -= 1;
        part.count(place.slot, counting)
    }

    /// Another limit has refused the request.
    pub(crate) fn release(&self, place: Place) {
        if let Some(mut part) = self.shards.lock_again(place.hash) {
            part.keys.value(place.slot).pending -= 1;
        }
    }

    /// Counts the request if it may go at once, or has it wait for the other limits; else nothing has changed, and
    /// [`Self::look_up`] will refuse or delay it.
    pub(crate) fn pass_at_once<E: Engine>(
        &self,
        key: &[u8],
        counting: &Counting<'_>,
        is_last: bool,
        local: &Local<E>,
    ) -> AtOnce {
        let (hash, mut part) = self.shards.lock(key, local, Part::new);
        let part = &mut *part;
        let limit = counting.limit;
        let slot = match part.keys.find(hash.0, key) {
            Some(slot) => {
                let owed = part.keys.value(slot);
                let excess = owed.with_one_more(counting.rate, counting.now_ms);
                if excess > limit.burst || delay_ms(excess, limit.delay, counting.rate) > 0 {
                    return AtOnce::No;
                }
                part.keys.touch(slot);
                slot
            }
            None => match part.make_room_for(hash, key, counting) {
                Some(slot) => slot,
                None => return AtOnce::No,
            },
        };
        if is_last {
            part.count(slot, counting);
            return AtOnce::Counted;
        }
        part.keys.value(slot).pending += 1;
        AtOnce::Pending(Place { hash, slot })
    }
}

impl ZoneTable for RequestTable {
    type Directive = RequestZone;
    type Figures = RequestFigures;

    fn new(zone_bytes: u64) -> Self {
        Self {
            shards: Shards::new(bytes_for_keys(zone_bytes, ROOT_BYTES)),
        }
    }

    fn figures(&self) -> RequestFigures {
        let mut sum = RequestFigures::default();
        self.shards.for_each(|part| {
            sum.keys += part.keys.len() as u64;
            sum.passed += part.figures.passed;
            sum.delayed += part.figures.delayed;
            sum.rejected += part.figures.rejected;
            sum.delayed_dry_run += part.figures.delayed_dry_run;
            sum.rejected_dry_run += part.figures.rejected_dry_run;
        });
        sum
    }

    fn reset(&self) {
        self.shards
            .for_each(|part| part.figures = RequestFigures::default());
    }
}

impl Excess {
    const NONE: Self = Self {
        thousandths: 0,
        delay_ms: 0,
    };
}

impl Part {
    fn new(bytes: u64) -> Self {
        Self {
            keys: Table::new(bytes, NODE_BYTES),
            figures: RequestFigures::default(),
        }
    }

    fn count(&mut self, slot: u32, counting: &Counting<'_>) -> Excess {
        let Counting { limit, rate, .. } = *counting;
        let owed = self.keys.value(slot);
        let thousandths = owed.with_one_more(rate, counting.now_ms);
        owed.set(thousandths, counting.now_ms);
        let delay_ms = delay_ms(thousandths, limit.delay, rate);
        let figure = match (delay_ms, counting.dry_run) {
            (0, _) => &mut self.figures.passed,
            (_, false) => &mut self.figures.delayed,
            (_, true) => &mut self.figures.delayed_dry_run,
        };
        *figure += 1;
        Excess {
            thousandths,
            delay_ms,
        }
    }

    /// Adds a key; if need be another one is forgotten.
    fn make_room_for(&mut self, hash: KeyHash, key: &[u8], counting: &Counting<'_>) -> Option<u32> {
        self.forget(OVER_AT_ONCE, counting);
        if let Some(slot) = self.keys.insert(hash.0, key) {
            return Some(slot);
        }
        self.forget_oldest();
        self.forget(OVER_AT_ONCE, counting);
        self.keys.insert(hash.0, key)
    }

    /// Forgets the oldest keys, at most `count`, that owe nothing any more.
    fn forget(&mut self, count: usize, counting: &Counting<'_>) {
        for _ in 0..count {
            let Some(slot) = self.keys.oldest() else {
                return;
            };
            let owed = self.keys.value(slot);
            if owed.pending > 0 || !owed.is_over(counting.rate, counting.now_ms) {
                return;
            }
            self.keys.remove(slot);
        }
    }

    /// Forgets the oldest key whatever it owes, unless a request is about to be counted by it.
    fn forget_oldest(&mut self) {
        if let Some(slot) = self.keys.oldest()
            && self.keys.value(slot).pending == 0
        {
            self.keys.remove(slot);
        }
    }
}

impl ZoneFigures for RequestFigures {
    fn keys(&self) -> u64 {
        self.keys
    }

    fn by_outcome(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("passed", self.passed),
            ("delayed", self.delayed),
            ("rejected", self.rejected),
            ("delayed_dry_run", self.delayed_dry_run),
            ("rejected_dry_run", self.rejected_dry_run),
        ]
    }
}

impl RequestFigures {
    const fn of_refused(&mut self, dry_run: bool) -> &mut u64 {
        if dry_run {
            &mut self.rejected_dry_run
        } else {
            &mut self.rejected
        }
    }
}

/// What a key takes in nginx beside its own bytes.
const NODE_BYTES: u64 = 80;

/// What the roots of its tree and its queue take there.
const ROOT_BYTES: u64 = 128;

/// Keys that are forgotten with each new one, if they are over (nginx): a table shrinks while it is used.
const OVER_AT_ONCE: usize = 2;
