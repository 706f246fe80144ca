//! The generator behind resamples and orders of trials: SplitMix64 (Steele, Lea, Flood 2014), small, seeded, the same everywhere.

/// A stream of numbers that a seed determines.
#[derive(Clone, Debug)]
pub struct Generator {
    state: u64,
}

impl Generator {
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub fn next_bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// An index below `count`, which is at least 1: the high half of a product (Lemire 2019); the bias of `count` / 2^64 is
    /// far below what 10 000 resamples could show.
    pub fn index_below(&mut self, count: usize) -> usize {
        assert!(count > 0, "an index below zero does not exist");
        let wide = u128::from(self.next_bits()) * count as u128;
        usize::try_from(wide >> 64).expect("the high half of a product is below its second factor")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_that_of_the_reference() {
        // The reference implementation (prng.di.unimi.it/splitmix64.c) seeded with 1234567.
        let mut generator = Generator::new(1_234_567);
        let found: Vec<u64> = (0..3).map(|_| generator.next_bits()).collect();
        assert_eq!(
            found,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn indices_are_spread_over_all_values() {
        let mut generator = Generator::new(7);
        let mut seen = [0_u32; 5];
        for _ in 0..5000 {
            seen[generator.index_below(5)] += 1;
        }
        assert!(seen.iter().all(|&n| (850..1150).contains(&n)), "{seen:?}");
    }
}
