//! The keeper of a folder: writes what has become whole, makes room for it, and removes files. One task, so that these
//! come one after the other.

use super::{Disk, TEMPORARY, examining, meta};
use crate::cache::{CacheZone, Kept, StoredAnswer, now};
use crate::local::Local;
use crate::log::{Errno, Text};
use mill_cache::disk::{
    BlockSums, DiskName, HEADER_BYTES, Leaving, RecordParts, emit_header, emit_tail,
};
use mill_cache::{Piece, Zone};
use mill_config::config::LogLevel;
use mill_runtime::engine::Engine;
use mill_runtime::files::{FileErrorKind, FilePiece, Files, StoredPath};
use mill_runtime::spawned::Purpose;
use mill_runtime::tasks::TaskId;
use mill_runtime::time::Duration;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::task::{Poll, Waker};

/// Starts the tasks of a zone's folder, if it has one and nothing looks after it yet. They end with the zone.
pub(crate) fn start<E: Engine>(zone: &Arc<CacheZone>, local: &Rc<Local<E>>) -> Vec<TaskId> {
    let Some(disk) = zone.disk(local) else {
        return Vec::new();
    };
    if disk.is_kept.swap(true, Relaxed) {
        return Vec::new();
    }
    let keeper = keep(Arc::downgrade(zone), Rc::clone(local));
    let examiner = examining::examine(Arc::downgrade(zone), Rc::clone(local));
    let scheduler = &local.scheduler;
    let keeper = scheduler.spawn(Purpose::Background, keeper).ok();
    let examiner = scheduler.spawn(Purpose::Background, examiner).ok();
    if keeper.is_none() || examiner.is_none() {
        let text = format_args!("no task is left to look after the folder of a cache");
        local.log_error(None, LogLevel::Error, text);
    }
    keeper.into_iter().chain(examiner).collect()
}

/// What the keeper does next.
enum Work {
    Remove(Leaving),
    Write(Arc<Kept>),
}

async fn keep<E: Engine>(zone: Weak<CacheZone>, local: Rc<Local<E>>) {
    while let Some(zone) = zone.upgrade() {
        let Some(disk) = zone.disk(&local) else {
            return;
        };
        let store = zone.store(&local);
        match disk.next_work(store, &local).await {
            Some(Work::Remove(leaving)) => disk.remove(leaving, &local).await,
            Some(Work::Write(kept)) => disk.write(&kept, store, &local).await,
            None => {
                disk.keep_free(0, store, &local).await;
            }
        }
    }
}

impl Disk {
    /// The next work; `None` after a while without any.
    async fn next_work<E: Engine>(
        &self,
        store: &Zone<StoredAnswer>,
        local: &Local<E>,
    ) -> Option<Work> {
        let scheduler = &local.scheduler;
        let deadline = scheduler.now() + LOOK_INTERVAL;
        let waker = local.wakes.waker(scheduler.current());
        poll_fn(|_| {
            if let Some(work) = self.take_work(&waker) {
                return Poll::Ready(Some(work));
            }
            let last_used = |hash| store.last_used(hash);
            // Before it is in the index no more: a purge that does not find it there waits until it is removed.
            self.state().is_removing = true;
            let unused = self.index.expire(now(local), last_used);
            // What an earlier process has left may be more than the limit is now.
            if let Some(leaving) = unused.or_else(|| self.index.evict_for(0, last_used)) {
                return Poll::Ready(Some(Work::Remove(leaving)));
            }
            self.state().is_removing = false;
            scheduler.poll_deadline(deadline).map(|_| None)
        })
        .await
    }

    /// What waits; else the waker is woken when something does.
    fn take_work(&self, waker: &Waker) -> Option<Work> {
        let mut state = self.state();
        state.is_removing = false;
        if let Some(leaving) = state.leaving.pop() {
            state.is_removing = true;
            return Some(Work::Remove(leaving));
        }
        // What is written before could have a number below that of a purge that is not known yet.
        let waiting = if state.is_open {
            state.queue.pop_front()
        } else {
            None
        };
        let Some(kept) = waiting else {
            state.keeper = Some(waker.clone());
            return None;
        };
        state.queue_bytes = state.queue_bytes.saturating_sub(kept.charge());
        Some(Work::Write(kept))
    }

    async fn remove<E: Engine>(&self, leaving: Leaving, local: &Local<E>) {
        let path = self.path_of(&leaving.name);
        let removed = local.engine.files().discard(&path).await;
        match removed {
            Err(error) if error.kind != FileErrorKind::NotFound => {
                let (call, code) = (error.call, Errno(error.code));
                let text = format_args!("{call} \"{}\" failed ({code})", Text(&path));
                self.failed(text, local);
            }
            _ => {}
        }
        // Also if it could not be: what cannot be removed would stop all writing for good.
        self.index.removed(leaving);
    }

    /// Writes an object, unless it was purged or replaced while it waited.
    async fn write<E: Engine>(
        &self,
        kept: &Arc<Kept>,
        store: &Zone<StoredAnswer>,
        local: &Local<E>,
    ) {
        let number = {
            let mut state = self.state();
            let number = Self::take_number(&mut state, local);
            state.writing = Some(number);
            number
        };
        // Purges with smaller numbers are done, and show here; those with greater ones concern the file.
        if store.is_stored(kept) {
            self.write_as(number, kept, store, local).await;
        }
        self.state().writing = None;
    }

    async fn write_as<E: Engine>(
        &self,
        number: u64,
        kept: &Arc<Kept>,
        store: &Zone<StoredAnswer>,
        local: &Local<E>,
    ) {
        let tags: Vec<&[u8]> = kept.tags().collect();
        let name = DiskName {
            hash: DiskName::hash_of(kept.key()),
            variant: kept.meta().variant(),
            number,
            has_tags: !tags.is_empty(),
        };
        let Some(pieces) = file_of(kept, &tags, local).await else {
            return;
        };
        let bytes = pieces.iter().map(|(_, range)| range.len() as u64).sum();
        let has_room = self.make_room(bytes, store, local).await;
        if !has_room || !self.keep_free(bytes, store, local).await {
            self.counts.skipped.fetch_add(1, Relaxed);
            return;
        }
        let (temporary, path) = (self.numbered(TEMPORARY, number), self.path_of(&name));
        let stored = StoredPath {
            temporary: &temporary,
            path: &path,
            levels: self.levels().max(2),
        };
        if let Err(error) = local.engine.files().store(&stored, pieces).await {
            let (call, code) = (error.call, Errno(error.code));
            let text = format_args!("{call} \"{}\" failed ({code})", Text(&temporary));
            self.failed(text, local);
            return;
        }
        self.counts.written.fetch_add(1, Relaxed);
        self.counts.written_bytes.fetch_add(bytes, Relaxed);
        self.insert(name, bytes, kept, &tags, store, local);
    }

    /// The file is there; a purge may have come while it was written.
    fn insert<E: Engine>(
        &self,
        name: DiskName,
        bytes: u64,
        kept: &Kept,
        tags: &[&[u8]],
        store: &Zone<StoredAnswer>,
        local: &Local<E>,
    ) {
        let mut state = self.state();
        let replaced = self.index.insert(name, bytes, now(local));
        state.leaving.extend(replaced);
        if state.purges.concerns(&name, kept.key(), tags) {
            state.leaving.extend(self.index.remove(&name));
        } else if let Ok(key) = store.key(kept.key()) {
            self.index.used(&name, key.place(), now(local));
        }
    }

    /// Removes files until one of so many bytes has room; false if it has none even then.
    async fn make_room<E: Engine>(
        &self,
        bytes: u64,
        store: &Zone<StoredAnswer>,
        local: &Local<E>,
    ) -> bool {
        loop {
            if self.index.has_room(bytes) {
                return true;
            }
            let due = {
                let mut state = self.state();
                state.is_removing = true;
                state.leaving.pop()
            };
            let last_used = |hash| store.last_used(hash);
            let Some(leaving) = due.or_else(|| self.index.evict_for(bytes, last_used)) else {
                return false;
            };
            self.remove(leaving, local).await;
        }
    }
}

impl Disk {
    /// `min_free`: removes files until the file system has so many bytes free, and `bytes` more; false if it has not even
    /// without them. What others write there counts, too, so it is asked for each time.
    async fn keep_free<E: Engine>(
        &self,
        bytes: u64,
        store: &Zone<StoredAnswer>,
        local: &Local<E>,
    ) -> bool {
        if self.config.min_free_bytes == 0 {
            return true;
        }
        let free = match local.engine.files().free_bytes(&self.config.path).await {
            Ok(free) => free,
            // Nothing is there, or nothing can be said: the first file is written, or tells why not.
            Err(error) if error.kind == FileErrorKind::NotFound => return true,
            Err(error) => {
                let (call, code) = (error.call, Errno(error.code));
                let text = format_args!("{call} \"{}\" failed ({code})", Text(&self.config.path));
                self.failed(text, local);
                return true;
            }
        };
        let wanted = self.config.min_free_bytes.saturating_add(bytes);
        let mut lacking = wanted.saturating_sub(free);
        while lacking > 0 {
            self.state().is_removing = true;
            let Some(leaving) = self.index.evict(|hash| store.last_used(hash)) else {
                return false;
            };
            lacking = lacking.saturating_sub(leaving.bytes());
            self.remove(leaving, local).await;
        }
        true
    }
}

/// The bytes of an object's file; `None` of one whose content is not there.
async fn file_of<E: Engine>(
    kept: &Kept,
    tags: &[&[u8]],
    local: &Local<E>,
) -> Option<Vec<FilePiece>> {
    let len = kept.content().len()?;
    let mut sums = BlockSums::default();
    let mut pieces: Vec<FilePiece> = vec![(Arc::from([]), 0..0)];
    let mut offset = 0;
    while offset < len {
        let Piece::Bytes(bytes, range) = kept.content().piece(offset, SUMMED_BYTES)? else {
            return None;
        };
        sums.push(bytes.get(range.clone()).unwrap_or_default());
        offset += range.len() as u64;
        pieces.push((bytes, range));
        if offset < len {
            // Checksums of a long content are no reason for others to wait.
            local.scheduler.yield_now().await;
        }
    }
    let parts = RecordParts {
        key: kept.key(),
        tags,
        meta: &meta::emit(kept.meta()),
    };
    let tail = emit_tail(parts, sums);
    let header = emit_header(len, &tail);
    if let Some(first) = pieces.first_mut() {
        *first = (Arc::from(header), 0..HEADER_BYTES);
    }
    let tail_len = tail.len();
    pieces.push((tail.into(), 0..tail_len));
    Some(pieces)
}

/// How long the keeper sleeps without work, before it looks for what nothing asks for any more.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Bytes whose checksums are made in one turn.
const SUMMED_BYTES: usize = 1024 * 1024;
