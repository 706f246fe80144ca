//! Seeded randomness: SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014).

/// A sequence that its seed determines; statistics only, nothing that must not be guessed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `most`, both included.
    pub const fn up_to(&mut self, most: u64) -> u64 {
        match most.checked_add(1) {
            Some(count) => self.next() % count,
            None => self.next(),
        }
    }

    /// Whether something happens that does so in so many of a million cases. Without a chance no number is drawn.
    pub const fn happens(&mut self, per_million: u32) -> bool {
        per_million > 0 && self.up_to(999_999) < per_million as u64
    }

    /// One of the items; panics if there is none.
    pub fn one_of<T: Copy>(&mut self, items: &[T]) -> T {
        let index = self.up_to(items.len() as u64 - 1);
        items[usize::try_from(index).unwrap_or(0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_bounds_are_reached_and_none_is_passed() {
        let mut random = Random::new(1);
        let drawn: Vec<u64> = (0..200).map(|_| random.up_to(3)).collect();
        for number in 0..=3 {
            assert!(drawn.contains(&number), "{number} was never drawn");
        }
        assert!(drawn.iter().all(|number| *number <= 3));
        assert_eq!(random.up_to(0), 0);
    }
}
