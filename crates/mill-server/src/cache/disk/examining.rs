//! The examiner of a folder: finds the files of earlier processes again, and carries purges out that need a look into
//! files.

use super::reading::OpenObject;
use super::{Disk, PURGES, TEMPORARY, wake};
use crate::cache::{CacheZone, now};
use crate::local::Local;
use crate::log::Text;
use mill_cache::disk::{DiskName, DiskPurge, DiskPurges};
use mill_config::config::LogLevel;
use mill_runtime::engine::Engine;
use mill_runtime::files::{DirectoryEntry, FileErrorKind, FileKind, Files, Symlinks};
use mill_runtime::time::Duration;
use std::rc::Rc;
use std::sync::Weak;

pub(super) async fn examine<E: Engine>(zone: Weak<CacheZone>, local: Rc<Local<E>>) {
    let mut stage = Stage::Opening;
    while let Some(zone) = zone.upgrade() {
        let Some(disk) = zone.disk(&local) else {
            return;
        };
        stage = match stage {
            Stage::Opening => {
                disk.open(&local).await;
                Stage::Loading(Loading::of(disk))
            }
            Stage::Loading(mut loading) => match disk.load_folder(&mut loading, &local).await {
                true => Stage::Loading(loading),
                false => {
                    disk.loaded(&loading, &local);
                    Stage::Purging
                }
            },
            Stage::Purging => {
                drop(zone);
                local.scheduler.sleep(PURGE_INTERVAL).await;
                Stage::Due
            }
            Stage::Due => {
                disk.carry_out(&local).await;
                Stage::Purging
            }
        };
    }
}

enum Stage {
    Opening,
    Loading(Loading),
    Purging,
    Due,
}

/// How far the files of earlier processes are known.
struct Loading {
    /// Folders that are not looked at yet, and how many levels are below each.
    folders: Vec<(Vec<u8>, usize)>,
    files: u64,
    foreign: u64,
    /// Files since the last pause.
    since_pause: u64,
}

impl Loading {
    fn of(disk: &Disk) -> Self {
        let levels = disk.config.levels.iter();
        let levels = levels.filter(|digits| **digits > 0).count();
        Self {
            folders: vec![(disk.config.path.to_vec(), levels)],
            files: 0,
            foreign: 0,
            since_pause: 0,
        }
    }
}

impl Disk {
    /// Reads the purges of earlier processes; from then on files may be used.
    async fn open<E: Engine>(&self, local: &Local<E>) {
        let listed = local.engine.files().list(&self.folder(PURGES)).await;
        let mut known = Vec::new();
        if let Err(error) = &listed
            && error.kind != FileErrorKind::NotFound
        {
            // Nothing says what was purged: all of it was.
            known.push((self.first_number - 1, DiskPurge::All));
        }
        for entry in listed.unwrap_or_default() {
            let number = str::from_utf8(&entry.name).ok();
            let Some(number) = number.and_then(|name| u64::from_str_radix(name, 16).ok()) else {
                continue;
            };
            let path = self.numbered(PURGES, number);
            let Some(purge) = read_purge(&path, local).await else {
                // Nothing says what it was: all that is older goes.
                known.push((number, DiskPurge::All));
                continue;
            };
            known.push((number, purge));
        }
        let mut state = self.state();
        // Those of this process are noted already.
        known.retain(|(number, _)| !state.purges.has(*number));
        let last = known.iter().map(|(number, _)| *number).max();
        for (number, purge) in known {
            if !state.purges.note(number, purge) {
                let _ = state.purges.note(number, DiskPurge::All);
            }
        }
        if let Some(last) = last.filter(|last| *last >= self.first_number) {
            // The clock went back: numbers do not tell any more what came first.
            state.last_number = state.last_number.max(last);
            let number = Self::take_number(&mut state, local);
            let _ = state.purges.note(number, DiskPurge::All);
        }
        state.is_open = true;
        wake(state);
    }

    /// Looks at one folder; false if none is left.
    async fn load_folder<E: Engine>(&self, loading: &mut Loading, local: &Local<E>) -> bool {
        let Some((folder, levels)) = loading.folders.pop() else {
            return false;
        };
        // One that is not there has no files.
        let listed = local.engine.files().list(&folder).await.unwrap_or_default();
        for entry in listed {
            match entry.metadata.map(|metadata| metadata.kind) {
                Some(FileKind::Directory) if levels > 0 && is_level(&entry.name) => {
                    let below = [&folder, &b"/"[..], &entry.name].concat();
                    loading.folders.push((below, levels - 1));
                }
                Some(FileKind::Regular) if levels == 0 => self.found(&entry, loading, local),
                _ => {}
            }
            self.pause(loading, local).await;
        }
        true
    }

    /// A file of the lowest folders.
    fn found<E: Engine>(&self, entry: &DirectoryEntry, loading: &mut Loading, local: &Local<E>) {
        loading.since_pause += 1;
        let name = DiskName::parse(&entry.name);
        let (Some(name), Some(metadata)) = (name, entry.metadata) else {
            loading.foreign += 1;
            return;
        };
        let mut state = self.state();
        // One from the future was written before the clock was set back.
        let is_future = name.number > state.last_number;
        if name.number >= self.first_number && !is_future {
            // This process has written it meanwhile.
            return;
        }
        let mut leaving = self.index.insert(name, metadata.len, now(local));
        let is_purged = state.purges.concerns_name(&name) == Some(true);
        if is_purged || is_future {
            leaving.extend(self.index.remove(&name));
        } else {
            loading.files += 1;
        }
        state.leaving.extend(leaving);
        wake(state);
    }

    /// `loader_files=` and `loader_sleep=`.
    async fn pause<E: Engine>(&self, loading: &mut Loading, local: &Local<E>) {
        let pace = &self.config.loader;
        if loading.since_pause < pace.files.max(1) {
            return;
        }
        loading.since_pause = 0;
        let sleep = u64::try_from(pace.sleep.as_nanos()).unwrap_or(u64::MAX);
        local.scheduler.sleep(Duration::from_nanos(sleep)).await;
    }

    fn loaded<E: Engine>(&self, loading: &Loading, local: &Local<E>) {
        self.state().is_loaded = true;
        let zone = Text(&self.config.zone);
        let (files, foreign) = (loading.files, loading.foreign);
        let text = format_args!("cache \"{zone}\": {files} files of an earlier process are there");
        local.log_error(None, LogLevel::Notice, text);
        if foreign > 0 {
            let path = Text(&self.config.path);
            let text = format_args!(
                "cache \"{zone}\": {foreign} files in \"{path}\" are of another program, and left alone"
            );
            local.log_error(None, LogLevel::Warn, text);
        }
    }

    /// Looks for files that purges concern, and forgets purges once there are none.
    async fn carry_out<E: Engine>(&self, local: &Local<E>) {
        self.remove_left_over(local).await;
        let (purges, last) = {
            let state = self.state();
            (state.purges.clone(), state.purges.last())
        };
        if purges.is_empty() {
            return;
        }
        let mut place = Some(0);
        while let Some(from) = place {
            let (names, next) = self.index.slice(from, SLICE);
            for name in names {
                let concerned = match purges.concerns_name(&name) {
                    Some(concerned) => concerned,
                    None => self.is_concerned(&name, &purges, local).await,
                };
                if concerned {
                    self.leave(self.index.remove(&name));
                }
            }
            place = next;
            local.scheduler.yield_now().await;
        }
        self.settle(last, local).await;
    }

    async fn is_concerned<E: Engine>(
        &self,
        name: &DiskName,
        purges: &DiskPurges,
        local: &Local<E>,
    ) -> bool {
        match OpenObject::open(&self.path_of(name), local).await {
            Ok(object) => match object.record() {
                Ok(record) => purges.concerns(name, record.key, &record.tags),
                Err(_) => true,
            },
            Err(error) => {
                self.unreadable(name, error, local);
                // A file that cannot be read now may be readable later.
                !error.is_gone()
            }
        }
    }

    /// Forgets purges up to this one once what they concern is removed, and nothing older is being written.
    async fn settle<E: Engine>(&self, last: u64, local: &Local<E>) {
        let settled = {
            let mut state = self.state();
            let is_busy = state.is_removing || !state.leaving.is_empty();
            if is_busy || state.writing.is_some_and(|number| number <= last) {
                // The next look finds it done.
                return;
            }
            state.purges.settle(last)
        };
        for number in settled {
            // A file that stays purges nothing that is newer.
            let _ = local
                .engine
                .files()
                .discard(&self.numbered(PURGES, number))
                .await;
        }
    }

    /// Files that a process which was killed has not finished.
    async fn remove_left_over<E: Engine>(&self, local: &Local<E>) {
        let files = local.engine.files();
        let folder = self.folder(TEMPORARY);
        let listed = files.list(&folder).await.unwrap_or_default();
        let now_s = local.scheduler.wall_clock().seconds;
        for entry in listed {
            let modified = entry.metadata.map(|metadata| metadata.modified.seconds);
            let is_left = modified.is_some_and(|modified| modified + LEFT_AFTER_S < now_s);
            if is_left && entry.name.len() == 16 {
                let _ = files
                    .discard(&[&folder, &b"/"[..], &entry.name].concat())
                    .await;
            }
        }
    }
}

async fn read_purge<E: Engine>(path: &[u8], local: &Local<E>) -> Option<DiskPurge> {
    let files = local.engine.files();
    let (file, metadata) = files.open(path, Symlinks::Follow).await.ok()?;
    let len = usize::try_from(metadata.len).ok();
    let mut bytes = vec![0; len.filter(|len| *len <= PURGE_BYTES_MAX)?];
    let mut done = 0;
    while done < bytes.len() {
        let rest = bytes.get_mut(done..)?;
        match files.read_at(&file, done as u64, rest).await.ok()? {
            0 => return None,
            count => done += count,
        }
    }
    DiskPurge::parse(&bytes).ok()
}

/// One or two hexadecimal digits.
fn is_level(name: &[u8]) -> bool {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    (1..=2).contains(&name.len()) && name.iter().all(is_digit)
}

/// Time between two looks for purges that are to be carried out.
const PURGE_INTERVAL: Duration = Duration::from_secs(1);

/// Files whose names are taken at once.
const SLICE: usize = 256;

/// Bytes of a purge's file: longer ones are no prefix of a key.
const PURGE_BYTES_MAX: usize = 64 * 1024;

/// A temporary file that nothing has written to for so many seconds is left over.
const LEFT_AFTER_S: i64 = 120;
