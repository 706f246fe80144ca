//! What the groups of one name share through reloads.

use super::{Group, PeerSet};
use crate::peer::Peer;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A request keeps the configuration it began with, so that an earlier group may be asked to change while a later one is
/// made, or in force. Changes go to the latest one.
#[derive(Debug, Default)]
pub(super) struct Lineage {
    /// The groups that followed the first one, the latest at the end. Held while servers are changed by the API, or are
    /// taken over by another group.
    followers: Mutex<Vec<Weak<Group>>>,
    /// The next peer's number.
    next_id: AtomicU32,
    /// Peers that were removed, and may still be used.
    removed: Mutex<Vec<Arc<Peer>>>,
    /// Held while the `state` file is written.
    saving: Mutex<()>,
    /// Hashes of the texts that the `state` file has had. It holds no other lock.
    texts: Mutex<HashSet<u64>>,
}

impl Group {
    /// The group as another configuration has it. Requests of this configuration that change servers, from now on change
    /// those of the new group.
    #[must_use]
    pub fn followed_by(
        &self,
        config: &Arc<mill_config::config::Upstream>,
        awaits_health_checks: bool,
    ) -> Arc<Self> {
        let mut followers = lock(&self.lineage.followers);
        let latest = latest_of(&followers);
        let previous = latest.as_deref().unwrap_or(self);
        let group = Arc::new(Self::checked(config, Some(previous), awaits_health_checks));
        followers.retain(|follower| follower.strong_count() > 0);
        followers.push(Arc::downgrade(&group));
        group
    }

    /// Has the servers of the latest group changed. No other change comes between, and none is lost because of a reload.
    pub fn amend<R>(self: &Arc<Self>, change: impl FnOnce(&Self) -> R) -> (Arc<Self>, R) {
        let followers = lock(&self.lineage.followers);
        let latest = latest_of(&followers).unwrap_or_else(|| Arc::clone(self));
        let result = change(&latest);
        (latest, result)
    }

    /// Passes the text of the `state` file as of now to `write`; no other worker does that meanwhile, so that the last text
    /// is written last.
    pub fn save<R>(&self, write: impl FnOnce(&[u8]) -> R) -> R {
        let _saving = lock(&self.lineage.saving);
        let latest = latest_of(&lock(&self.lineage.followers));
        let text = latest.as_deref().unwrap_or(self).state();
        self.lineage.note(&text);
        write(text.as_bytes())
    }

    /// How many servers were removed that requests still use, by the API, by a name or by a reload.
    pub fn zombies(&self) -> usize {
        let removed = self.lineage.used();
        removed.iter().filter(|peer| peer.active() > 0).count()
    }

    /// Takes over from the group before: its servers, if the `state` file was read before the last change of them was
    /// written. A text that this group has never written was put there by other means, and counts.
    pub(super) fn take_over(&self, previous: Option<&Self>) {
        let state = self.config.state.as_ref();
        let text = state.map(|_| self.state());
        if let Some(previous) = previous {
            let is_same = state.is_some() && previous.config.state.as_ref() == state;
            let is_outdated = |text: &String| self.lineage.has_had(text);
            if is_same && text.as_ref().is_some_and(is_outdated) {
                let (names, set) = (previous.names(), previous.peers());
                let mut peers = self.lock();
                (peers.names, peers.set) = (names, set);
            }
            self.lineage.retire(&previous.peers(), &self.peers());
        }
        text.iter().for_each(|text| self.lineage.note(text));
    }
}

impl Lineage {
    pub(super) fn new_id(&self) -> u32 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Peers of `former` are used no more by new requests, unless `now` has them.
    pub(super) fn retire(&self, former: &PeerSet, now: &PeerSet) {
        let gone = former.all().filter(|peer| !now.has(peer));
        self.used().extend(gone.map(Arc::clone));
    }

    /// The removed peers, without those that nothing uses.
    fn used(&self) -> MutexGuard<'_, Vec<Arc<Peer>>> {
        let mut removed = lock(&self.removed);
        removed.retain(|peer| peer.active() > 0 || Arc::strong_count(peer) > 1);
        removed
    }

    fn note(&self, text: &str) {
        let mut texts = lock(&self.texts);
        if texts.len() >= TEXTS_MAX {
            texts.clear();
        }
        texts.insert(hash(text));
    }

    fn has_had(&self, text: &str) -> bool {
        lock(&self.texts).contains(&hash(text))
    }
}

fn latest_of(followers: &[Weak<Group>]) -> Option<Arc<Group>> {
    followers.iter().rev().find_map(Weak::upgrade)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Texts that are remembered: far more than are written while a configuration is loaded.
const TEXTS_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use mill_config::config::Upstream;
    use mill_config::config::upstream::{UpstreamAddress, UpstreamServer, UpstreamTarget};
    use mill_config::{Memory, Options, Text, load};

    /// A group whose `state` file has this text.
    fn upstream(state: &str) -> Arc<Upstream> {
        let conf = "events {} http { upstream a { state /state; } }";
        let options = Options::default();
        let source = Memory::new().with(&*options.conf_file(), conf);
        let loaded = load(&source.with("/state", state), &options).expect("it is valid");
        Arc::clone(&loaded.config.http.expect("there is one").upstreams[0])
    }

    fn add(group: &Group, last: u8) -> u32 {
        let address = UpstreamAddress::Ip(([10, 0, 0, last], 80).into());
        let target = UpstreamTarget::Addresses(vec![address.clone()]);
        let name = Text::from(format!("10.0.0.{last}").as_bytes());
        let added = group.add_peer(&address, &UpstreamServer::new(name, target));
        added.expect("it is new").id
    }

    /// Number and last byte of the address of each server.
    fn shown(group: &Group) -> String {
        let peers = group.peers();
        let shown = peers.all().map(|peer| {
            let address = peer.address.to_string();
            format!("{}={}", peer.id, address.trim_start_matches("10.0.0."))
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    fn save(group: &Group) -> String {
        group.save(|text| String::from_utf8_lossy(text).into_owned())
    }

    #[test]
    fn a_file_that_was_read_before_the_last_change_does_not_undo_it() {
        let first = Arc::new(Group::new(&upstream("server 10.0.0.1;\n"), None));
        let read_early = upstream("server 10.0.0.1;\n");
        first.amend(|group| add(group, 2));
        let read_later = upstream(&save(&first));
        first.amend(|group| group.remove_peer(0, |_| Ok::<_, ()>(())));
        save(&first);
        for read in [read_early, read_later] {
            let second = first.followed_by(&read, false);
            assert_eq!(shown(&second), "1=2:80");
        }
    }

    #[test]
    fn a_file_that_others_have_written_counts() {
        let first = Arc::new(Group::new(&upstream("server 10.0.0.1;\n"), None));
        first.amend(|group| add(group, 2));
        save(&first);
        let written = upstream("server 10.0.0.2;\nserver 10.0.0.7 weight=3;\n");
        let second = first.followed_by(&written, false);
        assert_eq!(shown(&second), "1=2:80 2=7:80");
        // What that was once is nothing new.
        save(&second);
        second.amend(|group| add(group, 8));
        assert_eq!(
            shown(&second.followed_by(&written, false)),
            "1=2:80 2=7:80 3=8:80"
        );
    }

    #[test]
    fn an_earlier_group_has_the_latest_one_changed_and_saved() {
        let config = upstream("server 10.0.0.1;\n");
        let first = Arc::new(Group::new(&config, None));
        let second = first.followed_by(&config, false);
        let (changed, id) = first.amend(|group| add(group, 2));
        assert!(Arc::ptr_eq(&changed, &second));
        assert_eq!(
            (id, shown(&second), shown(&first)),
            (1, "0=1:80 1=2:80".into(), "0=1:80".into())
        );
        assert_eq!(save(&first), "server 10.0.0.1;\nserver 10.0.0.2;\n");
        let third = first.followed_by(&config, false);
        assert_eq!(shown(&third), "0=1:80 1=2:80");
        // A configuration that has not come into force is passed over.
        drop(third);
        let (changed, id) = first.amend(|group| add(group, 3));
        assert!(Arc::ptr_eq(&changed, &second));
        assert_eq!((id, shown(&second)), (2, "0=1:80 1=2:80 2=3:80".into()));
    }
}
