//! The bytes of an object, which may still arrive.
//!
//! One writer appends, any number of readers on any thread read. Content that is whole is read without a lock; content
//! that grows, under one. What is too long to be stored, or was purged before it was whole, is a passing stream: it
//! admits no new readers, keeps what its slowest reader has not read, and its writer waits beyond a window.
//! A file's range would be another kind in [`Whole`], with another kind of [`Piece`].

mod growing;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use crate::limits::JOINED_BYTES_MAX;
use crate::lock::locked;
use growing::{Growing, Stage};
pub use reader::ContentReader;
pub(crate) use writer::ContentWriter;
pub use writer::{Appended, LengthMismatch, Room};

/// Bytes of memory of a content without its chunks: the counts of `Arc`, the whole, the lock.
pub(crate) const CONTENT_OVERHEAD: usize = 16 + size_of::<Content>();

/// Bytes of the counts before the bytes of each chunk.
const CHUNK_OVERHEAD: u64 = 16;

/// Bytes of a row of [`Many`].
const ROW_BYTES: u64 = size_of::<Chunk>() as u64;

/// The bytes of an object; the writer's end is in [`Fill`](crate::Fill).
#[derive(Debug)]
pub struct Content {
    whole: OnceLock<Whole>,
    /// Only until it is whole; a passing stream has it to its end.
    growing: Mutex<Option<Box<Growing>>>,
}

/// What all bytes are in.
#[derive(Debug)]
enum Whole {
    One(Arc<[u8]>),
    Many(Box<Many>),
}

#[derive(Debug)]
struct Many {
    chunks: Box<[Chunk]>,
    len: u64,
}

/// A part of the content that is full.
#[derive(Clone, Debug)]
struct Chunk {
    start: u64,
    bytes: Arc<[u8]>,
}

impl Chunk {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

/// What a reader gets next.
#[derive(Debug)]
pub enum Piece {
    /// These bytes of the chunk, at least one; no copy, but of the part of a chunk that is not full yet.
    Bytes(Arc<[u8]>, Range<usize>),
    /// Nothing at the moment; the waker is woken when there is.
    Pending,
    /// All bytes have been given.
    End,
    /// The writer failed, or the object is shorter than announced. The client must not take what it has for the whole.
    Failed,
}

impl Content {
    /// Content without a byte yet.
    fn growing(growing: Growing) -> Self {
        Self {
            whole: OnceLock::new(),
            growing: Mutex::new(Some(Box::new(growing))),
        }
    }

    /// Content that is there.
    pub(crate) fn whole(bytes: Arc<[u8]>) -> Self {
        Self {
            whole: OnceLock::from(Whole::One(bytes)),
            growing: Mutex::new(None),
        }
    }

    /// The length once all is there.
    pub fn len(&self) -> Option<u64> {
        match self.whole.get()? {
            Whole::One(bytes) => Some(bytes.len() as u64),
            Whole::Many(many) => Some(many.len),
        }
    }

    /// Whether all is there, and it is nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// Whether all is there.
    pub fn is_whole(&self) -> bool {
        self.whole.get().is_some()
    }

    /// All bytes, if they are whole and in one allocation; no copy.
    pub fn in_one(&self) -> Option<&Arc<[u8]>> {
        match self.whole.get()? {
            Whole::One(bytes) => Some(bytes),
            Whole::Many(_) => None,
        }
    }

    /// At most `most` bytes of whole content from `offset`; none if it grows. No lock.
    pub fn piece(&self, offset: u64, most: usize) -> Option<Piece> {
        Some(self.whole.get()?.piece(offset, most))
    }

    /// A reader from `offset`; none if the content has failed or is a passing stream, which keeps only what its readers
    /// have not read. The request then goes on without the cache.
    pub fn reader(self: &Arc<Self>, offset: u64) -> Option<ContentReader> {
        if self.is_whole() {
            return Some(ContentReader::of_whole(self.clone(), offset));
        }
        let mut growing = locked(&self.growing);
        let Some(inner) = growing.as_mut() else {
            // It became whole between the two looks, or it has failed.
            drop(growing);
            return self
                .is_whole()
                .then(|| ContentReader::of_whole(self.clone(), offset));
        };
        (inner.stage() == Stage::Storing).then(|| {
            let number = inner.admit(offset);
            ContentReader::registered(self.clone(), offset, number)
        })
    }

    /// Bytes of memory of whole content beside [`CONTENT_OVERHEAD`].
    pub(crate) fn footprint(&self) -> u64 {
        match self.whole.get() {
            None => 0,
            Some(Whole::One(bytes)) => CHUNK_OVERHEAD + bytes.len() as u64,
            Some(Whole::Many(many)) => {
                let rows = many.chunks.len() as u64 * (CHUNK_OVERHEAD + ROW_BYTES);
                rows + many.len + size_of::<Many>() as u64
            }
        }
    }
}

impl Whole {
    /// What is not too long is joined: a reader that gets all of it at once hands it over at once.
    fn of(mut chunks: Vec<Chunk>, len: u64) -> Self {
        if chunks.len() > 1 && len <= JOINED_BYTES_MAX {
            return Self::One(joined(&chunks));
        }
        match (chunks.pop(), chunks.is_empty()) {
            (None, _) => Self::One(Arc::from([])),
            (Some(only), true) => Self::One(only.bytes),
            (Some(last), false) => {
                chunks.push(last);
                let chunks = chunks.into_boxed_slice();
                Self::Many(Box::new(Many { chunks, len }))
            }
        }
    }

    fn piece(&self, offset: u64, most: usize) -> Piece {
        match self {
            Self::One(bytes) => part(bytes, 0, offset, most),
            Self::Many(many) => {
                let index = many.chunks.partition_point(|chunk| chunk.end() <= offset);
                match many.chunks.get(index) {
                    Some(chunk) => part(&chunk.bytes, chunk.start, offset, most),
                    None => Piece::End,
                }
            }
        }
    }
}

/// The bytes of all chunks, copied once.
fn joined(chunks: &[Chunk]) -> Arc<[u8]> {
    let len = chunks.iter().map(|chunk| chunk.bytes.len()).sum();
    let mut all: Arc<[u8]> = std::iter::repeat_n(0, len).collect();
    let mut rest = Arc::get_mut(&mut all).expect("no other handle of it was made yet");
    for chunk in chunks {
        let (place, after) = rest.split_at_mut(chunk.bytes.len());
        place.copy_from_slice(&chunk.bytes);
        rest = after;
    }
    all
}

/// At most `most` of `bytes`, which begin at `start` of the content, from `offset`.
fn part(bytes: &Arc<[u8]>, start: u64, offset: u64, most: usize) -> Piece {
    let from = usize::try_from(offset.saturating_sub(start)).unwrap_or(usize::MAX);
    if from >= bytes.len() {
        return Piece::End;
    }
    let to = from.saturating_add(most.max(1)).min(bytes.len());
    Piece::Bytes(bytes.clone(), from..to)
}

const _: () = assert!(size_of::<Content>() <= 40);
