//! Segments sent outside of a connection's stream: SYN-ACKs, resets, acknowledgements of TIME-WAIT.

use crate::flow::Flow;
use alloc::collections::VecDeque;
use mill_tcp::segment::SegmentOut;

/// Those that wait for the device, in their order; what peers can cause is bounded.
#[derive(Debug)]
pub(crate) struct ReplyQueue {
    queue: VecDeque<Answer>,
}

/// A segment without payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) flow: Flow,
    pub(crate) segment: SegmentOut,
}

impl ReplyQueue {
    pub(crate) fn new() -> Self {
        Self {
            queue: VecDeque::with_capacity(COUNT_MAX),
        }
    }

    /// Appends one; says whether there was room.
    pub(crate) fn push(&mut self, flow: Flow, segment: SegmentOut) -> bool {
        debug_assert_eq!(segment.len, 0, "an answer has no payload");
        if self.queue.len() >= COUNT_MAX {
            return false;
        }
        self.queue.push_back(Answer { flow, segment });
        true
    }

    /// Appends one that the application has caused, which is never dropped: there are no more of these than it had
    /// connections.
    pub(crate) fn push_own(&mut self, flow: Flow, segment: SegmentOut) {
        self.queue.push_back(Answer { flow, segment });
    }

    /// Whether a burst more might find no room.
    pub(crate) fn is_nearly_full(&self) -> bool {
        self.queue.len() >= COUNT_MAX / 2
    }

    pub(crate) fn pop(&mut self) -> Option<Answer> {
        self.queue.pop_front()
    }

    pub(crate) fn put_back(&mut self, answer: Answer) {
        self.queue.push_front(answer);
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }
}

/// More than a burst causes; 256 of them take 50 KiB. Beyond it an answer is dropped, as the network might drop it.
const COUNT_MAX: usize = 256;
