//! The primary peers or the backups as a worker sees them, with what the methods compute of them once.

use super::Selection;
use super::consistent::Ring;
use crate::peer::{Peer, PeerState};
use std::sync::Arc;

/// Peers in the order of the text.
#[derive(Debug)]
pub(super) struct Candidates {
    pub(super) peers: Vec<Arc<Peer>>,
    /// For each peer, the sum of its weight and those of all before it.
    weights: Vec<u64>,
    /// Of `hash … consistent`.
    pub(super) ring: Ring,
}

impl Candidates {
    pub(super) fn new(peers: &[Arc<Peer>], ring: Ring) -> Self {
        let weights = peers.iter().scan(0, |total, peer| {
            *total += u64::from(peer.settings.weight);
            Some(*total)
        });
        Self {
            weights: weights.collect(),
            peers: peers.to_vec(),
            ring,
        }
    }

    /// The server that the request's session is bound to, unless it was tried or gets no requests; it may be draining.
    pub(super) fn bound(&self, selection: &Selection<'_>) -> Option<&Arc<Peer>> {
        let mut all = self.peers.iter();
        let peer = all.find(|peer| selection.is_bound_to(peer))?;
        let state = peer.state(selection.now);
        let takes = matches!(state, PeerState::Up | PeerState::Draining);
        (takes && peer.has_room() && !selection.tried.has(peer)).then_some(peer)
    }

    /// The sum of all weights; never 0 if there is a peer.
    pub(super) fn total_weight(&self) -> u64 {
        self.weights.last().copied().unwrap_or(0)
    }

    /// The index of the peer whose share of the weights `at`, less than the total, lies in.
    pub(super) fn at_weight(&self, at: u64) -> usize {
        self.weights.partition_point(|end| *end <= at)
    }
}
