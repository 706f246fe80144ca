//! The choice of a server for a request.

/// Smooth weighted round robin.
mod round_robin;

use crate::group::{Group, PeerSet};
use crate::peer::Peer;
use mill_runtime::time::Instant;
use round_robin::RoundRobin;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A worker's state for one group: whose turn it is.
#[derive(Debug)]
pub struct Selector {
    group: Arc<Group>,
    generation: u32,
    peers: Arc<PeerSet>,
    primary: RoundRobin,
    backup: RoundRobin,
}

/// What a choice depends on.
#[derive(Debug)]
pub struct Selection<'a> {
    /// The evaluated key of `hash`.
    pub key: &'a [u8],
    /// The client's address, for `ip_hash`.
    pub client: Option<IpAddr>,
    pub tried: &'a Tried,
    pub now: Instant,
}

/// The servers that a request has tried.
#[derive(Debug, Default)]
pub struct Tried(Vec<Arc<Peer>>);

/// There is no server that may be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPeer;

/// A chosen server. It counts as active until this is dropped.
#[derive(Debug)]
pub struct Selected {
    peer: Arc<Peer>,
    /// The group has no other one: failures do not make it unavailable.
    is_single: bool,
}

/// How a try ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server, or the way to it, is to blame.
    Failed,
    /// It says nothing about the server: the client has gone.
    Unknown,
}

impl Selector {
    /// `seed` sets where a random method begins.
    pub fn new(group: &Arc<Group>, _seed: u64) -> Self {
        Self {
            generation: group.generation(),
            peers: group.peers(),
            group: Arc::clone(group),
            primary: RoundRobin::default(),
            backup: RoundRobin::default(),
        }
    }

    /// Chooses among the primary servers, then among those for backup.
    pub fn select(&mut self, selection: &Selection<'_>) -> Result<Selected, NoPeer> {
        self.refresh();
        let peers = &self.peers;
        let is_single = peers.primary.len() == 1 && peers.backup.is_empty();
        let chosen = if is_single {
            // As in nginx: the only server is tried however often it has failed.
            let only = peers.primary.first();
            only.filter(|peer| !peer.settings.down && peer.has_room() && !selection.tried.has(peer))
        } else {
            let primary = self.primary.choose(&peers.primary, selection);
            primary.or_else(|| self.backup.choose(&peers.backup, selection))
        };
        let peer = Arc::clone(chosen.ok_or(NoPeer)?);
        peer.enter(selection.now);
        Ok(Selected { peer, is_single })
    }

    /// How many servers a request may try.
    pub fn tries(&mut self) -> u32 {
        self.refresh();
        self.peers.tries()
    }

    fn refresh(&mut self) {
        let generation = self.group.generation();
        if generation != self.generation {
            self.generation = generation;
            self.peers = self.group.peers();
        }
    }
}

impl Tried {
    pub fn has(&self, peer: &Arc<Peer>) -> bool {
        self.0.iter().any(|tried| Arc::ptr_eq(tried, peer))
    }

    pub fn add(&mut self, selected: &Selected) {
        self.0.push(Arc::clone(&selected.peer));
    }

    /// The last one may be tried again: only a kept connection to it had failed.
    pub fn forget_last(&mut self) {
        self.0.pop();
    }
}

impl Selected {
    pub const fn peer(&self) -> &Arc<Peer> {
        &self.peer
    }

    /// The head of its answer is here.
    pub fn answered(&self, status: u16) {
        self.peer.succeed();
        let class = usize::from(status / 100).wrapping_sub(1);
        if let Some(counter) = self.peer.counters.responses.get(class) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The try has failed; the server is free. Returns whether it is unavailable from now on.
    pub fn report(self, outcome: Outcome, now: Instant) -> bool {
        outcome == Outcome::Failed && !self.is_single && self.peer.fail(now)
    }
}

impl Drop for Selected {
    fn drop(&mut self) {
        self.peer.leave();
    }
}
