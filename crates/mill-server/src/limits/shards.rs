//! A table in parts, each behind a lock of its own: workers seldom wait for each other.

use crate::local::Local;
use mill_runtime::engine::Engine;
use std::hash::{DefaultHasher, Hasher};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The parts. They are made by the first worker that uses them, which draws the seed: a client cannot choose keys that all fall
/// into one part, or into one place of it.
#[derive(Debug)]
pub(super) struct Shards<T> {
    bytes: u64,
    parts: OnceLock<Parts<T>>,
}

#[derive(Debug)]
struct Parts<T> {
    seed: [u64; 2],
    /// 2^n of them.
    parts: Box<[Mutex<T>]>,
}

/// The hash of a key, which also tells its part.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyHash(pub(super) u64);

impl<T> Shards<T> {
    /// Of `bytes` in all.
    pub(super) const fn new(bytes: u64) -> Self {
        let parts = OnceLock::new();
        Self { bytes, parts }
    }

    /// Locks the part of a key; `make` makes each of so many bytes.
    pub(super) fn lock<E: Engine>(
        &self,
        key: &[u8],
        local: &Local<E>,
        make: impl Fn(u64) -> T,
    ) -> (KeyHash, MutexGuard<'_, T>) {
        let Parts { seed, parts } = self.parts.get_or_init(|| {
            let count = count(self.bytes);
            Parts {
                seed: [local.engine.random(), local.engine.random()],
                parts: (0..count)
                    .map(|_| Mutex::new(make(self.bytes / count)))
                    .collect(),
            }
        });
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(seed[0]);
        hasher.write_u64(seed[1]);
        hasher.write(key);
        let hash = hasher.finish();
        (KeyHash(hash), lock(part(parts, hash)))
    }

    /// Locks the part of a key again.
    pub(super) fn lock_again(&self, hash: KeyHash) -> Option<MutexGuard<'_, T>> {
        let Parts { parts, .. } = self.parts.get()?;
        Some(lock(part(parts, hash.0)))
    }

    /// Passes each part to `look`, one after the other.
    pub(super) fn for_each(&self, mut look: impl FnMut(&mut T)) {
        let parts = self.parts.get().into_iter();
        parts
            .flat_map(|all| &all.parts)
            .for_each(|part| look(&mut lock(part)));
    }
}

/// The table within a part uses the lower bits, and the highest seven.
fn part<T>(parts: &[Mutex<T>], hash: u64) -> &Mutex<T> {
    let index = usize::try_from(hash >> 40).unwrap_or(0) & (parts.len() - 1);
    &parts[index]
}

fn lock<T>(part: &Mutex<T>) -> MutexGuard<'_, T> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

/// So many parts that each has room for a thousand keys: their numbers then differ by little, and a part is full when the zone
/// nearly is.
const fn count(bytes: u64) -> u64 {
    let wanted = bytes / PART_BYTES_MIN;
    let wanted = if wanted > PARTS_MAX {
        PARTS_MAX
    } else {
        wanted
    };
    if wanted < 2 {
        return 1;
    }
    1 << wanted.ilog2()
}

/// A thousand keys of 128 bytes.
const PART_BYTES_MIN: u64 = 128 * 1024;

const PARTS_MAX: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_zones_have_one_part_and_large_ones_not_too_many() {
        let check = |bytes, expected| assert_eq!(count(bytes), expected);
        check(0, 1);
        check(32 << 10, 1);
        check((256 << 10) - 1, 1);
        check(256 << 10, 2);
        check(1 << 20, 8);
        check(10 << 20, 64);
        check(1 << 40, 64);
    }
}
