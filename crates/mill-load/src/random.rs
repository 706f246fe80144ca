//! Seeded randomness: the same seed, the same run.

/// splitmix64 (Steele, Lea, Flood 2014): small, and good enough for arrivals and weights.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Uniform in [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        let bits = u32::try_from(self.next() >> 32).unwrap_or(0);
        let low = u32::try_from(self.next() >> 43).unwrap_or(0);
        (f64::from(bits) * f64::from(1_u32 << 21) + f64::from(low)) / TWO_TO_53
    }

    /// Exponential with mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }

    /// An index into `weights`, with probabilities proportional to the weights; 0 if their sum is zero.
    pub(crate) fn weighted(&mut self, weights: impl Iterator<Item = f64> + Clone) -> usize {
        let mut point = self.unit() * weights.clone().sum::<f64>();
        let mut last = 0;
        for (index, weight) in weights.enumerate() {
            if weight > 0.0 {
                last = index;
                if point < weight {
                    return index;
                }
                point -= weight;
            }
        }
        last
    }
}

const TWO_TO_53: f64 = 9_007_199_254_740_992.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_kept() {
        let mut random = Random::new(3);
        let weights = [35.0, 0.0, 65.0];
        let mut counts = [0_u32; 3];
        for _ in 0..10_000 {
            counts[random.weighted(weights.iter().copied())] += 1;
        }
        assert!((3300..3700).contains(&counts[0]), "{counts:?}");
        assert_eq!(counts[1], 0);
    }

    #[test]
    fn units_lie_in_their_interval() {
        let mut random = Random::new(9);
        let sum: f64 = (0..10_000)
            .map(|_| random.unit())
            .inspect(|unit| assert!((0.0..1.0).contains(unit)))
            .sum();
        assert!((sum / 10_000.0 - 0.5).abs() < 0.02);
    }
}
