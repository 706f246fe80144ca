//! Purges outlive the process: each is a file until no file is left that it concerns, so that what it removed does not come
//! back with another process.

use super::{Disk, PURGES, State, wake};
use crate::cache::StoredAnswer;
use crate::cache::purging::{NotPurged, Purge, purge_memory};
use crate::local::Local;
use crate::log::{Errno, Text};
use mill_cache::disk::{DiskName, DiskPurge};
use mill_cache::{PurgeMode, Zone};
use mill_config::config::LogLevel;
use mill_runtime::engine::Engine;
use mill_runtime::files::{FileError, Files, Visibility};

impl Purge<'_> {
    fn on_disk(self) -> DiskPurge {
        match self {
            Self::All => DiskPurge::All,
            Self::Key(key) => DiskPurge::Key(DiskName::hash_of(key)),
            Self::Prefix(prefix) => DiskPurge::Prefix(prefix.into()),
            Self::Host(host) => DiskPurge::Host(host.into()),
            Self::Tag(tag) => DiskPurge::Tag(tag.into()),
        }
    }
}

impl Disk {
    /// All of it happens under the lock: a file that has a greater number is written by what sees memory purged.
    pub(in crate::cache) fn purge<E: Engine>(
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
            DiskPurge::Prefix(_) | DiskPurge::Host(_) | DiskPurge::Tag(_) => return,
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
