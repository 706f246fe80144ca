//! The one writer of a content.

use std::fmt;
use std::sync::Arc;
use std::task::Waker;

use super::growing::{Growing, Stage, Wakes};
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
        let room = self.with(|inner| {
            let room = match (inner.stage(), inner.has_readers()) {
                (Stage::Storing, _) => Room::Ready,
                (_, false) => Room::Unread,
                _ if inner.is_ahead(waker) => Room::Full,
                _ => Room::Ready,
            };
            (room, Wakes::default())
        });
        room.unwrap_or(Room::Unread)
    }

    /// Nothing will be added. Content that was stored is whole from now on, and told so (`true`).
    pub(crate) fn finish(&mut self) -> Result<bool, LengthMismatch> {
        self.is_done = true;
        let mut growing = locked(&self.content.growing);
        let Some(inner) = growing.as_mut() else {
            return Err(LengthMismatch);
        };
        let is_stored = inner.stage() == Stage::Storing;
        let is_right = if !is_stored {
            inner.end()
        } else if let Some((chunks, len)) = inner.take_whole() {
            let set = self.content.whole.set(Whole::of(chunks, len));
            debug_assert!(set.is_ok(), "a content becomes whole once");
            true
        } else {
            inner.fail();
            false
        };
        let wakes = inner.wake_readers();
        let finished = if is_stored && is_right {
            growing.take()
        } else {
            None
        };
        drop(growing);
        drop(finished);
        wakes.wake();
        if is_right {
            Ok(is_stored)
        } else {
            Err(LengthMismatch)
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
