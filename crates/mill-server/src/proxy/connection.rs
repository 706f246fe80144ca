//! A connection to an upstream server while a request uses it.

use super::CarrierOf;
use super::session::Binding;
use crate::upstreams::WorkerGroup;
use crate::upstreams::queue::Freed;
use mill_multiplex::carrier::Carrier;
use mill_runtime::engine::Engine;
use mill_runtime::stream::Stream;
use mill_runtime::time::Instant;
use mill_upstream::pool::Reuse;
use mill_upstream::select::Selected;
use std::fmt;
use std::rc::Rc;

/// A connection that belongs to one request. Dropping it closes it; `release` keeps it for another request if it
/// may be kept. The server counts as in use until then.
pub struct UpstreamConnection<E: Engine> {
    stream: CarrierOf<E>,
    selected: Selected,
    /// Dropped after `selected`.
    _freed: Freed,
    group: Rc<WorkerGroup<E>>,
    reuse: Reuse,
    /// It was taken from the pool: the server may have closed it meanwhile.
    pub(super) is_reused: bool,
    /// The request was sent whole, and the answer allows another one.
    pub(super) may_be_kept: bool,
    /// What the stream had sent before this request.
    sent_before: u64,
    /// What `sticky learn` learns at the end of the answer.
    pub(super) binding: Option<Box<Binding>>,
}

impl<E: Engine> UpstreamConnection<E> {
    pub(super) fn new(
        stream: CarrierOf<E>,
        reuse: Reuse,
        selected: Selected,
        group: Rc<WorkerGroup<E>>,
    ) -> Self {
        Self {
            sent_before: stream.sent(),
            is_reused: reuse.is_begun(),
            reuse,
            may_be_kept: false,
            binding: None,
            stream,
            selected,
            _freed: group.freed(),
            group,
        }
    }

    pub(super) const fn stream(&self) -> &CarrierOf<E> {
        &self.stream
    }

    pub(super) const fn selected(&mut self) -> &mut Selected {
        &mut self.selected
    }

    /// The server has said that it did not begin with the request.
    pub(super) fn is_refused(&self) -> bool {
        matches!(&self.stream, Carrier::Call(call) if call.is_refused())
    }

    /// Bytes that have arrived and were not taken.
    pub(super) fn unread(&self) -> usize {
        self.stream.read(|bytes| (0, bytes.len()))
    }

    /// Closes the connection; how its try has ended is yet to be told.
    pub(super) fn into_selected(self) -> Selected {
        self.selected
    }

    /// Bytes of the request that have gone out.
    pub(super) fn sent(&self) -> u64 {
        self.stream.sent().saturating_sub(self.sent_before)
    }

    /// The answer is whole: the connection waits for another request, or is closed.
    pub(super) fn release(mut self, now: Instant) {
        self.selected.completed(now);
        let is_clean = self.stream.queued() == 0 && self.unread() == 0;
        if let Carrier::Own(stream) = self.stream
            && self.may_be_kept
            && is_clean
        {
            let peer = self.selected.peer();
            self.group.keep(peer, stream, self.reuse, now);
        }
    }
}

impl<E: Engine> fmt::Debug for UpstreamConnection<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "UpstreamConnection({})", self.stream.peer())
    }
}
