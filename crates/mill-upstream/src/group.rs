//! A group of servers, shared by all workers.

use crate::peer::Peer;
use crate::resolver::members::Member;
use mill_config::config::Upstream;
use mill_config::config::upstream::{UpstreamAddress, UpstreamServer, UpstreamTarget};
use std::collections::BTreeSet;
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
                // Until it is resolved, its name stands for what it stood for before.
                let known = known.iter().flat_map(|known| known.all());
                for peer in known.filter(|peer| is_of(peer, server)) {
                    set.add(Arc::clone(peer));
                }
                continue;
            };
            for address in addresses {
                let same = known.as_ref().and_then(|known| {
                    let is_same = |peer: &&Arc<Peer>| {
                        peer.address == *address && peer.settings.name == server.name
                    };
                    let same = || known.all().filter(is_same);
                    // The second of two that are listed alike is the second one again.
                    same().nth(set.all().filter(is_same).count())
                });
                set.add(match same {
                    Some(same) if same.settings == *server => Arc::clone(same),
                    Some(same) => Arc::new(same.with_settings(server)),
                    None => Arc::new(Peer::new(address.clone(), server)),
                });
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
        self.change(|_| set);
    }

    /// Has the peers replaced by what `change` makes of them, with no other change in between.
    pub fn change(&self, change: impl FnOnce(&PeerSet) -> PeerSet) {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        *peers = Arc::new(change(&peers));
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// The name of a server stands for these from now on. Peers that it stood for before keep their figures; they and those
    /// of other servers keep their order, new ones follow those of the servers before.
    pub fn set_members(&self, server: &UpstreamServer, members: &BTreeSet<Member>) {
        let before = self
            .config
            .servers
            .iter()
            .take_while(|other| *other != server);
        let before: Vec<_> = before.collect();
        self.change(|known| {
            let mut set = PeerSet::default();
            let is_before = |peer: &&Arc<Peer>| before.iter().any(|server| is_of(peer, server));
            let is_other = |peer: &&Arc<Peer>| !is_of(peer, server);
            for peer in known.all().filter(is_other).filter(is_before) {
                set.add(Arc::clone(peer));
            }
            for member in members {
                let mut former = known.all().filter(|peer| is_of(peer, server));
                let same = former.find(|peer| is_member(peer, server, member));
                set.add(same.map_or_else(|| new_member(server, member), Arc::clone));
            }
            for peer in known.all().filter(is_other).filter(|peer| !is_before(peer)) {
                set.add(Arc::clone(peer));
            }
            set
        });
    }
}

/// Whether the peer comes from this server of the configuration, whatever SRV records say of its weight and rank.
fn is_of(peer: &Peer, server: &UpstreamServer) -> bool {
    let settings = UpstreamServer {
        weight: server.weight,
        backup: server.backup,
        ..peer.settings.clone()
    };
    settings == *server
}

fn is_member(peer: &Peer, server: &UpstreamServer, member: &Member) -> bool {
    peer.address == UpstreamAddress::Ip(member.address)
        && peer.settings == member_settings(server, member)
}

fn new_member(server: &UpstreamServer, member: &Member) -> Arc<Peer> {
    let address = UpstreamAddress::Ip(member.address);
    Arc::new(Peer::new(address, &member_settings(server, member)))
}

fn member_settings(server: &UpstreamServer, member: &Member) -> UpstreamServer {
    UpstreamServer {
        weight: member.weight.map_or(server.weight, u32::from),
        backup: member.backup,
        ..server.clone()
    }
}

impl PeerSet {
    pub fn all(&self) -> impl Iterator<Item = &Arc<Peer>> {
        self.primary.iter().chain(&self.backup)
    }

    fn add(&mut self, peer: Arc<Peer>) {
        let list = if peer.settings.backup {
            &mut self.backup
        } else {
            &mut self.primary
        };
        list.push(peer);
    }

    /// How many servers a request may try.
    pub fn tries(&self) -> u32 {
        let usable = |peers: &[Arc<Peer>]| peers.iter().filter(|peer| !peer.settings.down).count();
        u32::try_from(usable(&self.primary) + usable(&self.backup)).unwrap_or(u32::MAX)
    }
}
