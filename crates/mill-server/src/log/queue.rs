//! Between a worker and the writer: bounded, swapped, without waiting.
//!
//! Each worker has a queue of its own. Its bytes lie one after the other, and `pieces` says which of them belong to
//! which log. The writer takes all of it by swapping in its own empty memory, so that after the first turns neither
//! side allocates.

use super::error::STDERR;
use mill_config::Text;
use mill_config::config::LogBuffer;
use mill_config::config::log::RowTable;
use mill_config::config::settings::OpenLogFileCache;
use mill_runtime::time::Instant;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;

/// Bytes of lines that one worker may have waiting for the writer: at 20 MB/s of log lines (200 000 requests/s) a disk
/// may stall for 200 ms before lines are lost. A worker's queue uses at most twice this memory.
pub(super) const QUEUE_BYTES_MAX: usize = 4 << 20;

/// Which log a line belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LogTarget {
    /// Opened before the server starts.
    Opened {
        path: Text,
        buffer: Option<LogBuffer>,
    },
    /// Its path has variables: the writer opens it.
    Evaluated {
        path: Vec<u8>,
        /// The directory that must exist for the file to be created.
        root: Vec<u8>,
        cache: Option<OpenLogFileCache>,
    },
    /// Rows of a table.
    Table(Arc<RowTable>),
}

/// A borrowed target: comparing costs no reference count.
#[derive(Clone, Copy, Debug)]
pub(super) enum PlaceRef<'a> {
    Opened {
        path: &'a Text,
        buffer: Option<LogBuffer>,
    },
    /// The standard error stream, for errors.
    Stderr,
    Evaluated {
        path: &'a [u8],
        root: &'a [u8],
        cache: Option<OpenLogFileCache>,
    },
    Table(&'a Arc<RowTable>),
}

/// Adjacent lines of one log.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) place: LogTarget,
    pub(super) len: usize,
    pub(super) lines: u64,
}

/// What waits for the writer.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) bytes: Vec<u8>,
    pub(super) pieces: Vec<Piece>,
}

/// One worker's queue.
#[derive(Debug, Default)]
pub(super) struct Queue(Mutex<Waiting>);

/// The state that the workers and the writer share.
#[derive(Debug)]
pub(super) struct Shared<Command> {
    queues: Mutex<Vec<Arc<Queue>>>,
    commands: Mutex<Vec<Command>>,
    writer: OnceLock<Thread>,
    /// When the writer looks at the queues by itself, in nanoseconds of the engine's clock; `u64::MAX` while it works
    /// or sleeps until it is woken.
    looks_at: AtomicU64,
    /// Lines that could not be written and that no worker has counted yet.
    lost_by_writer: AtomicU64,
}

impl PlaceRef<'_> {
    pub(super) fn is(self, place: &LogTarget) -> bool {
        match (self, place) {
            (Self::Opened { path, buffer }, LogTarget::Opened { path: p, buffer: b }) => {
                path == p && buffer == *b
            }
            (Self::Stderr, LogTarget::Opened { path, .. }) => *path == STDERR,
            (
                Self::Evaluated { path, root, cache },
                LogTarget::Evaluated {
                    path: p,
                    root: r,
                    cache: c,
                },
            ) => path == p && root == r && cache == *c,
            (Self::Table(table), LogTarget::Table(known)) => {
                Arc::ptr_eq(table, known) || table == known
            }
            _ => false,
        }
    }

    pub(super) fn to_place(self) -> LogTarget {
        match self {
            Self::Opened { path, buffer } => LogTarget::Opened {
                path: path.clone(),
                buffer,
            },
            Self::Stderr => LogTarget::Opened {
                path: Text::from(STDERR),
                buffer: None,
            },
            Self::Evaluated { path, root, cache } => LogTarget::Evaluated {
                path: path.to_vec(),
                root: root.to_vec(),
                cache,
            },
            Self::Table(table) => LogTarget::Table(Arc::clone(table)),
        }
    }
}

impl Waiting {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.pieces.clear();
    }

    /// Adds lines; false if they do not fit.
    pub(super) fn push(&mut self, place: &LogTarget, bytes: &[u8], lines: u64) -> bool {
        if self.bytes.len() + bytes.len() > QUEUE_BYTES_MAX {
            return false;
        }
        self.bytes.extend_from_slice(bytes);
        match self.pieces.last_mut() {
            Some(last) if last.place == *place => {
                last.len += bytes.len();
                last.lines += lines;
            }
            _ => self.pieces.push(Piece {
                place: place.clone(),
                len: bytes.len(),
                lines,
            }),
        }
        true
    }
}

impl Queue {
    pub(super) fn lock(&self) -> MutexGuard<'_, Waiting> {
        lock(&self.0)
    }
}

impl<Command> Shared<Command> {
    pub(super) fn new() -> Self {
        Self {
            queues: Mutex::default(),
            commands: Mutex::new(Vec::new()),
            writer: OnceLock::new(),
            looks_at: AtomicU64::new(u64::MAX),
            lost_by_writer: AtomicU64::new(0),
        }
    }

    pub(super) fn add_queue(&self) -> Arc<Queue> {
        let queue = Arc::new(Queue::default());
        lock(&self.queues).push(Arc::clone(&queue));
        queue
    }

    /// Swaps each queue's content into the empty `into`, and passes it to `take`. Queues of ended workers are removed.
    pub(super) fn drain(&self, into: &mut Waiting, mut take: impl FnMut(&Waiting)) {
        let queues: Vec<_> = lock(&self.queues).clone();
        for queue in queues {
            into.clear();
            std::mem::swap(&mut *queue.lock(), into);
            take(into);
        }
        // One reference is this list's: an ended worker has dropped its own after its last lines.
        lock(&self.queues)
            .retain(|queue| Arc::strong_count(queue) > 1 || !queue.lock().bytes.is_empty());
    }

    pub(super) fn command(&self, command: Command) {
        lock(&self.commands).push(command);
        self.wake();
    }

    pub(super) fn take_commands(&self) -> Vec<Command> {
        std::mem::take(&mut *lock(&self.commands))
    }

    /// Sets the thread to wake; the first call counts.
    pub(super) fn set_writer(&self, writer: Thread) {
        // A second writer has its own `Shared`; if it has not, the first one stays.
        let _ = self.writer.set(writer);
    }

    pub(super) fn wake(&self) {
        if let Some(writer) = self.writer.get() {
            writer.unpark();
        }
    }

    /// The writer publishes until when it sleeps.
    pub(super) fn set_looks_at(&self, deadline: Instant) {
        self.looks_at.store(deadline.as_nanos(), Ordering::Release);
    }

    /// Whether the writer looks at the queues no later than `deadline` without being woken.
    pub(super) fn looks_by(&self, deadline: Instant) -> bool {
        let looks_at = self.looks_at.load(Ordering::Acquire);
        looks_at != u64::MAX && looks_at <= deadline.as_nanos()
    }

    pub(super) fn add_lost_by_writer(&self, lines: u64) {
        if lines > 0 {
            self.lost_by_writer.fetch_add(lines, Ordering::Relaxed);
        }
    }

    /// Lines lost since the last call, for the caller to count.
    pub(super) fn take_lost_by_writer(&self) -> u64 {
        if self.lost_by_writer.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        self.lost_by_writer.swap(0, Ordering::Relaxed)
    }
}

/// No state is left inconsistent under these locks, so a thread that panicked holding one did no harm.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(path: &str) -> LogTarget {
        LogTarget::Opened {
            path: Text::from(path),
            buffer: None,
        }
    }

    #[test]
    fn neighbouring_lines_of_one_log_are_one_piece() {
        let mut waiting = Waiting::default();
        assert!(waiting.push(&opened("/a"), b"1\n", 1));
        assert!(waiting.push(&opened("/a"), b"2\n3\n", 2));
        assert!(waiting.push(&opened("/b"), b"4\n", 1));
        let pieces: Vec<_> = waiting.pieces.iter().map(|p| (p.len, p.lines)).collect();
        assert_eq!(pieces, [(6, 3), (2, 1)]);
    }

    #[test]
    fn a_full_queue_takes_whole_lines_or_nothing() {
        let mut waiting = Waiting::default();
        let line = vec![b'x'; QUEUE_BYTES_MAX];
        assert!(waiting.push(&opened("/a"), &line, 1));
        assert!(!waiting.push(&opened("/a"), b"\n", 1));
        assert_eq!((waiting.bytes.len(), waiting.pieces.len()), (line.len(), 1));
    }

    #[test]
    fn the_queue_of_an_ended_worker_is_drained_and_forgotten() {
        let shared = Shared::<()>::new();
        let queue = shared.add_queue();
        assert!(queue.lock().push(&opened("/a"), b"last\n", 1));
        drop(queue);
        let mut taken = Vec::new();
        let mut memory = Waiting::default();
        shared.drain(&mut memory, |waiting| {
            taken.extend_from_slice(&waiting.bytes)
        });
        assert_eq!(taken, b"last\n");
        assert!(lock(&shared.queues).is_empty());
    }

    #[test]
    fn a_writer_at_work_has_to_be_woken() {
        let shared = Shared::<()>::new();
        let at = Instant::from_nanos;
        assert!(!shared.looks_by(at(5)));
        shared.set_looks_at(at(5));
        assert!(shared.looks_by(at(5)) && !shared.looks_by(at(4)));
        shared.set_looks_at(Instant::FAR);
        assert!(!shared.looks_by(Instant::FAR));
    }
}
