//! `least_conn`: the peer with the fewest connections for its weight; among equal ones, round robin.

use super::{Turn, round_robin};
use crate::peer::Peer;
use mill_runtime::time::Instant;
use std::cmp::Ordering;
use std::sync::Arc;

pub(super) fn pick(turn: &mut Turn<'_>) -> Option<usize> {
    pick_least(turn, compare)
}

/// Connections for the weight.
pub(super) fn compare(a: &Peer, b: &Peer, now: Instant) -> Ordering {
    let connections = |peer: &Peer| u64::from(peer.load().active());
    (connections(a) * b.weight(now)).cmp(&(connections(b) * a.weight(now)))
}

/// The least of the eligible peers; among equal ones, round robin.
pub(super) fn pick_least(
    turn: &mut Turn<'_>,
    compare: impl Fn(&Peer, &Peer, Instant) -> Ordering,
) -> Option<usize> {
    let now = turn.now;
    let mut best: Option<(usize, &Arc<Peer>)> = None;
    let mut many = false;
    let eligible = |(index, _): &(usize, _)| turn.is_eligible(*index);
    for (index, peer) in turn.peers().iter().enumerate().filter(eligible) {
        match best.map_or(Ordering::Less, |(_, best)| compare(peer, best, now)) {
            Ordering::Less => (best, many) = (Some((index, peer)), false),
            Ordering::Equal => many = true,
            Ordering::Greater => {}
        }
    }
    let (best, _) = best?;
    if !many {
        return Some(best);
    }
    let least = &turn.peers()[best];
    // Other workers change the counts: those before the first are not looked at again, and it takes part in any case.
    let takes_part = |index: usize, peer: &Peer| {
        index == best || (index > best && compare(peer, least, now) == Ordering::Equal)
    };
    round_robin::pick(turn, takes_part)
}
