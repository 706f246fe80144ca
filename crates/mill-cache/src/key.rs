//! What an object is found by.

use std::fmt;

use crate::limits::KEY_BYTES_MAX;
use crate::siphash::siphash;

/// The seed of a zone's hashes, drawn by the caller at random so that peers cannot prepare collisions.
#[derive(Clone, Copy, Debug)]
pub struct Seed(pub [u64; 2]);

impl Seed {
    pub(crate) fn hash(self, bytes: &[u8]) -> u64 {
        siphash(self.0, bytes)
    }
}

/// The bytes of a key with their hash; made by [`Zone::key`](crate::Zone::key). Two keys are equal if all their bytes
/// are: the hash only finds the place, so that 64 bits of it are enough.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    bytes: &'a [u8],
    hash: u64,
}

impl<'a> Key<'a> {
    pub(crate) fn new(seed: Seed, bytes: &'a [u8]) -> Result<Self, KeyTooLong> {
        if bytes.len() > KEY_BYTES_MAX {
            return Err(KeyTooLong);
        }
        let hash = seed.hash(bytes);
        Ok(Self { bytes, hash })
    }

    /// A key whose hash is known.
    pub(crate) fn known(hash: u64, bytes: &'a [u8]) -> Self {
        Self { bytes, hash }
    }

    /// What the caller made the key of.
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    pub(crate) fn hash(self) -> u64 {
        self.hash
    }

    /// Whether this is the key.
    pub(crate) fn is(self, hash: u64, bytes: &[u8]) -> bool {
        self.hash == hash && self.bytes == bytes
    }
}

/// A key of more than [`KEY_BYTES_MAX`] bytes: the request is not cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyTooLong;

impl fmt::Display for KeyTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the key has more than {KEY_BYTES_MAX} bytes")
    }
}

impl std::error::Error for KeyTooLong {}
