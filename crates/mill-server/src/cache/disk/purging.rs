//! Purges of a zone: each is a file until no file is left that it concerns, so that what it removed does not come back
//! with another process.

use super::{Disk, PURGES, State, wake};
use crate::cache::{CacheZone, StoredAnswer};
use crate::local::Local;
use crate::log::{Errno, Text};
use mill_cache::disk::{DiskName, DiskPurge};
use mill_cache::{PurgeMode, Zone};
use mill_config::config::LogLevel;
use mill_runtime::engine::Engine;
use mill_runtime::files::{FileError, Files, Visibility};

/// What is to be purged.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purge<'a> {
    All,
    /// What is kept under this key.
    Key(&'a [u8]),
    /// All whose key begins so.
    Prefix(&'a [u8]),
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

fn purge_memory(
    zone: &Zone<StoredAnswer>,
    purge: Purge<'_>,
    mode: PurgeMode,
) -> Result<(), NotPurged> {
    match purge {
        Purge::All => zone.purge_all(mode),
        Purge::Key(key) => {
            // A longer key is never kept.
            if let Ok(key) = zone.key(key) {
                zone.purge_key(key, mode);
            }
        }
        Purge::Prefix(prefix) => {
            let prefix = prefix.to_vec();
            let begins = move |key: &[u8]| key.starts_with(&prefix);
            let purged = zone.purge_matching(Box::new(begins), mode);
            return purged.map_err(|_| NotPurged::TooMany);
        }
        Purge::Tag(tag) => {
            zone.purge_tag(tag, mode);
        }
    }
    Ok(())
}

impl Purge<'_> {
    fn on_disk(self) -> DiskPurge {
        match self {
            Self::All => DiskPurge::All,
            Self::Key(key) => DiskPurge::Key(DiskName::hash_of(key)),
            Self::Prefix(prefix) => DiskPurge::Prefix(prefix.into()),
            Self::Tag(tag) => DiskPurge::Tag(tag.into()),
        }
    }
}

impl Disk {
    /// All of it happens under the lock: a file that has a greater number is written by what sees memory purged.
    fn purge<E: Engine>(
        &self,
        purge: Purge<'_>,
        mode: PurgeMode,
        zone: &Zone<StoredAnswer>,
        local: &Local<E>,
    ) -> Result<(), NotPurged> {
        let mut state = self.state();
        let number = Self::take_number(&mut state, local);
        let mut wanted = purge.on_disk();
        if !state.purges.note(number, wanted.clone()) {
            // Too many of them: all files go, which is one.
            wanted = DiskPurge::All;
            let _ = state.purges.note(number, wanted.clone());
        }
        let written = self.write_purge(number, &wanted, local);
        let purged = purge_memory(zone, purge, mode);
        self.take_out(&wanted, &mut state);
        wake(state);
        if let Err(error) = written {
            let (call, code) = (error.call, Errno(error.code));
            let path = self.numbered(PURGES, number);
            let text = format_args!("{call} \"{}\" failed ({code})", Text(&path));
            local.log_error(None, LogLevel::Crit, text);
            return Err(NotPurged::Unwritten);
        }
        purged
    }

    /// What the index itself tells is removed at once.
    fn take_out(&self, purge: &DiskPurge, state: &mut State) {
        let gone = match purge {
            DiskPurge::All => self.index.clear(),
            DiskPurge::Key(hash) => self.index.remove_key(*hash),
            DiskPurge::Prefix(_) | DiskPurge::Tag(_) => return,
        };
        state.leaving.extend(gone);
    }

    /// A few bytes, which go to the page cache: they outlive the process, not the system.
    fn write_purge<E: Engine>(
        &self,
        number: u64,
        purge: &DiskPurge,
        local: &Local<E>,
    ) -> Result<(), FileError> {
        let files = local.engine.files();
        let path = self.numbered(PURGES, number);
        let temporary = [&path, &b".new"[..]].concat();
        let file = files.create(&temporary, FOLDERS, Visibility::Named)?;
        let written = files.write_at(&file, 0, &purge.emit());
        let named = written.and_then(|()| files.rename(&temporary, &path));
        if named.is_err() {
            // The first error is the one to tell.
            let _ = files.remove(&temporary);
        }
        named
    }
}

/// Folders that are made for it: its own, and the zone's.
const FOLDERS: usize = 2;
