//! One worker's part: the lines of this turn, and their hand-over to the writer.

use super::LogSender;
use super::local_time::Stamps;
use super::queue::{LogTarget, PlaceRef, QUEUE_BYTES_MAX};
use super::sender::Outlet;
use mill_runtime::time::Instant;
use std::cell::{Cell, RefCell};
use std::sync::PoisonError;

/// The logs as one worker sees them. Lines are gathered in memory; [`WorkerLog::end_of_turn`] hands them over.
#[derive(Debug)]
pub struct WorkerLog {
    outlet: Outlet,
    /// The kernel's number of this thread, for error logs.
    pub thread_id: u32,
    /// The texts of the current second.
    pub(super) stamps: RefCell<Stamps>,
    turn: RefCell<Turn>,
    /// The line in progress; empty between two lines, kept for its memory.
    scratch: RefCell<Vec<u8>>,
    /// Lost lines that no error log has mentioned yet.
    unreported: Cell<u64>,
    /// Lost lines that are not in the counters yet.
    uncounted: Cell<u64>,
}

/// What has been logged since the last turn ended.
#[derive(Debug, Default)]
struct Turn {
    batches: Vec<Batch>,
    /// Memory of earlier batches.
    spare: Vec<Vec<u8>>,
}

/// The lines for one log.
#[derive(Debug)]
struct Batch {
    place: LogTarget,
    bytes: Vec<u8>,
    lines: u64,
}

impl WorkerLog {
    /// `thread_id` is the kernel's number of the calling thread.
    pub fn new(sender: &LogSender, thread_id: u32) -> Self {
        Self {
            outlet: sender.outlet(),
            thread_id,
            stamps: RefCell::default(),
            turn: RefCell::default(),
            scratch: RefCell::default(),
            unreported: Cell::new(0),
            uncounted: Cell::new(0),
        }
    }

    /// Hands over this turn's lines, with one short lock and, if necessary, one wake-up of the writer. Returns the
    /// number of lines lost since the last call.
    pub fn end_of_turn(&self, now: Instant) -> u64 {
        let mut turn = self.turn.borrow_mut();
        if !turn.batches.is_empty() {
            match &self.outlet {
                Outlet::Writer(..) => self.hand_over(&mut turn, now),
                Outlet::Memory(_) => self.keep(&mut turn),
            }
        }
        let by_writer = match &self.outlet {
            Outlet::Writer(shared, _) => shared.take_lost_by_writer(),
            Outlet::Memory(_) => 0,
        };
        self.uncounted.take() + by_writer
    }

    /// The number of lines lost because the queue was full, once there is room again to log it.
    pub(super) fn loss_to_report(&self) -> Option<u64> {
        if self.unreported.get() == 0 {
            return None;
        }
        if let Outlet::Writer(_, queue) = &self.outlet
            && queue.lock().bytes.len() > QUEUE_BYTES_MAX / 2
        {
            return None;
        }
        Some(self.unreported.take())
    }

    /// Takes the memory in which a line is made. While it is taken, another line may be logged.
    pub(super) fn begin_line(&self) -> Vec<u8> {
        std::mem::take(&mut *self.scratch.borrow_mut())
    }

    /// Adds a line, its line end included, to the turn's.
    pub(super) fn add_line(&self, place: PlaceRef<'_>, line: &[u8]) {
        let turn = &mut *self.turn.borrow_mut();
        let index = turn.batches.iter().position(|batch| place.is(&batch.place));
        let index = index.unwrap_or_else(|| {
            turn.batches.push(Batch {
                place: place.to_place(),
                bytes: turn.spare.pop().unwrap_or_default(),
                lines: 0,
            });
            turn.batches.len() - 1
        });
        let Some(batch) = turn.batches.get_mut(index) else {
            return;
        };
        if batch.bytes.len() + line.len() > QUEUE_BYTES_MAX {
            self.lose(1);
            return;
        }
        batch.bytes.extend_from_slice(line);
        batch.lines += 1;
    }

    /// Gives the memory of a line back.
    pub(super) fn end_line(&self, mut line: Vec<u8>) {
        line.clear();
        *self.scratch.borrow_mut() = line;
    }

    fn lose(&self, lines: u64) {
        self.unreported.set(self.unreported.get() + lines);
        self.uncounted.set(self.uncounted.get() + lines);
    }

    fn hand_over(&self, turn: &mut Turn, now: Instant) {
        let Outlet::Writer(shared, queue) = &self.outlet else {
            return;
        };
        let mut wake = false;
        let mut waiting = queue.lock();
        for mut batch in turn.batches.drain(..) {
            if !waiting.push(&batch.place, &batch.bytes, batch.lines) {
                self.lose(batch.lines);
            }
            let waiting_bytes = u64::try_from(waiting.bytes.len()).unwrap_or(u64::MAX);
            wake |= match &batch.place {
                LogTarget::Opened {
                    buffer: Some(buffer),
                    ..
                } => {
                    waiting_bytes >= buffer.size_bytes.min(WAKE_BYTES)
                        || buffer
                            .flush
                            .is_some_and(|flush| !shared.looks_by(now + flush))
                }
                LogTarget::Table(table) => {
                    waiting_bytes >= WAKE_BYTES || !shared.looks_by(now + table.max_wait)
                }
                LogTarget::Opened { buffer: None, .. } | LogTarget::Evaluated { .. } => true,
            };
            batch.bytes.clear();
            turn.spare.push(batch.bytes);
        }
        drop(waiting);
        turn.spare.truncate(SPARE_MAX);
        if wake {
            shared.wake();
        }
    }

    fn keep(&self, turn: &mut Turn) {
        let Outlet::Memory(files) = &self.outlet else {
            return;
        };
        let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
        for batch in turn.batches.drain(..) {
            let path = match batch.place {
                LogTarget::Opened { path, .. } => path.to_vec(),
                LogTarget::Evaluated { path, .. } => path,
                LogTarget::Table(table) => table.to_string().into_bytes(),
            };
            files.entry(path).or_default().extend(batch.bytes);
        }
    }
}

impl Drop for WorkerLog {
    fn drop(&mut self) {
        // This count is not used any more; the time only matters to buffered lines, which `LogWriter::stop` flushes.
        self.end_of_turn(Instant::FAR);
    }
}

/// Bytes at which the writer is woken for buffered lines although their buffer is larger: a quarter of the queue leaves
/// it time.
const WAKE_BYTES: u64 = QUEUE_BYTES_MAX as u64 / 4;

/// Pieces of memory kept from one turn to the next: one for each log that is usually written in a turn.
const SPARE_MAX: usize = 16;
