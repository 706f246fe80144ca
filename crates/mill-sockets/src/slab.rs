//! Values with numbers: the number of a value that was removed is used again, with another generation.

/// The place of a value. A stale one finds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Number {
    index: u32,
    generation: u32,
}

impl Number {
    /// Bits that [`Self::to_bits`] uses: what holds a number has room for a kind.
    pub const BITS: u32 = 61;
    const GENERATION_MASK: u32 = (1 << (Self::BITS - 32)) - 1;

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
}

#[derive(Debug)]
struct Entry<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            vacant: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    /// The number that the next inserted value will have.
    pub(crate) fn next_number(&self) -> Number {
        let index = self.vacant.last().copied();
        let index = index.unwrap_or(u32::try_from(self.entries.len()).unwrap_or(u32::MAX));
        let entry = self.entries.get(index as usize);
        Number {
            index,
            generation: entry.map_or(0, |entry| entry.generation),
        }
    }

    pub(crate) fn insert(&mut self, value: T) -> Number {
        let number = self.next_number();
        self.vacant.pop();
        match self.entries.get_mut(number.index as usize) {
            Some(entry) => entry.value = Some(value),
            None => self.entries.push(Entry {
                generation: 0,
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
        entry.generation = (entry.generation + 1) & Number::GENERATION_MASK;
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
}
