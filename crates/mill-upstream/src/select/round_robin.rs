//! Smooth weighted round robin, as nginx has it.
//!
//! Each choice adds a server's weight to its current one; the greatest is chosen, and loses the sum of all. So a server
//! of weight 5 beside two of weight 1 is chosen in the order a a b a c a a, and not five times in a row.

use super::Selection;
use crate::peer::Peer;
use std::sync::Arc;

/// The current weights, in the order of the peers.
#[derive(Debug, Default)]
pub(super) struct RoundRobin {
    current: Vec<i64>,
}

impl RoundRobin {
    /// Chooses among the available peers that were not tried.
    pub(super) fn choose<'p>(
        &mut self,
        peers: &'p [Arc<Peer>],
        selection: &Selection<'_>,
    ) -> Option<&'p Arc<Peer>> {
        self.current.resize(peers.len(), 0);
        let (mut total, mut best) = (0, None);
        for (index, peer) in peers.iter().enumerate() {
            if selection.tried.has(peer) || !peer.is_available(selection.now) {
                continue;
            }
            let weight = peer.take_effective_weight();
            let Some(current) = self.current.get_mut(index) else {
                continue;
            };
            *current += weight;
            total += weight;
            if best.is_none_or(|(_, most)| *current > most) {
                best = Some((index, *current));
            }
        }
        let (index, _) = best?;
        if let Some(current) = self.current.get_mut(index) {
            *current -= total;
        }
        peers.get(index)
    }
}
