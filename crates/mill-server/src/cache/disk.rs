//! The folder of a zone: what memory has room for no more, and what outlives the process.
//!
//! Two tasks of one worker look after it. The keeper writes what has become whole, makes room and removes files
//! (`keeping.rs`); the examiner finds files again after a start, and carries purges out (`examining.rs`). A request that
//! finds nothing in memory reads a file back into it, on whichever worker it is (`restoring.rs`). No request waits for the
//! disk that memory has an answer for.
//!
//! Numbers order files and purges: each is greater than the ones before, also those of earlier processes, because they
//! begin at the wall clock's nanoseconds. A purge concerns the files with smaller numbers.

/// Finding files again, and carrying purges out.
mod examining;
/// Writing and removing.
mod keeping;
/// What is kept beside the content, as bytes.
mod meta;
/// Purges that outlive the process.
mod purging;
/// Reading a file.
mod reading;
/// From a file to memory.
mod restoring;

use super::{Kept, now};
use crate::local::Local;
use crate::log::Text;
use mill_cache::disk::{DiskFigures, DiskIndex, DiskLimits, DiskName, DiskPurges, Leaving};
use mill_config::config::{CachePath, LogLevel};
use mill_runtime::engine::Engine;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

pub(crate) use keeping::start;

/// One folder, for all workers.
pub(crate) struct Disk {
    config: Arc<CachePath>,
    index: DiskIndex,
    state: Mutex<State>,
    counts: DiskCounts,
    /// Numbers of this process are not smaller.
    first_number: u64,
    /// Its tasks were started.
    is_kept: AtomicBool,
}

/// What is to be done, and the purges.
#[derive(Default)]
struct State {
    /// Of the last file or purge.
    last_number: u64,
    purges: DiskPurges,
    /// The purges of earlier processes are known: files may be used.
    is_open: bool,
    /// All files of earlier processes are known.
    is_loaded: bool,
    queue: VecDeque<Arc<Kept>>,
    queue_bytes: u64,
    leaving: Vec<Leaving>,
    /// The number of the file that is being written.
    writing: Option<u64>,
    /// A file is being removed that is in `leaving` no more.
    is_removing: bool,
    keeper: Option<Waker>,
}

#[derive(Debug, Default)]
struct DiskCounts {
    written: AtomicU64,
    written_bytes: AtomicU64,
    restored: AtomicU64,
    skipped: AtomicU64,
    failed: AtomicU64,
    damaged: AtomicU64,
    /// Seconds since the start at which a failure was logged last, and one.
    logged_s: AtomicU64,
}

/// What is told of a folder; counts are since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskReport {
    /// Files and their bytes.
    pub index: DiskFigures,
    /// `max_size`; without one the greatest number.
    pub bytes_max: u64,
    /// The files that were there at the start are all known.
    pub is_loaded: bool,
    /// Objects that were written, and the bytes of their files.
    pub written: u64,
    pub written_bytes: u64,
    /// Objects that were read back into memory.
    pub restored: u64,
    /// Objects that were not written: there were too many at once, or one was larger than the limit.
    pub skipped: u64,
    /// Objects that could not be written or read.
    pub failed: u64,
    /// Files that were not what they should be, and were removed.
    pub damaged: u64,
    /// Objects that wait to be written.
    pub queued: u64,
    /// Purges that are in effect, and not carried out.
    pub purges: u64,
}

impl Disk {
    /// Of a zone with room for `files` objects.
    pub(super) fn new<E: Engine>(config: &Arc<CachePath>, files: u64, local: &Local<E>) -> Self {
        let limits = DiskLimits {
            bytes: config.max_size_bytes.unwrap_or(u64::MAX),
            files,
            inactive: config.inactive,
            variants: mill_cache::Limits::default().variants,
        };
        let seed = [local.engine.random(), local.engine.random()];
        let mut state = State::default();
        Self {
            config: Arc::clone(config),
            index: DiskIndex::new(limits, seed),
            first_number: Self::take_number(&mut state, local),
            state: Mutex::new(state),
            counts: DiskCounts::default(),
            is_kept: AtomicBool::new(false),
        }
    }

    /// The counts of this moment.
    pub(super) fn report(&self) -> DiskReport {
        let (is_loaded, queued, purges) = {
            let state = self.state();
            (state.is_loaded, state.queue.len(), state.purges.len())
        };
        let counts = &self.counts;
        DiskReport {
            index: self.index.figures(),
            bytes_max: self.index.limits().bytes,
            is_loaded,
            written: counts.written.load(Relaxed),
            written_bytes: counts.written_bytes.load(Relaxed),
            restored: counts.restored.load(Relaxed),
            skipped: counts.skipped.load(Relaxed),
            failed: counts.failed.load(Relaxed),
            damaged: counts.damaged.load(Relaxed),
            queued: queued as u64,
            purges: purges as u64,
        }
    }

    /// An object is whole: it is to be written, and the file of the one that it replaces must not be found any more.
    pub(crate) fn offer(&self, kept: &Arc<Kept>) {
        let hash = DiskName::hash_of(kept.key());
        let gone = self.index.remove_variant(hash, kept.meta().variant());
        let mut state = self.state();
        state.leaving.extend(gone);
        let bytes = kept.charge();
        let is_room = state.queue.is_empty()
            || state.queue_bytes.saturating_add(bytes) <= self.config.memory_bytes / QUEUE_PART;
        if is_room {
            state.queue_bytes += bytes;
            state.queue.push_back(Arc::clone(kept));
        } else {
            self.counts.skipped.fetch_add(1, Relaxed);
        }
        wake(state);
    }

    /// Files are to be removed.
    fn leave(&self, leaving: impl IntoIterator<Item = Leaving>) {
        let mut state = self.state();
        state.leaving.extend(leaving);
        wake(state);
    }

    /// Takes a number for a file. The purges that have smaller ones are done.
    fn take_number<E: Engine>(state: &mut State, local: &Local<E>) -> u64 {
        let clock = local.scheduler.wall_clock();
        let seconds = u64::try_from(clock.seconds).unwrap_or(0);
        let nanos = seconds.saturating_mul(1_000_000_000) + u64::from(clock.nanos);
        state.last_number = nanos.max(state.last_number + 1);
        state.last_number
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path_of(&self, name: &DiskName) -> Vec<u8> {
        let mut path = self.config.path.to_vec();
        name.emit_path(self.config.levels, &mut path);
        path
    }

    /// The path of what has a number, in a folder of its own.
    fn numbered(&self, folder: &str, number: u64) -> Vec<u8> {
        let mut path = self.config.path.to_vec();
        path.extend_from_slice(format!("/{folder}/{number:016x}").as_bytes());
        path
    }

    fn folder(&self, folder: &str) -> Vec<u8> {
        [&*self.config.path, b"/", folder.as_bytes()].concat()
    }

    /// Folders that are made for a file: those of `levels=`, and the zone's own.
    fn levels(&self) -> usize {
        let levels = self.config.levels.iter();
        levels.filter(|digits| **digits > 0).count() + 1
    }

    /// Logs a failure, at most one in a minute; all are counted.
    fn failed<E: Engine>(&self, what: fmt::Arguments<'_>, local: &Local<E>) {
        self.counts.failed.fetch_add(1, Relaxed);
        let now_s = now(local).as_secs() + 1;
        let last_s = self.counts.logged_s.load(Relaxed);
        if last_s == 0 || now_s >= last_s + LOG_INTERVAL_S {
            self.counts.logged_s.store(now_s, Relaxed);
            let zone = Text(&self.config.zone);
            let text = format_args!("cache \"{zone}\": {what}");
            local.log_error(None, LogLevel::Crit, text);
        }
    }
}

/// Wakes the keeper, without the lock.
fn wake(mut state: MutexGuard<'_, State>) {
    let keeper = state.keeper.take();
    drop(state);
    if let Some(keeper) = keeper {
        keeper.wake();
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Disk({:?})", self.report())
    }
}

/// Files while they are written; files of purges.
const TEMPORARY: &str = "temporary";
const PURGES: &str = "purges";

/// What waits to be written takes at most this part of the zone's memory, which it may not be in any more.
const QUEUE_PART: u64 = 8;

/// Seconds between two lines about failures.
const LOG_INTERVAL_S: u64 = 60;
