//! Content that arrives while it is sent.

use crate::exchange::SendError;
use crate::response::FieldLine;
use mill_config::config::LogLevel;
use mill_http::range::ByteRange;
use std::fmt;
use std::task::Poll;

/// Content from elsewhere, an upstream's answer for instance: it is awaited, in the task of the request.
pub trait Source: fmt::Debug {
    /// Appends the next bytes, 1 to `most` of them, to `piece`; `Ok(false)` at the end, where nothing was appended.
    /// `most` is at least 1. States with `poll_deadline` how long the task may wait, if the source has a timeout.
    /// [`SendError::Incomplete`] where the content ends before its end; the source has logged it.
    fn poll_piece(&mut self, most: usize, piece: &mut Vec<u8>) -> Poll<Result<bool, SendError>>;

    /// Nothing is awaited now: there is no room for it. No timeout runs until the next piece is asked for.
    fn pause(&mut self);

    /// Gives out these bytes of the content alone. Called at most once, before the first piece is asked for.
    fn cut(&mut self, range: ByteRange);

    /// What follows the content, once it is exhausted.
    fn trailers(&self) -> Vec<FieldLine>;

    /// Remaining bytes, `None` when only the end will tell.
    fn remaining(&self) -> Option<u64>;

    /// All bytes were given out, and no more follow.
    fn is_exhausted(&self) -> bool;

    /// Has a line logged about the content's way, once the request is known again.
    fn note(&self, line: fmt::Arguments<'_>, level: LogLevel);
}
