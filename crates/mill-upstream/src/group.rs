//! A group of servers, shared by all workers.

/// Servers that are added, changed and removed while they are used.
mod changing;

/// What the groups of one name share through reloads.
mod lineage;

/// Servers that are names.
pub mod names;

/// The lines of a `state` file.
mod state;

use crate::peer::Peer;
use crate::resolver::members::Member;
use crate::sessions::Sessions;
use lineage::Lineage;
use mill_config::config::upstream::{UpstreamAddress, UpstreamServer, UpstreamTarget};
use mill_config::config::{Sticky, Upstream};
use names::NamedServer;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An `upstream` block, or the one host of a `proxy_pass`, while it is in use.
#[derive(Debug)]
pub struct Group {
    config: Arc<Upstream>,
    /// A new peer gets no requests before a health check has passed (`mandatory`).
    awaits_health_checks: bool,
    /// Grows with each change of `peers`, so that workers notice it without the lock.
    generation: AtomicU32,
    lineage: Arc<Lineage>,
    /// Idle connections of all workers.
    idle: AtomicUsize,
    peers: Mutex<Peers>,
    /// Requests of all workers that wait in the `queue`.
    queued: AtomicU32,
    /// Requests that it had no room for.
    overflows: AtomicU64,
    /// Of `sticky learn`.
    sessions: Option<Arc<Sessions>>,
}

#[derive(Debug)]
struct Peers {
    set: Arc<PeerSet>,
    names: Vec<Arc<NamedServer>>,
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
        Self::checked(config, previous, false)
    }

    /// The same for a group whose new peers get no requests before a health check has passed, if `awaits_health_checks`.
    pub fn checked(
        config: &Arc<Upstream>,
        previous: Option<&Self>,
        awaits_health_checks: bool,
    ) -> Self {
        let known = previous.map(Self::peers);
        let lineage = previous.map_or_else(Arc::default, |known| Arc::clone(&known.lineage));
        let mut set = PeerSet::default();
        for server in &config.servers {
            let UpstreamTarget::Addresses(addresses) = &server.target else {
                // Until it is resolved, its name stands for what it stood for before.
                let known = known.iter().flat_map(|known| known.all());
                for peer in known.filter(|peer| is_of(peer, server)) {
                    set.add(if peer.settings == *peer.configured {
                        Arc::clone(peer)
                    } else {
                        Arc::new(peer.with_settings(&peer.configured))
                    });
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
                    None => {
                        let peer = Peer::new(address.clone(), server);
                        Arc::new(peer.numbered(lineage.new_id()))
                    }
                });
            }
        }
        if awaits_health_checks {
            await_health_checks(known.as_deref(), &set);
        }
        let names = names(config, previous, &lineage);
        let group = Self {
            config: Arc::clone(config),
            awaits_health_checks,
            generation: AtomicU32::new(0),
            lineage,
            idle: AtomicUsize::new(0),
            peers: Mutex::new(Peers {
                set: Arc::new(set),
                names,
            }),
            queued: AtomicU32::new(0),
            overflows: AtomicU64::new(0),
            sessions: sessions(config, previous),
        };
        group.take_over(previous);
        group
    }

    /// The block's name, or the host with its port.
    pub fn label(&self) -> String {
        let name = self.config.name.display();
        match self.config.port {
            0 => name.into_owned(),
            port => format!("{name}:{port}"),
        }
    }

    pub fn config(&self) -> &Arc<Upstream> {
        &self.config
    }

    /// The peers as of now.
    pub fn peers(&self) -> Arc<PeerSet> {
        Arc::clone(&self.lock().set)
    }

    /// Requests that wait now, and those that the `queue` had no room for.
    pub fn queue_counts(&self) -> (u32, u64) {
        let (queued, overflows) = (&self.queued, &self.overflows);
        (
            queued.load(Ordering::Relaxed),
            overflows.load(Ordering::Relaxed),
        )
    }

    /// Counts of the servers and of the queue begin anew.
    pub fn reset_counts(&self) {
        self.overflows.store(0, Ordering::Relaxed);
        self.peers()
            .all()
            .for_each(|peer| peer.load().reset_counts());
    }

    /// Counts one more request that waits, if the `queue` has room.
    pub fn enter_queue(&self) -> bool {
        let most = self.config.queue.as_ref().map_or(0, |queue| queue.number);
        let more = |queued: u32| (queued < most).then_some(queued + 1);
        let counter = &self.queued;
        let entered = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        if entered.is_err() && most > 0 {
            self.overflows.fetch_add(1, Ordering::Relaxed);
        }
        entered.is_ok()
    }

    /// The opposite of [`Self::enter_queue`].
    pub fn leave_queue(&self) {
        self.queued.fetch_sub(1, Ordering::Relaxed);
    }

    /// The sessions of `sticky learn`, for all workers.
    pub const fn sessions(&self) -> Option<&Arc<Sessions>> {
        self.sessions.as_ref()
    }

    /// Idle connections of all workers.
    pub fn idle_connections(&self) -> usize {
        self.idle.load(Ordering::Relaxed)
    }

    /// A worker has so many idle connections now; before, it had so many others.
    pub fn count_idle(&self, before: usize, now: usize) {
        if now > before {
            self.idle.fetch_add(now - before, Ordering::Relaxed);
        } else if now < before {
            self.idle.fetch_sub(before - now, Ordering::Relaxed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Peers> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn new_id(&self) -> u32 {
        self.lineage.new_id()
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
        let _: Result<(), Infallible> = self.try_change(|set| Ok((change(set), ())));
    }

    /// The same, unless `change` refuses it.
    pub fn try_change<T, E>(
        &self,
        change: impl FnOnce(&PeerSet) -> Result<(PeerSet, T), E>,
    ) -> Result<T, E> {
        let mut peers = self.lock();
        let (set, result) = change(&peers.set)?;
        self.put(&mut peers, set);
        Ok(result)
    }

    /// Puts other peers in the place of these, which are locked.
    fn put(&self, peers: &mut Peers, set: PeerSet) {
        if self.awaits_health_checks {
            await_health_checks(Some(&peers.set), &set);
        }
        let former = std::mem::replace(&mut peers.set, Arc::new(set));
        self.lineage.retire(&former, &peers.set);
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// The name of a server stands for these from now on. Peers that it stood for before keep their figures; they and those
    /// of other servers keep their order, new ones follow those of the servers before. A name that was removed stands for
    /// nothing.
    pub fn set_members(&self, server: &UpstreamServer, members: &BTreeSet<Member>) {
        let before = self
            .config
            .servers
            .iter()
            .take_while(|other| *other != server);
        let before: Vec<_> = before.collect();
        let mut peers = self.lock();
        if !peers.names.iter().any(|name| name.settings == *server) {
            return;
        }
        let known = Arc::clone(&peers.set);
        let set = {
            let mut set = PeerSet::default();
            let is_before = |peer: &&Arc<Peer>| before.iter().any(|server| is_of(peer, server));
            let is_other = |peer: &&Arc<Peer>| !is_of(peer, server);
            for peer in known.all().filter(is_other).filter(is_before) {
                set.add(Arc::clone(peer));
            }
            for member in members {
                let former = || known.all().filter(|peer| is_of(peer, server));
                let same = former().find(|peer| is_member(peer, server, member));
                // SRV records give it another weight or rank now.
                let address = UpstreamAddress::Ip(member.address);
                let stays =
                    |peer: &Peer| members.iter().any(|other| is_member(peer, server, other));
                let is_changed =
                    |peer: &&Arc<Peer>| peer.address == address && !stays(peer) && !set.has(peer);
                let changed = || {
                    let former = former().find(is_changed)?;
                    Some(former.with_settings(&member_settings(server, member)))
                };
                let new = || new_member(server, member).numbered(self.new_id());
                let peer = same.map(Arc::clone);
                set.add(peer.unwrap_or_else(|| Arc::new(changed().unwrap_or_else(new))));
            }
            for peer in known.all().filter(is_other).filter(|peer| !is_before(peer)) {
                set.add(Arc::clone(peer));
            }
            set
        };
        self.put(&mut peers, set);
    }
}

/// The names of the configuration. One that `previous` had as well keeps its number.
fn names(config: &Upstream, previous: Option<&Group>, lineage: &Lineage) -> Vec<Arc<NamedServer>> {
    let known = previous.map(Group::names).unwrap_or_default();
    let is_name = |server: &&UpstreamServer| matches!(server.target, UpstreamTarget::Name { .. });
    let names = config.servers.iter().filter(is_name);
    let numbered = names.map(|server| {
        let same = known.iter().find(|known| known.settings == *server);
        let new = || NamedServer {
            id: lineage.new_id(),
            settings: server.clone(),
        };
        same.map_or_else(|| Arc::new(new()), Arc::clone)
    });
    numbered.collect()
}

/// The peers that are not known yet get no requests before a health check has passed.
fn await_health_checks(known: Option<&PeerSet>, set: &PeerSet) {
    let is_known = |peer: &Peer| known.is_some_and(|known| known.has(peer));
    let new = set.all().filter(|peer| !is_known(peer));
    new.for_each(|peer| peer.load().await_health_check());
}

/// The sessions of `sticky learn`: those of the group before, if its zone has the same name.
fn sessions(config: &Upstream, previous: Option<&Group>) -> Option<Arc<Sessions>> {
    let zone_of = |config: &Upstream| match &config.sticky {
        Some(Sticky::Learn(learn)) => Some(learn.zone.clone()),
        _ => None,
    };
    let zone = zone_of(config)?;
    let same = previous.filter(|previous| zone_of(&previous.config) == Some(zone));
    let known = same.and_then(Group::sessions);
    Some(known.map_or_else(Arc::default, Arc::clone))
}

/// Whether the peer comes from this server of the configuration, whatever SRV records say of its weight and rank.
fn is_of(peer: &Peer, server: &UpstreamServer) -> bool {
    if server.service.is_none() {
        return *peer.configured == *server;
    }
    let settings = UpstreamServer {
        weight: server.weight,
        backup: server.backup,
        ..(*peer.configured).clone()
    };
    settings == *server
}

fn is_member(peer: &Peer, server: &UpstreamServer, member: &Member) -> bool {
    peer.address == UpstreamAddress::Ip(member.address)
        && *peer.configured == member_settings(server, member)
}

fn new_member(server: &UpstreamServer, member: &Member) -> Peer {
    let address = UpstreamAddress::Ip(member.address);
    Peer::new(address, &member_settings(server, member))
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

    /// Whether the peer is one of these, maybe with other settings.
    pub fn has(&self, peer: &Peer) -> bool {
        self.all().any(|known| known.shares_load_with(peer))
    }

    fn of<'p>(peers: impl IntoIterator<Item = &'p Arc<Peer>>) -> Self {
        let mut set = Self::default();
        peers.into_iter().for_each(|peer| set.add(Arc::clone(peer)));
        set
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
