//! Content that a cache keeps: whole, as the memory that all workers share; or while it comes from a server.

use super::awaited::{Awaited, Room};
use super::source::Source;
use super::{Content, Part};
use crate::exchange::SendError;
use crate::local::Local;
use crate::response::FieldLine;
use crate::wakes::Wakes;
use mill_cache::{ContentReader, Piece};
use mill_config::config::LogLevel;
use mill_config::config::settings::PassSettings;
use mill_http::range::ByteRange;
use mill_runtime::engine::Engine;
use mill_runtime::payload::Shared;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::tasks::TaskId;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};

/// All of a content that is whole, without a copy; `None` of one that still arrives.
pub(crate) fn whole<File>(content: &mill_cache::Content) -> Option<Content<File>> {
    if let Some(all) = content.in_one() {
        return Some(Content::bytes(Shared::Common(Arc::clone(all))));
    }
    let len = content.len()?;
    let mut parts = Vec::new();
    let mut offset = 0;
    while offset < len {
        match content.piece(offset, usize::MAX)? {
            Piece::Bytes(bytes, range) => {
                offset += range.len() as u64;
                parts.push(Part::Bytes(Shared::Common(bytes), range));
            }
            Piece::Pending | Piece::End | Piece::Failed => return None,
        }
    }
    Some(match parts.pop() {
        None => Content::bytes([]),
        Some(only) if parts.is_empty() => Content::part(only),
        Some(last) => {
            parts.push(last);
            Content::parts(parts)
        }
    })
}

/// Content that arrives, as one of its readers sees it.
pub(crate) struct CachedContent {
    reader: ContentReader,
    /// Bytes that are still to be given out, if the head has said how many.
    len: Option<u64>,
    /// Bytes before the part that is given out, where it is not all.
    skip: u64,
    is_ended: bool,
    scheduler: Rc<Scheduler>,
    wakes: Wakes,
    /// Wakes the task that reads.
    waker: Option<(TaskId, Waker)>,
}

impl CachedContent {
    pub(crate) fn new<E: Engine>(
        reader: ContentReader,
        len: Option<u64>,
        local: &Local<E>,
    ) -> Self {
        Self {
            reader,
            len,
            skip: 0,
            is_ended: false,
            scheduler: Rc::clone(&local.scheduler),
            wakes: local.wakes.clone(),
            waker: None,
        }
    }

    /// As the content of an answer. It is read ahead by what fills it.
    pub(crate) fn into_content<File>(self, settings: &Arc<PassSettings>) -> Content<File>
    where
        File: 'static,
    {
        let room = Room::of(Arc::clone(settings), Some(false));
        Content::source(Box::new(Awaited::new(self, room, Vec::new(), None)))
    }

    fn waker(&mut self) -> Waker {
        let task = self.scheduler.current();
        if self.waker.as_ref().is_none_or(|(known, _)| *known != task) {
            self.waker = Some((task, self.wakes.waker(task)));
        }
        match &self.waker {
            Some((_, waker)) => waker.clone(),
            None => Waker::noop().clone(),
        }
    }
}

impl Source for CachedContent {
    fn poll_piece(&mut self, most: usize, piece: &mut Vec<u8>) -> Poll<Result<bool, SendError>> {
        let waker = self.waker();
        loop {
            if self.len == Some(0) {
                self.is_ended = true;
            }
            if self.is_ended {
                return Poll::Ready(Ok(false));
            }
            match self.reader.poll_piece(most, &waker) {
                Piece::Pending => return Poll::Pending,
                Piece::Failed => return Poll::Ready(Err(SendError::Incomplete)),
                Piece::End if self.len.is_some_and(|len| len > 0) => {
                    return Poll::Ready(Err(SendError::Incomplete));
                }
                Piece::End => self.is_ended = true,
                Piece::Bytes(bytes, range) => {
                    let bytes = bytes.get(range).unwrap_or_default();
                    let skipped = clamp(self.skip).min(bytes.len());
                    self.skip -= skipped as u64;
                    let rest = bytes.get(skipped..).unwrap_or_default();
                    let given = clamp(self.len.unwrap_or(u64::MAX)).min(rest.len());
                    self.len = self.len.map(|len| len - given as u64);
                    piece.extend_from_slice(rest.get(..given).unwrap_or_default());
                    if given > 0 {
                        return Poll::Ready(Ok(true));
                    }
                }
            }
        }
    }

    fn pause(&mut self) {}

    fn cut(&mut self, range: ByteRange) {
        self.skip = range.start;
        self.len = Some(range.len());
    }

    fn trailers(&self) -> Vec<FieldLine> {
        Vec::new()
    }

    fn remaining(&self) -> Option<u64> {
        self.len
    }

    fn is_exhausted(&self) -> bool {
        self.is_ended || self.len == Some(0)
    }

    fn note(&self, _: fmt::Arguments<'_>, _: LogLevel) {}
}

impl fmt::Debug for CachedContent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "CachedContent(at {})", self.reader.position())
    }
}

fn clamp(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
