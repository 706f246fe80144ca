//! A group of servers, shared by all workers.

use crate::peer::Peer;
use mill_config::config::Upstream;
use mill_config::config::upstream::UpstreamTarget;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// An `upstream` block, or the one host of a `proxy_pass`, while it is in use.
#[derive(Debug)]
pub struct Group {
    config: Arc<Upstream>,
    /// Grows with each change of `peers`, so that workers notice it without the lock.
    generation: AtomicU32,
    peers: Mutex<Arc<PeerSet>>,
}

/// The peers of a group at one time.
#[derive(Debug, Default)]
pub struct PeerSet {
    pub primary: Vec<Arc<Peer>>,
    pub backup: Vec<Arc<Peer>>,
}

impl Group {
    /// The group as the configuration has it. A peer that `previous` had with the same address and name of the server
    /// keeps its figures.
    pub fn new(config: &Arc<Upstream>, previous: Option<&Self>) -> Self {
        let known = previous.map(Self::peers);
        let mut set = PeerSet::default();
        for server in &config.servers {
            let UpstreamTarget::Addresses(addresses) = &server.target else {
                continue;
            };
            for address in addresses {
                let same = known.as_ref().and_then(|known| {
                    let mut all = known.primary.iter().chain(&known.backup);
                    all.find(|peer| peer.address == *address && peer.settings == *server)
                });
                let peer =
                    same.map_or_else(|| Arc::new(Peer::new(address.clone(), server)), Arc::clone);
                let list = if server.backup {
                    &mut set.backup
                } else {
                    &mut set.primary
                };
                list.push(peer);
            }
        }
        Self {
            config: Arc::clone(config),
            generation: AtomicU32::new(0),
            peers: Mutex::new(Arc::new(set)),
        }
    }

    pub fn config(&self) -> &Arc<Upstream> {
        &self.config
    }

    /// The peers as of now.
    pub fn peers(&self) -> Arc<PeerSet> {
        Arc::clone(&self.peers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes with the peers.
    pub fn generation(&self) -> u32 {
        self.generation.load(Ordering::Acquire)
    }

    /// Puts other peers in the place of these. Requests that use a peer that is gone end as they would.
    pub fn replace(&self, set: PeerSet) {
        *self.peers.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(set);
        self.generation.fetch_add(1, Ordering::Release);
    }
}

impl PeerSet {
    /// How many servers a request may try.
    pub fn tries(&self) -> u32 {
        let usable = |peers: &[Arc<Peer>]| peers.iter().filter(|peer| !peer.settings.down).count();
        u32::try_from(usable(&self.primary) + usable(&self.backup)).unwrap_or(u32::MAX)
    }
}
