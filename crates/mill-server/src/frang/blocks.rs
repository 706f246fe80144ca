//! Addresses that are refused: `ip_block`, and what the API adds.

use hashbrown::HashMap;
use mill_runtime::time::Instant;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The blocked addresses, for all worker threads. Looking one up costs two atomic loads while there are none.
#[derive(Debug, Default)]
pub struct Blocks {
    table: RwLock<Table>,
    /// How many there are, those that have expired and were not removed yet among them.
    count: AtomicU32,
    /// Grows with each change of the table.
    generation: AtomicU64,
    added: AtomicU64,
    evicted: AtomicU64,
}

#[derive(Debug, Default)]
struct Table {
    most: usize,
    by_address: HashMap<IpAddr, Block>,
    /// In the order in which they were blocked; one that was removed since, or blocked anew, is passed over.
    order: VecDeque<(IpAddr, Instant)>,
}

/// One blocked address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub address: IpAddr,
    /// The limit that was exceeded, or `api`.
    pub why: &'static str,
    pub since: Instant,
    /// [`Instant::FAR`] has no end.
    pub until: Instant,
}

impl Blocks {
    /// Sets how many there may be.
    pub(super) fn set_most(&self, most: u32) {
        let table = &mut *self.write();
        table.most = usize::try_from(most).unwrap_or(usize::MAX).max(1);
        while table.by_address.len() > table.most && table.evict() {
            self.evicted.fetch_add(1, Ordering::Relaxed);
        }
        self.note_change(table);
    }

    /// Blocks an address; where there is no room, the oldest block ends. A block that lasts longer stays.
    pub(super) fn insert(&self, address: IpAddr, why: &'static str, now: Instant, until: Instant) {
        let address = address.to_canonical();
        let table = &mut *self.write();
        let known = table.by_address.get(&address);
        if known.is_some_and(|known| known.until >= until) {
            return;
        }
        if known.is_none() {
            table.expire(now);
            if table.by_address.len() >= table.most && table.evict() {
                self.evicted.fetch_add(1, Ordering::Relaxed);
            }
        }
        let block = Block {
            address,
            why,
            since: now,
            until,
        };
        table.by_address.insert(address, block);
        table.order.push_back((address, now));
        table.compact();
        self.added.fetch_add(1, Ordering::Relaxed);
        self.note_change(table);
    }

    /// Ends a block; whether there was one.
    pub(super) fn remove(&self, address: IpAddr, now: Instant) -> bool {
        let table = &mut *self.write();
        let removed = table.by_address.remove(&address.to_canonical());
        self.note_change(table);
        removed.is_some_and(|block| now < block.until)
    }

    /// Whether an address is blocked.
    pub fn contains(&self, address: IpAddr, now: Instant) -> bool {
        if self.count.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let block = self.read().by_address.get(&address.to_canonical()).copied();
        block.is_some_and(|block| now < block.until)
    }

    /// The block of an address.
    pub fn find(&self, address: IpAddr, now: Instant) -> Option<Block> {
        let block = self.read().by_address.get(&address.to_canonical()).copied();
        block.filter(|block| now < block.until)
    }

    /// All blocks, in the order of their addresses.
    pub fn all(&self, now: Instant) -> Vec<Block> {
        let table = self.read();
        let blocks = table.by_address.values().copied();
        let mut blocks: Vec<Block> = blocks.filter(|block| now < block.until).collect();
        drop(table);
        blocks.sort_unstable_by_key(|block| block.address);
        blocks
    }

    /// Changes whenever an address is blocked or a block is removed.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Addresses that were blocked so far, and those whose block had to make room.
    pub fn counts(&self) -> (u64, u64) {
        let [added, evicted] =
            [&self.added, &self.evicted].map(|count| count.load(Ordering::Relaxed));
        (added, evicted)
    }

    /// To be called before the table is let go.
    fn note_change(&self, table: &Table) {
        let count = u32::try_from(table.by_address.len()).unwrap_or(u32::MAX);
        self.count.store(count, Ordering::Relaxed);
        self.generation.fetch_add(1, Ordering::Release);
    }

    fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Removes some of the oldest that have expired. Blocks of one configuration last equally long, so the oldest expire
    /// first.
    fn expire(&mut self, now: Instant) {
        for _ in 0..EXPIRED_AT_ONCE {
            let Some(&(address, since)) = self.order.front() else {
                return;
            };
            match self.by_address.get(&address) {
                Some(block) if block.since == since && now < block.until => return,
                Some(block) if block.since == since => {
                    self.by_address.remove(&address);
                }
                _ => {}
            }
            self.order.pop_front();
        }
    }

    /// Removes the oldest.
    fn evict(&mut self) -> bool {
        while let Some((address, since)) = self.order.pop_front() {
            let found = self.by_address.get(&address);
            if found.is_some_and(|block| block.since == since) {
                return self.by_address.remove(&address).is_some();
            }
        }
        false
    }

    /// The order never has many more entries than there are blocks.
    fn compact(&mut self) {
        if self.order.len() > 2 * self.by_address.len() + ORDER_SPARE {
            let known = &self.by_address;
            self.order.retain(|(address, since)| {
                known
                    .get(address)
                    .is_some_and(|block| block.since == *since)
            });
        }
    }
}

/// Blocks that are removed when another one begins, if they have expired.
const EXPIRED_AT_ONCE: usize = 4;

/// Entries of the order beyond twice the blocks before those of ended blocks are removed.
const ORDER_SPARE: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    fn address(number: u32) -> IpAddr {
        IpAddr::V4(number.into())
    }

    fn blocks(most: u32) -> Blocks {
        let blocks = Blocks::default();
        blocks.set_most(most);
        blocks
    }

    #[test]
    fn a_block_ends_with_its_time_or_when_it_is_removed() {
        let blocks = blocks(10);
        blocks.insert(address(1), "request_rate", at(1), at(11));
        blocks.insert(
            "::ffff:0.0.0.2".parse().unwrap(),
            "api",
            at(1),
            Instant::FAR,
        );
        assert!(blocks.contains(address(1), at(10)));
        assert!(!blocks.contains(address(1), at(11)));
        assert!(blocks.contains(address(2), at(1_000_000)));
        assert_eq!(blocks.all(at(1)).len(), 2);
        assert_eq!(blocks.all(at(11)).len(), 1);
        assert_eq!(
            blocks.find(address(2), at(2)).map(|block| block.why),
            Some("api")
        );
        let before = blocks.generation();
        assert!(blocks.remove(address(2), at(2)));
        assert!(!blocks.remove(address(2), at(2)));
        assert!(blocks.generation() > before);
        assert!(!blocks.contains(address(2), at(2)));
    }

    #[test]
    fn a_shorter_block_does_not_shorten_a_longer_one() {
        let blocks = blocks(10);
        blocks.insert(address(1), "api", at(1), at(100));
        blocks.insert(address(1), "request_rate", at(2), at(12));
        assert_eq!(
            blocks.find(address(1), at(50)).map(|block| block.why),
            Some("api")
        );
        blocks.insert(address(1), "request_rate", at(50), at(150));
        assert!(blocks.contains(address(1), at(149)));
    }

    #[test]
    fn the_oldest_blocks_make_room_and_expired_ones_before_them() {
        let blocks = blocks(3);
        for number in 1..=4 {
            blocks.insert(address(number), "api", at(u64::from(number)), at(100));
        }
        assert!(!blocks.contains(address(1), at(4)));
        assert!(blocks.contains(address(2), at(4)));
        assert_eq!(blocks.counts(), (4, 1));
        blocks.insert(address(5), "api", at(200), at(300));
        assert_eq!(blocks.counts(), (5, 1), "the others have expired");
        blocks.set_most(1);
        assert_eq!(blocks.all(at(201)).len(), 1);
    }

    #[test]
    fn memory_is_bounded_whatever_is_blocked_and_removed() {
        let blocks = blocks(4);
        for round in 0..1000 {
            blocks.insert(
                address(round % 8),
                "api",
                at(round.into()),
                at(u64::from(round) + 5),
            );
            blocks.remove(address(round % 3), at(round.into()));
        }
        let table = blocks.read();
        assert!(table.by_address.len() <= 4);
        assert!(
            table.order.len() <= 2 * 4 + ORDER_SPARE + 1,
            "{}",
            table.order.len()
        );
    }
}
