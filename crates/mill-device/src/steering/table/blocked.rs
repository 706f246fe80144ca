//! Blocked addresses: a table of places that the program looks at before it steers a frame.
//!
//! An address has its places in the bucket that its hash names. A bucket that is full leaves the address out: the stack
//! drops its frames then.

use super::{INSIDE, State};
use crate::steering::flow::{bucket, halves_of};
use crate::steering::layout::{
    BLOCKED, BLOCKED_BUCKETS, BLOCKED_BYTES, BLOCKED_COUNT, BLOCKED_WAYS, BUCKET_BYTES, SEED,
};
use std::net::IpAddr;
use std::sync::atomic::Ordering;

impl State {
    /// Makes `wanted` the blocked addresses; returns how many found no place.
    pub(super) fn set_blocked(&mut self, wanted: &[IpAddr]) -> usize {
        if !self.can_block {
            return wanted.len();
        }
        let mut sorted: Vec<IpAddr> = wanted.iter().map(IpAddr::to_canonical).collect();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted == self.blocked {
            return 0;
        }
        let former = std::mem::take(&mut self.blocked);
        for address in former
            .iter()
            .filter(|one| sorted.binary_search(one).is_err())
        {
            self.unblock(*address);
        }
        let mut left_out = 0;
        for address in sorted
            .iter()
            .filter(|one| former.binary_search(one).is_err())
        {
            left_out += usize::from(!self.block(*address));
        }
        let count = u32::try_from(sorted.len()).unwrap_or(u32::MAX);
        self.word(BLOCKED_COUNT).store(count, Ordering::Release);
        self.blocked = sorted;
        left_out
    }

    /// Removes all, also those of a former process.
    pub(super) fn clear_blocked(&mut self) {
        if !self.can_block {
            return;
        }
        self.word(BLOCKED_COUNT).store(0, Ordering::Release);
        for at in (BLOCKED..BLOCKED + BLOCKED_BYTES).step_by(size_of::<u64>()) {
            self.number(at, 0);
        }
        self.blocked.clear();
    }

    fn block(&self, address: IpAddr) -> bool {
        let halves = halves_of(address);
        let Some(place) = self
            .places(halves)
            .find(|place| self.read_pair(*place) == (0, 0))
        else {
            return false;
        };
        // Until both halves are there, the pair is no address that a frame can have: its high half says multicast.
        self.number(place, u64::MAX);
        self.number(place + 8, halves.1);
        self.number(place, halves.0);
        true
    }

    fn unblock(&self, address: IpAddr) {
        let halves = halves_of(address);
        if let Some(place) = self
            .places(halves)
            .find(|place| self.read_pair(*place) == halves)
        {
            self.number(place, u64::MAX);
            self.number(place + 8, 0);
            self.number(place, 0);
        }
    }

    /// Offsets of an address's places.
    fn places(&self, halves: (u64, u64)) -> impl Iterator<Item = usize> {
        let seed = self
            .served
            .atomic_u64(SEED)
            .expect(INSIDE)
            .load(Ordering::Relaxed);
        let bucket = bucket(halves, seed, BLOCKED_BUCKETS);
        let start = BLOCKED + bucket * BUCKET_BYTES;
        (0..BLOCKED_WAYS).map(move |way| start + way * 16)
    }

    fn read_pair(&self, at: usize) -> (u64, u64) {
        let read = |at| {
            self.served
                .atomic_u64(at)
                .expect(INSIDE)
                .load(Ordering::Acquire)
        };
        (read(at), read(at + 8))
    }

    fn number(&self, at: usize, value: u64) {
        let place = self.served.atomic_u64(at).expect(INSIDE);
        place.store(value, Ordering::Release);
    }
}
