//! Purges of a zone: in memory, and of its folder.

use super::{CacheZone, StoredAnswer, compressed};
use crate::local::Local;
use crate::proxy::caching::parts;
use mill_cache::disk::is_of_host;
use mill_cache::{KeyPredicate, PurgeMode, Zone};
use mill_runtime::engine::Engine;

/// What is to be purged.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purge<'a> {
    All,
    /// What is kept under this key.
    Key(&'a [u8]),
    /// All whose key begins so.
    Prefix(&'a [u8]),
    /// All whose key names this host.
    Host(&'a [u8]),
    Tag(&'a [u8]),
}

/// Why a purge is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotPurged {
    /// Too many by prefix are not carried out yet.
    TooMany,
    /// Memory is purged; what is on disk may come back when the process ends before it is removed.
    Unwritten,
}

impl CacheZone {
    /// Purges, in effect when it returns, also for what a fill under way brings.
    ///
    /// # Errors
    /// If a limit or the disk forbids it.
    pub(crate) fn purge<E: Engine>(
        &self,
        purge: Purge<'_>,
        mode: PurgeMode,
        local: &Local<E>,
    ) -> Result<(), NotPurged> {
        let zone = self.store(local);
        match self.disk(local) {
            None => purge_memory(zone, purge, mode),
            Some(disk) => disk.purge(purge, mode, zone, local),
        }
    }
}

pub(super) fn purge_memory(
    zone: &Zone<StoredAnswer>,
    purge: Purge<'_>,
    mode: PurgeMode,
) -> Result<(), NotPurged> {
    match purge {
        Purge::All => zone.purge_all(mode),
        Purge::Key(key) => {
            // A longer key is never kept.
            if let Ok(known) = zone.key(key) {
                zone.purge_key(known, mode);
                purge_related(zone, key);
            }
        }
        Purge::Prefix(prefix) => {
            let prefix = prefix.to_vec();
            return purge_matching(zone, Box::new(move |key| key.starts_with(&prefix)), mode);
        }
        Purge::Host(host) => {
            let host = host.to_vec();
            return purge_matching(zone, Box::new(move |key| is_of_host(key, &host)), mode);
        }
        Purge::Tag(tag) => {
            zone.purge_tag(tag, mode);
        }
    }
    Ok(())
}

fn purge_matching(
    zone: &Zone<StoredAnswer>,
    concerns: KeyPredicate,
    mode: PurgeMode,
) -> Result<(), NotPurged> {
    let purged = zone.purge_matching(concerns, mode);
    purged.map_err(|_| NotPurged::TooMany)
}

/// Takes away what is kept beside the answers for a key.
fn purge_related(zone: &Zone<StoredAnswer>, key: &[u8]) {
    for related in [parts::key_of(key), compressed::key_of(key)] {
        if let Ok(related) = zone.key(&related) {
            zone.purge_related(related, PurgeMode::Remove);
        }
    }
}
