//! Smooth weighted round robin: each peer gains its weight, the one that has most takes the request and pays the total.

use super::Turn;
use crate::peer::Peer;

/// Among the eligible peers that `takes_part` is true for.
pub(super) fn pick(
    turn: &mut Turn<'_>,
    takes_part: impl Fn(usize, &Peer) -> bool,
) -> Option<usize> {
    let peers = turn.peers();
    let mut best: Option<usize> = None;
    let mut total = 0;
    for (index, peer) in peers.iter().enumerate() {
        if !turn.is_eligible(index) || !takes_part(index, peer) {
            continue;
        }
        let weight = i64::try_from(peer.effective_weight(turn.now)).unwrap_or(i64::MAX);
        turn.weights[index] += weight;
        total += weight;
        peer.load().forgive();
        if best.is_none_or(|best| turn.weights[index] > turn.weights[best]) {
            best = Some(index);
        }
    }
    let best = best?;
    turn.weights[best] -= total;
    Some(best)
}
