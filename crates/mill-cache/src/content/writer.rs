//! The one writer of a content.

use std::fmt;
use std::sync::Arc;
use std::task::Waker;

use super::growing::{Ending, Growing, Stage, Wakes};
use super::{Content, ContentReader, Whole};
use crate::ledger::Reservation;
use crate::lock::locked;

/// Appends to one content. Dropped before [`finish`](Self::finish), it fails the content.
#[derive(Debug)]
pub(crate) struct ContentWriter {
    content: Arc<Content>,
    is_done: bool,
}

/// What became of appended bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// They are part of what will be stored.
    Stored,
    /// The content is too large to be stored, or was purged: its readers get it, nothing is kept. Ask
    /// [`Fill::poll_room`](crate::Fill::poll_room) before the next bytes.
    TooLarge,
    /// As before, and nothing reads it any more: stop.
    Unread,
}

/// Whether the next bytes may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// They may.
    Ready,
    /// A reader of a passing stream is a window behind; the waker is woken once it is not.
    Full,
    /// Nothing reads or keeps the content: stop.
    Unread,
}

/// The content is not as long as announced; its readers were told that it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LengthMismatch;

impl fmt::Display for LengthMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the content is not as long as was announced")
    }
}

impl std::error::Error for LengthMismatch {}

impl ContentWriter {
    /// A content of the announced `length`, stored up to `limit` bytes, with its writer and first reader.
    pub(crate) fn new(
        length: Option<u64>,
        limit: u64,
        reservation: Reservation,
    ) -> (Self, ContentReader) {
        let mut growing = Growing::new(length, limit, reservation);
        let number = growing.admit(0);
        let content = Arc::new(Content::growing(growing));
        let reader = ContentReader::registered(content.clone(), 0, number);
        let is_done = false;
        (Self { content, is_done }, reader)
    }

    pub(crate) fn content(&self) -> &Arc<Content> {
        &self.content
    }

    /// Makes it a passing stream.
    pub(crate) fn pass(&self) {
        self.with(|inner| {
            inner.pass();
            ((), Wakes::default())
        });
    }

    /// Copies `bytes` to the end and wakes the readers.
    pub(crate) fn append(&self, bytes: &[u8]) -> Appended {
        let appended = self.with(|inner| {
            let wakes = inner.append(bytes);
            let appended = match (inner.stage(), inner.has_readers()) {
                (Stage::Storing, _) => Appended::Stored,
                (_, true) => Appended::TooLarge,
                (_, false) => Appended::Unread,
            };
            (appended, wakes)
        });
        appended.unwrap_or(Appended::Unread)
    }

    pub(crate) fn poll_room(&self, waker: &Waker) -> Room {
        let room = self.with(|inner| match (inner.stage(), inner.has_readers()) {
            (Stage::Storing, _) => (Room::Ready, Wakes::default()),
            (_, false) => (Room::Unread, Wakes::default()),
            _ => match inner.is_ahead(waker) {
                (true, wakes) => (Room::Full, wakes),
                (false, wakes) => (Room::Ready, wakes),
            },
        });
        room.unwrap_or(Room::Unread)
    }

    /// Nothing will be added. Content that was stored is whole from now on, and told so (`true`).
    pub(crate) fn finish(&mut self) -> Result<bool, LengthMismatch> {
        self.is_done = true;
        let ending = self.with(|inner| match inner.end() {
            stored @ Ending::Stored(..) => (stored, Wakes::default()),
            other => (other, inner.wake_readers()),
        });
        match ending {
            Some(Ending::Stored(chunks, len)) => {
                // Megabytes may be copied here: without the lock, so that readers go on.
                self.make_whole(Whole::of(chunks, len));
                Ok(true)
            }
            Some(Ending::Passed) => Ok(false),
            Some(Ending::Failed) | None => Err(LengthMismatch),
        }
    }

    fn make_whole(&self, whole: Whole) {
        let mut growing = locked(&self.content.growing);
        let set = self.content.whole.set(whole);
        debug_assert!(set.is_ok(), "a content becomes whole once");
        let mut finished = growing.take();
        drop(growing);
        if let Some(inner) = &mut finished {
            inner.wake_readers().wake();
        }
    }

    fn with<T>(&self, act: impl FnOnce(&mut Growing) -> (T, Wakes)) -> Option<T> {
        let mut growing = locked(&self.content.growing);
        let (value, wakes) = act(growing.as_mut()?);
        drop(growing);
        wakes.wake();
        Some(value)
    }
}

impl Drop for ContentWriter {
    fn drop(&mut self) {
        if !self.is_done {
            self.with(|inner| {
                inner.fail();
                ((), inner.wake_readers())
            });
        }
    }
}
