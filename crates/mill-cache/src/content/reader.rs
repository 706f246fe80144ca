//! A reader of content: its position, which a passing stream's writer heeds.

use std::sync::Arc;
use std::task::Waker;

use super::{Content, Piece};
use crate::lock::locked;

/// Reads one content in order, on any thread. Dropped, it is not waited for any more.
#[derive(Debug)]
pub struct ContentReader {
    content: Arc<Content>,
    position: u64,
    /// Its place among the readers of content that grew when it began.
    number: Option<usize>,
}

impl ContentReader {
    pub(super) fn of_whole(content: Arc<Content>, position: u64) -> Self {
        let number = None;
        Self {
            content,
            position,
            number,
        }
    }

    pub(super) fn registered(content: Arc<Content>, position: u64, number: usize) -> Self {
        let number = Some(number);
        Self {
            content,
            position,
            number,
        }
    }

    /// What it reads.
    pub fn content(&self) -> &Arc<Content> {
        &self.content
    }

    /// The offset of the next byte.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The next piece, at most `most` bytes (at least one), which then count as read. With [`Piece::Pending`], `waker` is
    /// woken when there is more; it replaces the one of an earlier call. Without a lock once the content is whole.
    pub fn poll_piece(&mut self, most: usize, waker: &Waker) -> Piece {
        let piece = match self.content.whole.get() {
            Some(whole) => whole.piece(self.position, most),
            None => self.growing_piece(most, waker),
        };
        if let Piece::Bytes(_, range) = &piece {
            self.position += range.len() as u64;
        }
        piece
    }

    fn growing_piece(&self, most: usize, waker: &Waker) -> Piece {
        let mut growing = locked(&self.content.growing);
        let (Some(inner), Some(number)) = (growing.as_mut(), self.number) else {
            drop(growing);
            // The content became whole between the two looks.
            let whole = self.content.whole.get();
            return whole.map_or(Piece::Failed, |whole| whole.piece(self.position, most));
        };
        let (piece, wakes) = inner.read(number, most, waker);
        drop(growing);
        wakes.wake();
        piece
    }
}

impl Drop for ContentReader {
    fn drop(&mut self) {
        let Some(number) = self.number else {
            return;
        };
        let mut growing = locked(&self.content.growing);
        let wakes = growing.as_mut().map(|inner| inner.dismiss(number));
        drop(growing);
        wakes.into_iter().for_each(|wakes| wakes.wake());
    }
}
