//! The choice of a server for a request, by nginx's methods.

/// The peers that are chosen among.
mod candidates;

/// The chosen server.
mod selected;

/// What a request has tried.
mod tried;

/// Smooth weighted round robin.
mod round_robin;

/// Fewest connections for its weight.
mod least_conn;

/// Least time and connections for its weight.
mod least_time;

/// By the client's address.
mod ip_hash;

/// By a key.
mod hash;

/// By a key, on a ring of points.
mod consistent;

/// By chance.
mod random;

/// CRC-32, which the hashes are made of.
pub(crate) mod crc32;

pub use selected::{Outcome, Selected};
pub use tried::Tried;

use crate::group::{Group, PeerSet};
use crate::peer::{Peer, PeerState};
use candidates::Candidates;
use consistent::Ring;
use mill_config::config::upstream::{Balancing, RandomChoice, ResponseTime};
use mill_runtime::time::Instant;
use random::Chance;
use std::net::IpAddr;
use std::sync::Arc;
use tried::Probes;

/// A worker's state for one group: whose turn it is.
#[derive(Debug)]
pub struct Selector {
    group: Arc<Group>,
    generation: u32,
    /// How many servers a request may try.
    tries: u32,
    primary: Candidates,
    backup: Candidates,
    /// nginx's `current_weight` of each.
    primary_weights: Vec<i64>,
    backup_weights: Vec<i64>,
    chance: Chance,
}

/// What a choice depends on.
#[derive(Debug)]
pub struct Selection<'a> {
    /// The evaluated key of `hash`.
    pub key: &'a [u8],
    /// The client's address, for `ip_hash`.
    pub client: Option<IpAddr>,
    /// [`Peer::session_id`] of the server that the request's session is bound to; empty without one.
    pub session: &'a [u8],
    pub tried: &'a Tried,
    pub now: Instant,
}

/// Why there is no server that may be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPeer {
    /// A server that was not tried has as many connections as it may have: it can be waited for.
    Busy,
    Down,
}

impl Selection<'_> {
    fn is_bound_to(&self, peer: &Peer) -> bool {
        !self.session.is_empty() && peer.session_id().as_bytes() == self.session
    }
}

impl Selector {
    /// `seed` sets where a random method begins.
    pub fn new(group: &Arc<Group>, seed: u64) -> Self {
        let generation = group.generation();
        let set = group.peers();
        let (primary, backup) = candidates(group, &set);
        Self {
            generation,
            tries: set.tries(),
            primary_weights: vec![0; primary.peers.len()],
            backup_weights: vec![0; backup.peers.len()],
            primary,
            backup,
            group: Arc::clone(group),
            chance: Chance::new(seed),
        }
    }

    /// Chooses among the primary servers, then among those for backup.
    pub fn select(&mut self, selection: &Selection<'_>) -> Result<Selected, NoPeer> {
        self.refresh();
        let is_single = self.primary.peers.len() == 1 && self.backup.peers.is_empty();
        loop {
            let chosen = if is_single {
                self.only(selection)
            } else {
                let primary = self.choose(false, selection);
                primary.or_else(|| self.choose(true, selection))
            };
            let peer = chosen.ok_or_else(|| self.refusal(selection))?;
            // Another worker may have taken the last connection in the meantime.
            if let Some(selected) = self.enter(peer, is_single, selection.now) {
                return Ok(selected);
            }
        }
    }

    /// How many servers a request may try.
    pub fn tries(&mut self) -> u32 {
        self.refresh();
        self.tries
    }

    /// As in nginx: the only server is tried however often it has failed.
    fn only(&self, selection: &Selection<'_>) -> Option<Arc<Peer>> {
        let peer = self.primary.peers.first()?;
        let state = peer.state(selection.now);
        let takes = matches!(state, PeerState::Up | PeerState::Unavailable)
            || state == PeerState::Draining && selection.is_bound_to(peer);
        (takes && peer.has_room() && !selection.tried.has(peer)).then(|| Arc::clone(peer))
    }

    /// The primary server, or that for backup, which the session is bound to, else which the method prefers.
    fn choose(&mut self, backup: bool, selection: &Selection<'_>) -> Option<Arc<Peer>> {
        let (candidates, weights) = if backup {
            (&self.backup, &mut self.backup_weights)
        } else {
            (&self.primary, &mut self.primary_weights)
        };
        if !selection.session.is_empty()
            && let Some(bound) = candidates.bound(selection)
        {
            return Some(Arc::clone(bound));
        }
        let mut turn = Turn {
            candidates,
            weights,
            tried: selection.tried,
            now: selection.now,
        };
        // Those for backup have a ring of their own, on which the key is looked for anew.
        let mut probes = match backup {
            true => Probes::default(),
            false => selection.tried.probes.get(),
        };
        let balancing = &self.group.config().balancing;
        let chosen = turn.choose(balancing, selection, &mut probes, &mut self.chance);
        if !backup {
            selection.tried.probes.set(probes);
        }
        Some(Arc::clone(candidates.peers.get(chosen?)?))
    }

    /// Begins a try, if the server may have one more connection.
    fn enter(&self, peer: Arc<Peer>, is_single: bool, now: Instant) -> Option<Selected> {
        if !peer.load().begin(peer.settings.max_conns, now) {
            return None;
        }
        if !is_single {
            peer.load().check(&peer.settings, now);
        }
        let waiting = match &self.group.config().balancing {
            Balancing::LeastTime {
                time,
                inflight: true,
            } => Some(*time),
            _ => None,
        };
        Some(Selected::new(peer, is_single, waiting, now))
    }

    fn refusal(&self, selection: &Selection<'_>) -> NoPeer {
        let mut all = self.primary.peers.iter().chain(&self.backup.peers);
        let is_awaited = |peer: &Arc<Peer>| {
            let is_up = peer.state(selection.now) == PeerState::Up;
            is_up && !peer.has_room() && !selection.tried.has(peer)
        };
        if all.any(is_awaited) {
            NoPeer::Busy
        } else {
            NoPeer::Down
        }
    }

    /// Takes over the group's peers, if they have changed. Those which stay keep their place in the order.
    fn refresh(&mut self) {
        let generation = self.group.generation();
        if generation == self.generation {
            return;
        }
        self.generation = generation;
        let set = self.group.peers();
        let (primary, backup) = candidates(&self.group, &set);
        let carried = |weights: &[i64], from: &Candidates, to: &Candidates| {
            let of = |peer: &Arc<Peer>| {
                let mut known = from.peers.iter().zip(weights);
                let same = known.find(|(known, _)| known.shares_load_with(peer));
                same.map_or(0, |(_, weight)| *weight)
            };
            to.peers.iter().map(of).collect()
        };
        self.primary_weights = carried(&self.primary_weights, &self.primary, &primary);
        self.backup_weights = carried(&self.backup_weights, &self.backup, &backup);
        (self.primary, self.backup, self.tries) = (primary, backup, set.tries());
    }
}

fn candidates(group: &Group, set: &PeerSet) -> (Candidates, Candidates) {
    let ring = |peers| match &group.config().balancing {
        Balancing::Hash {
            consistent: true, ..
        } => Ring::new(peers),
        _ => Ring::default(),
    };
    let of = |peers| Candidates::new(peers, ring(peers));
    (of(&set.primary), of(&set.backup))
}

/// One choice among some peers.
struct Turn<'a> {
    candidates: &'a Candidates,
    weights: &'a mut [i64],
    tried: &'a Tried,
    now: Instant,
}

impl<'a> Turn<'a> {
    /// The index of the peer that the method prefers.
    fn choose(
        &mut self,
        balancing: &Balancing,
        selection: &Selection<'_>,
        probes: &mut Probes,
        chance: &mut Chance,
    ) -> Option<usize> {
        match balancing {
            Balancing::RoundRobin => self.round_robin(),
            Balancing::LeastConn => least_conn::pick(self),
            Balancing::LeastTime { time, inflight } => least_time::pick(self, *time, *inflight),
            Balancing::IpHash => ip_hash::pick(self, probes, selection.client),
            Balancing::Hash { .. } if selection.key.is_empty() => self.round_robin(),
            Balancing::Hash {
                consistent: true, ..
            } => consistent::pick(self, probes, selection.key),
            Balancing::Hash { .. } => hash::pick(self, probes, selection.key),
            Balancing::Random(RandomChoice::One) => random::pick(self, probes, chance),
            Balancing::Random(RandomChoice::TwoLeastConn) => {
                random::pick_of_two(self, probes, chance, least_conn::compare)
            }
            Balancing::Random(RandomChoice::TwoLeastTime(time)) => {
                let time: ResponseTime = *time;
                let compare = |a: &Peer, b: &Peer, now| least_time::compare(a, b, time, false, now);
                random::pick_of_two(self, probes, chance, compare)
            }
        }
    }

    fn peers(&self) -> &'a [Arc<Peer>] {
        &self.candidates.peers
    }

    /// Whether a peer may take the request.
    fn is_eligible(&self, index: usize) -> bool {
        let peer = &self.candidates.peers[index];
        !self.tried.has(peer) && peer.is_available(self.now)
    }

    fn round_robin(&mut self) -> Option<usize> {
        round_robin::pick(self, |_, _| true)
    }

    /// Asks for candidates until one may take the request; after 20 that may not, round robin decides, now and later.
    fn probe(
        &mut self,
        probes: &mut Probes,
        mut next: impl FnMut(&mut Probes) -> usize,
    ) -> Option<usize> {
        while !probes.are_over() && !self.candidates.peers.is_empty() {
            let index = next(probes);
            if self.is_eligible(index) {
                return Some(index);
            }
            probes.count += 1;
        }
        self.round_robin()
    }
}

#[cfg(test)]
mod tests;
