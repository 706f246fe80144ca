//! Content that is being written: its chunks, its readers, and the writer that may wait for them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use super::{Chunk, Piece, part};
use crate::ledger::Reservation;
use crate::limits::{CHUNK_BYTES, EXACT_BYTES_MAX, WINDOW_BYTES};

/// Bytes of the first chunk of content of an unknown length; later ones double up to [`CHUNK_BYTES`].
const FIRST_CHUNK_BYTES: usize = 4096;

/// What becomes of the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// All of it is kept.
    Storing,
    /// Only what readers have not read is kept.
    Passing,
    /// A passing stream to which nothing will be added.
    Ended,
    Failed,
}

/// The part of a content that exists while it grows.
#[derive(Debug)]
pub(super) struct Growing {
    stage: Stage,
    /// What the origin announced.
    length: Option<u64>,
    /// Most bytes that may be stored.
    limit: u64,
    chunks: VecDeque<Chunk>,
    /// A chunk that is not full; only the writer has it, so that it is written in place.
    open: Option<Chunk>,
    written: u64,
    readers: Vec<Option<ReaderPlace>>,
    /// The writer that waits for room.
    writer: Option<Waker>,
    reservation: Reservation,
}

#[derive(Debug)]
struct ReaderPlace {
    position: u64,
    waker: Option<Waker>,
}

/// What to do after the lock was given back.
#[derive(Debug, Default)]
#[must_use]
pub(super) struct Wakes {
    due: Vec<Waker>,
    /// Only to be dropped: that may run code of the caller, which must not find the lock taken.
    stale: Option<Waker>,
}

impl Wakes {
    pub(super) fn wake(self) {
        drop(self.stale);
        self.due.into_iter().for_each(Waker::wake);
    }
}

/// What content to which nothing will be added has come to.
#[derive(Debug)]
pub(super) enum Ending {
    /// All of it was kept: its chunks, of which the last is as long as what it holds, and its length.
    Stored(Vec<Chunk>, u64),
    /// A passing stream was complete.
    Passed,
    /// It is not as long as announced.
    Failed,
}

impl Growing {
    pub(super) fn new(length: Option<u64>, limit: u64, reservation: Reservation) -> Self {
        let too_long = length.is_some_and(|length| length > limit);
        Self {
            stage: if too_long {
                Stage::Passing
            } else {
                Stage::Storing
            },
            length,
            limit,
            chunks: VecDeque::new(),
            open: None,
            written: 0,
            readers: Vec::new(),
            writer: None,
            reservation,
        }
    }

    pub(super) fn stage(&self) -> Stage {
        self.stage
    }

    #[cfg(test)]
    pub(super) fn chunk_count(&self) -> usize {
        self.chunks.len()
    }

    pub(super) fn has_readers(&self) -> bool {
        self.readers.iter().any(Option::is_some)
    }

    /// From now on only what readers have not read is kept.
    pub(super) fn pass(&mut self) {
        if self.stage == Stage::Storing {
            self.stage = Stage::Passing;
            // What a passing stream holds is bounded by its window instead.
            self.reservation.clear();
            self.forget_read();
        }
    }

    /// Copies `bytes` to the end.
    pub(super) fn append(&mut self, mut bytes: &[u8]) -> Wakes {
        if self.written + bytes.len() as u64 > self.limit {
            self.pass();
        }
        while !bytes.is_empty() {
            bytes = self.fill_open(bytes);
        }
        if self.stage == Stage::Passing {
            self.forget_read();
        }
        self.wake_readers()
    }

    /// Puts what fits into the open chunk, and returns the rest.
    fn fill_open<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let mut open = self
            .open
            .take()
            .unwrap_or_else(|| self.open_chunk(bytes.len()));
        let used = place(self.written - open.start);
        // Only the open chunk's own holder writes: readers get copies of it.
        let Some(room) = Arc::get_mut(&mut open.bytes).and_then(|all| all.get_mut(used..)) else {
            debug_assert!(false, "the open chunk is the writer's alone");
            return &[];
        };
        let (now, rest) = bytes.split_at(bytes.len().min(room.len()));
        let is_full = now.len() == room.len();
        room[..now.len()].copy_from_slice(now);
        self.written += now.len() as u64;
        if is_full {
            self.chunks.push_back(open);
        } else {
            self.open = Some(open);
        }
        rest
    }

    fn open_chunk(&mut self, wanted: usize) -> Chunk {
        let remaining = self
            .length
            .map(|length| length.saturating_sub(self.written));
        let len = match remaining {
            Some(exact) if (1..=EXACT_BYTES_MAX).contains(&exact) => place(exact),
            Some(exact) if exact > 0 => CHUNK_BYTES,
            _ => place(self.written)
                .max(wanted)
                .clamp(FIRST_CHUNK_BYTES, CHUNK_BYTES),
        };
        if self.stage == Stage::Storing && !self.reservation.extend(len as u64) {
            self.pass();
        }
        let bytes = std::iter::repeat_n(0, len).collect();
        Chunk {
            start: self.written,
            bytes,
        }
    }

    /// Nothing will be added. What was stored stays here for its readers until the caller has made it whole.
    pub(super) fn end(&mut self) -> Ending {
        if self.length.is_some_and(|length| length != self.written) || self.stage == Stage::Failed {
            self.fail();
            return Ending::Failed;
        }
        if self.stage == Stage::Storing {
            return Ending::Stored(self.all_chunks(), self.written);
        }
        self.stage = Stage::Ended;
        Ending::Passed
    }

    /// All chunks, the last one cut to what was written.
    fn all_chunks(&self) -> Vec<Chunk> {
        let mut chunks: Vec<Chunk> = self.chunks.iter().cloned().collect();
        if let Some(open) = &self.open {
            let used = place(self.written - open.start);
            let bytes = Arc::from(open.bytes.get(..used).unwrap_or_default());
            let start = open.start;
            chunks.push(Chunk { start, bytes });
        }
        chunks
    }

    /// What has come is still given to those that read it: a client is to get all that its server has sent.
    pub(super) fn fail(&mut self) {
        self.stage = Stage::Failed;
        self.forget_failed();
    }

    /// Drops what has failed once nothing reads it.
    fn forget_failed(&mut self) {
        if self.stage == Stage::Failed && !self.has_readers() {
            self.chunks.clear();
            self.open = None;
            self.reservation.clear();
        }
    }

    /// Whether a passing stream's writer is a window ahead; then `waker` is woken once it is not.
    pub(super) fn is_ahead(&mut self, waker: &Waker) -> (bool, Wakes) {
        let slowest = self.slowest().unwrap_or(self.written);
        let is_ahead = self.stage == Stage::Passing && self.written - slowest >= WINDOW_BYTES;
        let new = is_ahead.then(|| waker.clone());
        let stale = std::mem::replace(&mut self.writer, new);
        let due = Vec::new();
        (is_ahead, Wakes { due, stale })
    }

    fn slowest(&self) -> Option<u64> {
        let positions = self.readers.iter().flatten();
        positions
            .map(|reader| reader.position.min(self.written))
            .min()
    }

    /// Drops the chunks of a passing stream that all readers have passed.
    fn forget_read(&mut self) {
        let slowest = self.slowest().unwrap_or(self.written);
        while self
            .chunks
            .front()
            .is_some_and(|chunk| chunk.end() <= slowest)
        {
            self.chunks.pop_front();
        }
    }

    pub(super) fn admit(&mut self, position: u64) -> usize {
        let place = ReaderPlace {
            position,
            waker: None,
        };
        if let Some(free) = self.readers.iter().position(Option::is_none) {
            self.readers[free] = Some(place);
            return free;
        }
        self.readers.push(Some(place));
        self.readers.len() - 1
    }

    /// The reader is gone; a writer that waited for it, or has no reader any more, is woken.
    pub(super) fn dismiss(&mut self, number: usize) -> Wakes {
        let place = self.readers.get_mut(number).and_then(Option::take);
        self.forget_failed();
        let mut wakes = self.after_progress();
        wakes.stale = place.and_then(|place| place.waker);
        wakes
    }

    /// What the reader gets next, at most `most` bytes, which then count as read.
    pub(super) fn read(&mut self, number: usize, most: usize, waker: &Waker) -> (Piece, Wakes) {
        let Some(position) = self.readers.get(number).and_then(Option::as_ref) else {
            return (Piece::Failed, Wakes::default());
        };
        let position = position.position;
        let piece = match self.stage {
            _ if position < self.written => self.bytes_at(position, most),
            Stage::Failed => Piece::Failed,
            Stage::Ended => Piece::End,
            Stage::Storing | Stage::Passing => Piece::Pending,
        };
        let read = match &piece {
            Piece::Bytes(_, range) => range.len() as u64,
            _ => 0,
        };
        // Others may be slower, and then nothing changes: with many readers of one stream, few have to look at all of them.
        let may_be_slowest = self
            .chunks
            .front()
            .is_some_and(|first| position < first.end())
            || self.writer.is_some();
        let mut stale = None;
        if let Some(Some(place)) = self.readers.get_mut(number) {
            place.position += read;
            let new = matches!(piece, Piece::Pending).then(|| waker.clone());
            stale = std::mem::replace(&mut place.waker, new);
        }
        let mut wakes = if read > 0 && may_be_slowest {
            self.after_progress()
        } else {
            Wakes::default()
        };
        wakes.stale = stale;
        (piece, wakes)
    }

    fn after_progress(&mut self) -> Wakes {
        if !matches!(self.stage, Stage::Passing | Stage::Ended) {
            return Wakes::default();
        }
        self.forget_read();
        let slowest = self.slowest().unwrap_or(self.written);
        let has_room = self.written - slowest < WINDOW_BYTES;
        let writer = if has_room { self.writer.take() } else { None };
        let due = writer.into_iter().collect();
        Wakes { due, stale: None }
    }

    fn bytes_at(&self, offset: u64, most: usize) -> Piece {
        if let Some(open) = self.open.as_ref().filter(|open| open.start <= offset) {
            let from = place(offset - open.start);
            let used = place(self.written - open.start);
            let to = from.saturating_add(most.max(1)).min(used);
            let copy: Arc<[u8]> = Arc::from(open.bytes.get(from..to).unwrap_or_default());
            let len = copy.len();
            return Piece::Bytes(copy, 0..len);
        }
        let index = self.chunks.partition_point(|chunk| chunk.end() <= offset);
        match self.chunks.get(index) {
            Some(chunk) if chunk.start <= offset => part(&chunk.bytes, chunk.start, offset, most),
            // A passing stream keeps all that an admitted reader has not read.
            _ => Piece::Failed,
        }
    }

    /// The wakers of all readers that wait.
    pub(super) fn wake_readers(&mut self) -> Wakes {
        let readers = self.readers.iter_mut().flatten();
        let due = readers.filter_map(|reader| reader.waker.take()).collect();
        Wakes { due, stale: None }
    }
}

/// An offset within one chunk, which is in memory.
fn place(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}
