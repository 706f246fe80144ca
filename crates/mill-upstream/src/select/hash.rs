//! `hash KEY`: the sum of hashes of the key, each time with one more number before it, as Cache::Memcached does.

use super::Turn;
use super::crc32::Crc32;
use super::tried::Probes;
use std::io::Write as _;

pub(super) fn pick(turn: &mut Turn<'_>, probes: &mut Probes, key: &[u8]) -> Option<usize> {
    let candidates = turn.candidates;
    turn.probe(probes, |probes| {
        let hash = probes.hash.unwrap_or(0) + hash_of(probes.rehash, key);
        probes.hash = Some(hash);
        probes.rehash += 1;
        candidates.at_weight(u64::from(hash) % candidates.total_weight())
    })
}

/// Of the key behind the number of the rehash, which is left out if it is 0.
fn hash_of(rehash: u32, key: &[u8]) -> u32 {
    let mut number = [0; 10];
    let mut unused = &mut number[..];
    if rehash > 0 {
        let _ = write!(unused, "{rehash}");
    }
    let unused = unused.len();
    let number = &number[..10 - unused];
    let crc = Crc32::default().update(number).update(key);
    crc.value() >> 16 & 0x7fff
}
