//! The content of a request, taken by another task than its own.

use super::{Http2, Taken};
use crate::exchange::ContentError;
use mill_http::h2::frame::StreamId;
use mill_runtime::engine::Engine;
use mill_runtime::tasks::TaskId;
use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use std::task::Poll;

/// A handle of one stream's content.
pub struct SharedContent<E: Engine> {
    connection: Rc<Http2<E>>,
    stream: StreamId,
    /// Bytes that may still come, of content without a length (`client_max_body_size`).
    left: Cell<Option<u64>>,
}

impl<E: Engine> SharedContent<E> {
    pub(crate) const fn new(connection: Rc<Http2<E>>, stream: StreamId, left: Option<u64>) -> Self {
        Self {
            connection,
            stream,
            left: Cell::new(left),
        }
    }

    /// The task that is woken when there is something to take; [`TaskId::NONE`] for no other than the request's.
    pub(crate) fn set_task(&self, task: TaskId) {
        self.connection.set_content_task(self.stream, task);
    }

    /// Takes at most `most` bytes; ready with `false` at the end.
    pub(crate) fn poll_take(
        &self,
        most: usize,
        mut take: impl FnMut(&[u8]),
    ) -> Poll<Result<bool, ContentError>> {
        match self.connection.take_content(self.stream, most, &mut take) {
            Taken::Content(len) => match self.left.get() {
                None => Poll::Ready(Ok(true)),
                Some(left) => {
                    let left = left.checked_sub(len as u64);
                    self.left.set(left);
                    Poll::Ready(left.map(|_| true).ok_or(ContentError::TooLarge))
                }
            },
            Taken::Ended => Poll::Ready(Ok(false)),
            Taken::Lost(error) => Poll::Ready(Err(ContentError::Lost(error))),
            Taken::NeedMore => Poll::Pending,
        }
    }
}

impl<E: Engine> fmt::Debug for SharedContent<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SharedContent({})", self.stream)
    }
}
