//! Values with numbers: the number of a value that was removed is used again, with another generation. Numbers tell which of several
//! slabs of a kind they are of.

/// The place of a value. A stale one finds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Number {
    index: u32,
    generation: u32,
}

impl Number {
    /// Bits that [`Self::to_bits`] uses: what holds a number has room for a kind.
    pub const BITS: u32 = 61;

    /// Slabs of a kind, at most.
    pub const SLABS_MAX: u8 = 8;

    /// Above the generation is the slab.
    const GENERATION_BITS: u32 = Self::BITS - 32 - Self::SLABS_MAX.ilog2();
    const GENERATION_MASK: u32 = (1 << Self::GENERATION_BITS) - 1;

    /// Which slab it is of: below [`Self::SLABS_MAX`].
    #[inline]
    pub const fn slab(self) -> u8 {
        (self.generation >> Self::GENERATION_BITS) as u8 % Self::SLABS_MAX
    }

    /// As one number, for a token.
    pub const fn to_bits(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }

    /// The number that became these bits.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the halves of the bits are the parts"
    )]
    pub const fn from_bits(bits: u64) -> Self {
        Self {
            index: bits as u32,
            generation: (bits >> 32) as u32,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Slab<T> {
    entries: Vec<Entry<T>>,
    vacant: Vec<u32>,
    /// The generation of a place's first value: its slab's number, above 0.
    first: u32,
}

#[derive(Debug)]
struct Entry<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self::new(0)
    }
}

impl<T> Slab<T> {
    /// The slab of this number.
    pub(crate) fn new(number: u8) -> Self {
        Self {
            entries: Vec::new(),
            vacant: Vec::new(),
            first: u32::from(number % Number::SLABS_MAX) << Number::GENERATION_BITS,
        }
    }

    /// The number that the next inserted value will have.
    pub(crate) fn next_number(&self) -> Number {
        let index = self.vacant.last().copied();
        let index = index.unwrap_or(u32::try_from(self.entries.len()).unwrap_or(u32::MAX));
        let entry = self.entries.get(index as usize);
        Number {
            index,
            generation: entry.map_or(self.first, |entry| entry.generation),
        }
    }

    pub(crate) fn insert(&mut self, value: T) -> Number {
        let number = self.next_number();
        self.vacant.pop();
        match self.entries.get_mut(number.index as usize) {
            Some(entry) => entry.value = Some(value),
            None => self.entries.push(Entry {
                generation: number.generation,
                value: Some(value),
            }),
        }
        number
    }

    #[inline]
    pub(crate) fn get(&self, number: Number) -> Option<&T> {
        let entry = self.entries.get(number.index as usize)?;
        entry
            .value
            .as_ref()
            .filter(|_| entry.generation == number.generation)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, number: Number) -> Option<&mut T> {
        let entry = self.entries.get_mut(number.index as usize)?;
        let is_this = entry.generation == number.generation;
        entry.value.as_mut().filter(|_| is_this)
    }

    pub(crate) fn remove(&mut self, number: Number) -> Option<T> {
        let entry = self.entries.get_mut(number.index as usize)?;
        if entry.generation != number.generation {
            return None;
        }
        let value = entry.value.take()?;
        entry.generation = self.first | ((entry.generation + 1) & Number::GENERATION_MASK);
        self.vacant.push(number.index);
        Some(value)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.vacant.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_removed_value_finds_nothing() {
        let mut slab = Slab::default();
        let first = slab.insert('a');
        assert_eq!(slab.remove(first), Some('a'));
        let second = slab.insert('b');
        assert_eq!(slab.get(first), None);
        assert_eq!(slab.get(second), Some(&'b'));
        assert_eq!(slab.remove(first), None);
        assert_eq!(Number::from_bits(second.to_bits()), second);
        assert_eq!(slab.len(), 1);
    }

    #[test]
    fn a_number_tells_its_slab_and_is_none_of_another_one() {
        let mut slabs: Vec<Slab<u8>> = (0..Number::SLABS_MAX).map(Slab::new).collect();
        for value in 0..3 {
            for (place, slab) in slabs.iter_mut().enumerate() {
                let number = slab.insert(value);
                assert_eq!(usize::from(number.slab()), place);
                assert!(number.to_bits() < 1 << Number::BITS);
                if value == 1 {
                    slab.remove(number);
                }
            }
        }
        let number = slabs[3].next_number();
        assert_eq!(slabs[3].insert(9), number);
        assert_eq!(slabs[2].get(number), None);
        // A generation that is used up begins anew within its slab.
        slabs[7].entries[0].generation |= Number::GENERATION_MASK;
        let last = Number {
            index: 0,
            generation: slabs[7].entries[0].generation,
        };
        assert_eq!(slabs[7].remove(last), Some(0));
        assert_eq!(slabs[7].insert(5).slab(), 7);
    }
}
