//! How often keys that are not kept were asked for: `…_cache_min_uses`.

use hashbrown::HashMap;
use std::sync::{Mutex, PoisonError};

/// Counts by the key's hash. When there are too many it begins anew: a key that is asked for often is soon there again.
#[derive(Debug, Default)]
pub(crate) struct Uses(Mutex<HashMap<Box<[u8]>, u64>>);

impl Uses {
    /// Counts one more; whether that makes `least`. Such a key is forgotten: it is kept from now on.
    pub(crate) fn reach(&self, key: &[u8], least: u64) -> bool {
        if least <= 1 {
            return true;
        }
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.get(key).copied().unwrap_or(0) + 1;
        if count >= least {
            counts.remove(key);
            return true;
        }
        if counts.len() >= KEYS_MAX {
            counts.clear();
        }
        counts.insert(key.into(), count);
        false
    }
}

/// Keys that are counted at once.
const KEYS_MAX: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_kept_from_the_use_that_reaches_the_least() {
        let uses = Uses::default();
        assert!(uses.reach(b"a", 1));
        assert_eq!(
            [(); 4].map(|()| uses.reach(b"b", 3)),
            [false, false, true, false]
        );
        for key in 0..=KEYS_MAX {
            uses.reach(&key.to_ne_bytes(), 3);
        }
        assert!(uses.0.lock().unwrap().len() <= KEYS_MAX);
    }
}
