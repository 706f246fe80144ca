//! The bytes that are carried: of one long random text, so that no two places are alike.

use mill_sim::random::Random;
use std::sync::LazyLock;

/// Bytes of the largest transfer.
pub const LARGEST_BYTES: usize = 10 * 1000 * 1000;

/// A transfer's bytes: so many, from a place that its number determines.
pub fn of(number: u32, len: usize) -> &'static [u8] {
    let first = number as usize * 7919 % SPREAD_BYTES;
    &TEXT[first..first + len]
}

/// A hash of a byte stream that is fed piece by piece (FNV-1a, 64 bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hash {
    state: u64,
    len: u64,
}

impl Hash {
    pub const fn new() -> Self {
        Self {
            state: 0xcbf2_9ce4_8422_2325,
            len: 0,
        }
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        self.len += bytes.len() as u64;
        self.state = bytes.iter().fold(self.state, |state, byte| {
            (state ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
    }

    /// Length and hash, as a server of ours sends them.
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        let (len, state) = bytes.split_at_mut(8);
        len.copy_from_slice(&self.len.to_be_bytes());
        state.copy_from_slice(&self.state.to_be_bytes());
        bytes
    }
}

impl Default for Hash {
    fn default() -> Self {
        Self::new()
    }
}

/// Bytes: how far apart transfers begin.
const SPREAD_BYTES: usize = 2_000_000;

static TEXT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut random = Random::new(1);
    let words = (LARGEST_BYTES + SPREAD_BYTES) / 8;
    (0..words)
        .flat_map(|_| random.next().to_le_bytes())
        .collect()
});
