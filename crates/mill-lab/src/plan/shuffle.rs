//! The order of a block: drawn from the seed, the same on every machine.

/// A generator that is small, good enough for orders, and never changes: SplitMix64 (Steele, Lea, Flood: Fast splittable
/// pseudorandom number generators, 2014), with its published constants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shuffle {
    state: u64,
}

impl Shuffle {
    /// Of one block: blocks do not depend on how many there are before.
    pub(super) fn of_block(seed: u64, block: u32) -> Self {
        let mut of_seed = Self { state: seed };
        let state = of_seed.next() ^ u64::from(block);
        let mut of_block = Self { state };
        of_block.next();
        of_block
    }

    /// A number from 0 to `limit - 1`; 0 if there are none.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        // The high half of a 128-bit product: its bias is under one in 10¹⁵ for the few hundred trials of a block.
        let limit = u128::try_from(limit).unwrap_or(u128::MAX >> 64);
        let wide = (u128::from(self.next()) * limit) >> 64;
        usize::try_from(wide).unwrap_or(0)
    }

    /// Fisher and Yates, from the end.
    pub(super) fn apply<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last + 1);
            items.swap(last, other);
        }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_gives_the_published_numbers() {
        // The first outputs of the reference program for the seed 1234567.
        let mut generator = Shuffle { state: 1_234_567 };
        let numbers: Vec<u64> = (0..3).map(|_| generator.next()).collect();
        assert_eq!(
            numbers,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

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

    #[test]
    fn every_place_is_drawn_about_as_often() {
        let mut shuffle = Shuffle::of_block(7, 0);
        let mut counts = [0_u32; 5];
        for _ in 0..5000 {
            if let Some(count) = counts.get_mut(shuffle.below(5)) {
                *count += 1;
            }
        }
        assert!(
            counts.iter().all(|count| (900..1100).contains(count)),
            "{counts:?}"
        );
        assert_eq!(shuffle.below(0), 0);
    }
}
