//! The hashes of objects that left the small queue, oldest first.

use std::collections::VecDeque;

use hashbrown::HashTable;

/// A queue of hashes that is searched by hash. A row is eight bytes and a place of four in the table.
#[derive(Debug, Default)]
pub(super) struct Ghost {
    hashes: VecDeque<u64>,
    /// Numbers of hashes, counted from the first one ever, modulo 2³².
    numbers: HashTable<u32>,
    /// The number of the front.
    first: u32,
}

impl Ghost {
    /// Adds a hash, and forgets the oldest ones beyond `room`.
    pub(super) fn put(&mut self, hash: u64, room: u64) {
        self.take(hash);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "numbers wrap, and `room` is below 2³¹"
        )]
        let number = self.first.wrapping_add(self.hashes.len() as u32);
        self.hashes.push_back(hash);
        let Self {
            hashes,
            numbers,
            first,
        } = self;
        numbers.insert_unique(hash, number, |number| at(hashes, *first, *number));
        while self.hashes.len() as u64 > room {
            self.forget_oldest();
        }
    }

    /// Whether the hash is there; then it is no more.
    pub(super) fn take(&mut self, hash: u64) -> bool {
        let Self {
            hashes,
            numbers,
            first,
        } = self;
        match numbers.find_entry(hash, |number| at(hashes, *first, *number) == hash) {
            // Its place in the queue stays until it is the oldest.
            Ok(entry) => {
                entry.remove();
                true
            }
            Err(_) => false,
        }
    }

    fn forget_oldest(&mut self) {
        let Some(hash) = self.hashes.front().copied() else {
            return;
        };
        if let Ok(entry) = self
            .numbers
            .find_entry(hash, |number| *number == self.first)
        {
            entry.remove();
        }
        self.hashes.pop_front();
        self.first = self.first.wrapping_add(1);
    }
}

fn at(hashes: &VecDeque<u64>, first: u32, number: u32) -> u64 {
    let index = number.wrapping_sub(first) as usize;
    hashes.get(index).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::Ghost;

    #[test]
    fn it_keeps_the_newest_and_gives_each_once() {
        let mut ghost = Ghost::default();
        for hash in 0..5 {
            ghost.put(hash, 3);
        }
        assert_eq!(
            [1, 2, 3, 4].map(|hash| ghost.take(hash)),
            [false, true, true, true]
        );
        assert!(!ghost.take(3));
    }

    #[test]
    fn a_hash_that_came_back_is_as_young_as_its_last_time() {
        let mut ghost = Ghost::default();
        [1, 2, 1, 3].into_iter().for_each(|hash| ghost.put(hash, 3));
        assert_eq!([1, 2, 3].map(|hash| ghost.take(hash)), [true, true, true]);
        [1, 2, 3, 4].into_iter().for_each(|hash| ghost.put(hash, 3));
        assert!(!ghost.take(1));
    }

    #[test]
    fn numbers_wrap() {
        let mut ghost = Ghost {
            first: u32::MAX - 1,
            ..Ghost::default()
        };
        for hash in 0..10 {
            ghost.put(hash, 4);
        }
        assert_eq!([5, 6, 9].map(|hash| ghost.take(hash)), [false, true, true]);
    }
}
