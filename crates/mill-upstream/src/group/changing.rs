//! Servers that are added, changed and removed while they are used. Each change is whole: two at once follow one another.

use super::{Group, PeerSet};
use crate::peer::Peer;
use mill_config::config::upstream::{UpstreamAddress, UpstreamServer};
use std::sync::Arc;

impl Group {
    /// Adds a server; `None` if the group has one with this address.
    pub fn add_peer(
        &self,
        address: &UpstreamAddress,
        settings: &UpstreamServer,
    ) -> Option<Arc<Peer>> {
        let added = self.try_change(|known| {
            if known.all().any(|peer| peer.address == *address) {
                return Err(());
            }
            let peer = Peer::new(address.clone(), settings).numbered(self.new_id());
            let peer = Arc::new(peer);
            let mut set = PeerSet::default();
            let all = known.all().chain([&peer]);
            all.for_each(|peer| set.add(Arc::clone(peer)));
            Ok((set, peer))
        });
        added.ok()
    }

    /// Gives the server of this number other settings, and maybe another address; `None` if there is none. With another
    /// address it is another server, of which nothing is counted yet.
    pub fn change_peer<E>(
        &self,
        id: u32,
        change: impl FnOnce(&Peer, &PeerSet) -> Result<(UpstreamAddress, UpstreamServer), E>,
    ) -> Option<Result<Arc<Peer>, E>> {
        let changed: Result<_, Option<E>> = self.try_change(|known| {
            let former = known.all().find(|peer| peer.id == id).ok_or(None)?;
            let (address, settings) = change(former, known).map_err(Some)?;
            let peer = Arc::new(if address == former.address {
                former.changed(&settings)
            } else {
                Peer::new(address, &settings).numbered(id)
            });
            let mut set = PeerSet::default();
            for known in known.all() {
                set.add(Arc::clone(if known.id == id { &peer } else { known }));
            }
            Ok((set, peer))
        });
        match changed {
            Ok(peer) => Some(Ok(peer)),
            Err(refused) => refused.map(Err),
        }
    }

    /// Removes the server of this number, if `check` allows it; `None` if there is none. Requests that use it end as they
    /// would.
    pub fn remove_peer<E>(
        &self,
        id: u32,
        check: impl FnOnce(&Peer) -> Result<(), E>,
    ) -> Option<Result<(), E>> {
        let removed: Result<_, Option<E>> = self.try_change(|known| {
            let former = known.all().find(|peer| peer.id == id).ok_or(None)?;
            check(former).map_err(Some)?;
            let mut set = PeerSet::default();
            let others = known.all().filter(|peer| peer.id != id);
            others.for_each(|peer| set.add(Arc::clone(peer)));
            Ok((set, ()))
        });
        match removed {
            Ok(()) => Some(Ok(())),
            Err(refused) => refused.map(Err),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_config::Text;
    use mill_config::config::Upstream;
    use mill_config::config::upstream::UpstreamTarget;

    fn group() -> Group {
        let addresses = vec![address(1), address(2)];
        Group::new(&Arc::new(Upstream::evaluated(b"app", 80, addresses)), None)
    }

    fn address(last: u8) -> UpstreamAddress {
        UpstreamAddress::Ip(([10, 0, 0, last], 80).into())
    }

    fn server(last: u8) -> UpstreamServer {
        let target = UpstreamTarget::Addresses(vec![address(last)]);
        UpstreamServer::new(Text::from(format!("10.0.0.{last}").as_bytes()), target)
    }

    /// Number and address of each server.
    fn shown(group: &Group) -> String {
        let peers = group.peers();
        let all = peers.all();
        let all = all.map(|peer| format!("{}={}", peer.id, peer.address));
        all.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn numbers_stay_and_are_not_used_again() {
        let group = group();
        assert_eq!(shown(&group), "0=10.0.0.1:80 1=10.0.0.2:80");
        assert_eq!(group.remove_peer(0, |_| Ok::<_, ()>(())), Some(Ok(())));
        let added = group.add_peer(&address(3), &server(3)).expect("it is new");
        assert_eq!(added.id, 2);
        assert!(group.add_peer(&address(3), &server(3)).is_none());
        assert_eq!(shown(&group), "1=10.0.0.2:80 2=10.0.0.3:80");
        assert_eq!(group.generation(), 2);
        let again = Group::new(group.config(), Some(&group));
        assert_eq!(shown(&again), "3=10.0.0.1:80 1=10.0.0.2:80");
    }

    #[test]
    fn other_settings_keep_what_is_counted_and_another_address_does_not() {
        let group = group();
        let change = |to: UpstreamAddress| {
            let change = |peer: &Peer, _: &PeerSet| {
                let settings = UpstreamServer {
                    weight: 7,
                    ..peer.settings.clone()
                };
                Ok::<_, ()>((to, settings))
            };
            let changed = group.change_peer(1, change);
            changed.expect("it is there").expect("it is allowed")
        };
        let former = Arc::clone(&group.peers().primary[1]);
        let same = change(address(2));
        assert_eq!((same.id, same.settings.weight), (1, 7));
        assert!(same.shares_load_with(&former));
        let other = change(address(9));
        assert_eq!(other.id, 1);
        assert!(!other.shares_load_with(&former));
        assert_eq!(shown(&group), "0=10.0.0.1:80 1=10.0.0.9:80");
    }

    #[test]
    fn what_is_refused_or_not_there_changes_nothing() {
        let group = group();
        assert_eq!(group.remove_peer(1, |_| Err("no")), Some(Err("no")));
        assert_eq!(group.remove_peer(5, |_| Err("no")), None);
        let refused = group.change_peer(1, |_, _| Err("no"));
        assert!(matches!(refused, Some(Err("no"))));
        assert!(group.change_peer(5, |_, _| Err("no")).is_none());
        assert_eq!(group.generation(), 0);
    }
}
