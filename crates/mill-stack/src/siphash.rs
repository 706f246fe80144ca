//! SipHash (Aumasson and Bernstein 2012): a keyed hash whose results cannot be steered without the key.
//!
//! What is hashed here is always a few whole words, which saves the handling of odd bytes.

/// The key, 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(u64, u64);

impl Key {
    pub const fn new(bytes: [u8; 16]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = bytes;
        Self(
            u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            u64::from_le_bytes([i, j, k, l, m, n, o, p]),
        )
    }

    /// A key of its own for each purpose, so that results of one say nothing about those of another.
    #[must_use]
    pub fn derive(self, purpose: u64) -> Self {
        Self(self.secret(&[purpose, 0]), self.secret(&[purpose, 1]))
    }

    /// SipHash-1-3: for tables, where collisions must not be predictable.
    #[inline]
    pub fn table(self, words: &[u64]) -> u64 {
        hash::<1, 3>(self, words)
    }

    /// SipHash-2-4: for values that peers see and must not predict.
    #[inline]
    pub fn secret(self, words: &[u64]) -> u64 {
        hash::<2, 4>(self, words)
    }
}

/// Hashes the words as their bytes in little-endian order.
#[inline]
fn hash<const COMPRESSION: usize, const FINALIZATION: usize>(key: Key, words: &[u64]) -> u64 {
    let mut state = State {
        v0: key.0 ^ 0x736f_6d65_7073_6575,
        v1: key.1 ^ 0x646f_7261_6e64_6f6d,
        v2: key.0 ^ 0x6c79_6765_6e65_7261,
        v3: key.1 ^ 0x7465_6462_7974_6573,
    };
    // The last block holds the length in bytes, modulo 256, in its last byte, and nothing else here.
    let last = (words.len() as u64 * 8) << 56;
    for word in words.iter().chain([&last]) {
        state.v3 ^= word;
        for _ in 0..COMPRESSION {
            state.round();
        }
        state.v0 ^= word;
    }
    state.v2 ^= 0xff;
    for _ in 0..FINALIZATION {
        state.round();
    }
    state.v0 ^ state.v1 ^ state.v2 ^ state.v3
}

struct State {
    v0: u64,
    v1: u64,
    v2: u64,
    v3: u64,
}

impl State {
    #[inline]
    const fn round(&mut self) {
        self.v0 = self.v0.wrapping_add(self.v1);
        self.v1 = self.v1.rotate_left(13) ^ self.v0;
        self.v0 = self.v0.rotate_left(32);
        self.v2 = self.v2.wrapping_add(self.v3);
        self.v3 = self.v3.rotate_left(16) ^ self.v2;
        self.v0 = self.v0.wrapping_add(self.v3);
        self.v3 = self.v3.rotate_left(21) ^ self.v0;
        self.v2 = self.v2.wrapping_add(self.v1);
        self.v1 = self.v1.rotate_left(17) ^ self.v2;
        self.v2 = self.v2.rotate_left(32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const KEY: Key = Key::new([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);

    /// The first `count` words of the bytes 0, 1, 2, …, which the published vectors hash.
    fn words(count: u64) -> Vec<u64> {
        (0..count)
            .map(|word| {
                let at = |byte| u8::try_from(word * 8 + byte).unwrap();
                u64::from_le_bytes([at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)])
            })
            .collect()
    }

    #[test]
    fn results_are_those_of_the_authors_vectors() {
        // vectors_sip64 of the reference implementation, for messages of 0, 8 and 16 bytes.
        let expected = [
            [0x31, 0x0e, 0x0e, 0xdd, 0x47, 0xdb, 0x6f, 0x72],
            [0x62, 0x24, 0x93, 0x9a, 0x79, 0xf5, 0xf5, 0x93],
            [0xdb, 0x9b, 0xc2, 0x57, 0x7f, 0xcc, 0x2a, 0x3f],
        ];
        for (count, expected) in (0..).zip(expected) {
            assert_eq!(KEY.secret(&words(count)).to_le_bytes(), expected, "{count}");
        }
    }

    #[test]
    fn keys_for_different_purposes_have_nothing_in_common() {
        assert_ne!(KEY.derive(1), KEY.derive(2));
        assert_ne!(KEY.table(&[1]), KEY.secret(&[1]));
    }

    /// An independent implementation: the standard library's hashers are SipHash-2-4 and, with a key of zeros,
    /// SipHash-1-3.
    #[test]
    #[expect(deprecated, reason = "its successor has no key")]
    fn results_are_those_of_the_standard_library() {
        extern crate std;
        use core::hash::Hasher as _;
        for count in 0..12 {
            let words = words(count);
            let mut keyed = std::hash::SipHasher::new_with_keys(KEY.0, KEY.1);
            let mut table = std::hash::DefaultHasher::new();
            for word in &words {
                keyed.write(&word.to_le_bytes());
                table.write(&word.to_le_bytes());
            }
            assert_eq!(KEY.secret(&words), keyed.finish());
            assert_eq!(Key(0, 0).table(&words), table.finish());
        }
    }
}
