//! Servers that are names: those of the configuration with `resolve`, and those that the API adds.

use super::{Group, PeerSet, is_of};
use crate::peer::Peer;
use mill_config::config::upstream::UpstreamServer;
use std::sync::Arc;

/// A name, whose addresses are peers of the group. They are told by [`Group::set_members`].
#[derive(Debug)]
pub struct NamedServer {
    /// Unique among the group's servers, and the same one through reloads.
    pub id: u32,
    pub settings: UpstreamServer,
}

impl Group {
    /// The names as of now.
    pub fn names(&self) -> Vec<Arc<NamedServer>> {
        self.lock().names.clone()
    }

    /// The name of this number.
    pub fn name(&self, id: u32) -> Option<Arc<NamedServer>> {
        let mut names = self.names().into_iter();
        names.find(|name| name.id == id)
    }

    /// Adds a name, which stands for no server at first; `None` if the group has it.
    pub fn add_name(&self, settings: UpstreamServer) -> Option<Arc<NamedServer>> {
        let mut peers = self.lock();
        let is_same = |known: &Arc<NamedServer>| {
            let known = &known.settings;
            known.target == settings.target && known.service == settings.service
        };
        if peers.names.iter().any(is_same) {
            return None;
        }
        let id = self.lineage.new_id();
        let name = Arc::new(NamedServer { id, settings });
        peers.names.push(Arc::clone(&name));
        let set = PeerSet::of(peers.set.all());
        self.put(&mut peers, set);
        Some(name)
    }

    /// Gives the name of this number, and the servers that it stands for, other settings; `None` if there is none.
    pub fn change_name<E>(
        &self,
        id: u32,
        change: impl FnOnce(&UpstreamServer) -> Result<UpstreamServer, E>,
    ) -> Option<Result<Arc<NamedServer>, E>> {
        let mut peers = self.lock();
        let known = peers.names.iter_mut().find(|name| name.id == id)?;
        let settings = match change(&known.settings) {
            Ok(settings) => settings,
            Err(refused) => return Some(Err(refused)),
        };
        let name = Arc::new(NamedServer { id, settings });
        let former = std::mem::replace(known, Arc::clone(&name));
        let changed = |peer: &Arc<Peer>| match is_of(peer, &former.settings) {
            true => Arc::new(peer.with_settings(&member_settings(&name.settings, peer))),
            false => Arc::clone(peer),
        };
        let all: Vec<_> = peers.set.all().map(changed).collect();
        self.put(&mut peers, PeerSet::of(&all));
        Some(Ok(name))
    }

    /// Removes the name of this number with the servers that it stands for; false if there is none.
    pub fn remove_name(&self, id: u32) -> bool {
        let mut peers = self.lock();
        let Some(at) = peers.names.iter().position(|name| name.id == id) else {
            return false;
        };
        let gone = peers.names.remove(at);
        let others = peers.set.all().filter(|peer| !is_of(peer, &gone.settings));
        let set = PeerSet::of(others);
        self.put(&mut peers, set);
        true
    }
}

/// SRV records say the weight and the rank of a server.
fn member_settings(name: &UpstreamServer, peer: &Peer) -> UpstreamServer {
    let weight = match name.service {
        Some(_) => peer.configured.weight,
        None => name.weight,
    };
    UpstreamServer {
        weight,
        backup: peer.configured.backup,
        ..name.clone()
    }
}

impl NamedServer {
    /// Whether the peer is one of those which the name stands for.
    pub fn has(&self, peer: &Peer) -> bool {
        is_of(peer, &self.settings)
    }
}
