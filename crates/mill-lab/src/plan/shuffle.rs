//! The order of a block: drawn from the seed, the same on every machine.

use crate::statistics::Generator;

/// Of the items of one block.
#[derive(Clone, Debug)]
pub(super) struct Shuffle(Generator);

impl Shuffle {
    /// Blocks do not depend on how many there are before.
    pub(super) fn of_block(seed: u64, block: u32) -> Self {
        let mut of_block = Generator::new(Generator::new(seed).next_bits() ^ u64::from(block));
        of_block.next_bits();
        Self(of_block)
    }

    /// A number from 0 to `limit - 1`, of which there is at least one.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0.index_below(limit)
    }

    /// Fisher and Yates, from the end.
    pub(super) fn apply<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last + 1);
            items.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_keeps_all_items_and_blocks_differ() {
        let order = |block| {
            let mut items: Vec<u32> = (0..50).collect();
            Shuffle::of_block(1, block).apply(&mut items);
            items
        };
        let mut sorted = order(0);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..50).collect::<Vec<u32>>());
        assert_eq!(order(3), order(3));
        assert_ne!(order(0), order(1));
    }
}
