//! Flows whose connections left this host a moment ago, by a reset of ours or to another host.
//!
//! Segments that their peers had sent by then arrive afterwards and belong to no connection any more. A reset may have been lost, so
//! they are answered; but not within the limit of answers to unknown flows, which a server that ends many connections at
//! once would use up. Those of connections that moved are not answered: they live.

use alloc::boxed::Box;
use alloc::vec;
use core::time::Duration;
use mill_tcp::time::Tick;

/// The latest of them, in sets by their flows' hashes; a later one takes the place of the oldest of its set. Memory
/// comes with the first.
#[derive(Debug, Default)]
pub(crate) struct RecentFlows {
    sets: Option<Box<[Set]>>,
}

type Set = [Entry; SET_ENTRIES];

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    hash: u64,
    /// When it is forgotten; none is in a place that was never taken.
    ends_at: Option<Tick>,
}

impl RecentFlows {
    /// The flow with this hash leaves at `now`.
    pub(crate) fn note(&mut self, hash: u64, now: Tick) {
        // By `vec`: a boxed array would be made on the thread's stack first, where a program may have less room than that.
        let none = || vec![Set::default(); SETS].into_boxed_slice();
        let sets = self.sets.get_or_insert_with(none);
        let left_ms = |entry: &Entry| match entry.ends_at {
            Some(ends_at) if entry.hash != hash => ends_at.since(now),
            _ => i32::MIN,
        };
        let set = sets.get_mut(set_of(hash));
        if let Some(entry) = set.and_then(|set| set.iter_mut().min_by_key(|entry| left_ms(entry))) {
            *entry = Entry {
                hash,
                ends_at: Some(now.after(KEPT)),
            };
        }
    }

    /// Whether the flow with this hash left lately.
    pub(crate) fn has(&self, hash: u64, now: Tick) -> bool {
        self.ends_at(hash)
            .is_some_and(|ends_at| !ends_at.is_due(now))
    }

    /// Whether it left so short a time ago that the host that it has gone to may not have it yet.
    pub(crate) fn has_just_left(&self, hash: u64, now: Tick) -> bool {
        let arrived_at = now.after(KEPT - UNDER_WAY);
        self.ends_at(hash)
            .is_some_and(|ends_at| !ends_at.is_due(arrived_at))
    }

    fn ends_at(&self, hash: u64) -> Option<Tick> {
        let set = self.sets.as_ref()?.get(set_of(hash))?;
        let entry = set.iter().find(|entry| entry.hash == hash)?;
        entry.ends_at
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a remainder of 1024 fits")]
const fn set_of(hash: u64) -> usize {
    (hash % SETS as u64) as usize
}

/// 4096 entries, as many resets as a burst of them within a round trip; 64 KiB.
const SETS: usize = 1024;
const SET_ENTRIES: usize = 4;

/// As long as a segment may be under way, or its sender waits before it sends it again.
const KEPT: Duration = Duration::from_secs(60);

/// As long as a connection may be on its way between two processes.
const UNDER_WAY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn a_flow_is_known_until_its_time_is_over() {
        let mut resets = RecentFlows::default();
        let begin = Tick(u32::MAX - 10);
        assert!(!resets.has(0, begin) && !resets.has(7, begin));
        resets.note(7, begin);
        assert!(resets.has(7, begin) && !resets.has(7 + SETS as u64, begin));
        assert!(resets.has(7, begin.after(KEPT - Duration::from_millis(1))));
        assert!(!resets.has(7, begin.after(KEPT)));
        assert!(resets.has_just_left(7, begin.after(UNDER_WAY - Duration::from_millis(1))));
        assert!(
            !resets.has_just_left(7, begin.after(UNDER_WAY)) && !resets.has_just_left(8, begin)
        );
    }

    #[test]
    fn the_oldest_of_a_set_makes_room() {
        let mut resets = RecentFlows::default();
        let now = |ms: u64| Tick(0).after(Duration::from_millis(ms));
        let hashes: Vec<u64> = (0..5).map(|number| 7 + number * SETS as u64).collect();
        for (hash, ms) in hashes.iter().zip([3, 1, 2, 4]) {
            resets.note(*hash, now(ms));
        }
        // Again: it is not the oldest any more, and has one place.
        resets.note(hashes[1], now(5));
        resets.note(hashes[4], now(6));
        let known: Vec<bool> = hashes
            .iter()
            .map(|hash| resets.has(*hash, now(6)))
            .collect();
        assert_eq!(known, [true, true, false, true, true]);
    }
}
