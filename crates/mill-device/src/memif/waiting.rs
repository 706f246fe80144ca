//! Frames that are sent before there is a peer, as a host's first question for a neighbour is: the last few wait.

use mill_stack::link::Offload;
use std::collections::VecDeque;

/// The last frames for which there was nobody.
#[derive(Debug, Default)]
pub(super) struct Waiting(VecDeque<(Vec<u8>, Offload)>);

impl Waiting {
    /// Keeps a copy, and forgets the oldest if there are enough; says how many frames are lost by that.
    pub(super) fn push(&mut self, frame: &[u8], offload: Offload) -> u64 {
        if frame.len() > FRAME_BYTES_MAX {
            return 1;
        }
        let is_full = self.0.len() == COUNT_MAX;
        let oldest = if is_full { self.0.pop_front() } else { None };
        let mut place = oldest.map(|(place, _)| place).unwrap_or_default();
        place.clear();
        place.extend_from_slice(frame);
        self.0.push_back((place, offload));
        u64::from(is_full)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes of the one that has waited longest.
    pub(super) fn next_len(&self) -> Option<usize> {
        self.0.front().map(|(frame, _)| frame.len())
    }

    /// The one that has waited longest.
    pub(super) fn pop(&mut self) -> Option<(Vec<u8>, Offload)> {
        self.0.pop_front()
    }
}

/// Questions for neighbours and first segments of a few connections; who sends more sends it again.
const COUNT_MAX: usize = 16;

/// Bytes: what asks and opens is small, and what is large is sent again.
const FRAME_BYTES_MAX: usize = 256;
