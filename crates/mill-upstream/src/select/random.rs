//! `random`: by chance and weight; with `two`, the better one of two.

use super::Turn;
use super::tried::Probes;
use crate::peer::Peer;
use mill_runtime::time::Instant;
use std::cmp::Ordering;

pub(super) fn pick(turn: &mut Turn<'_>, probes: &mut Probes, chance: &mut Chance) -> Option<usize> {
    let candidates = turn.candidates;
    turn.probe(probes, |_| {
        candidates.at_weight(chance.below(candidates.total_weight()))
    })
}

pub(super) fn pick_of_two(
    turn: &mut Turn<'_>,
    probes: &mut Probes,
    chance: &mut Chance,
    compare: impl Fn(&Peer, &Peer, Instant) -> Ordering,
) -> Option<usize> {
    let candidates = turn.candidates;
    let mut first = None;
    while !probes.are_over() && !candidates.peers.is_empty() {
        let index = candidates.at_weight(chance.below(candidates.total_weight()));
        if first != Some(index) && turn.is_eligible(index) {
            let Some(other) = first else {
                first = Some(index);
                continue;
            };
            let order = compare(&candidates.peers[index], &candidates.peers[other], turn.now);
            return Some(if order == Ordering::Greater {
                other
            } else {
                index
            });
        }
        probes.count += 1;
    }
    turn.round_robin()
}

/// A sequence of numbers that look random: SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Debug)]
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}
