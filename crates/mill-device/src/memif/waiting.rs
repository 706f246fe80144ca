//! Frames that are sent before there is a peer, such as a host's first ARP request: the last few are kept.

use mill_stack::link::Offload;
use std::collections::VecDeque;

/// The last frames sent without a peer.
#[derive(Debug, Default)]
pub(super) struct Waiting(VecDeque<(Vec<u8>, Offload)>);

impl Waiting {
    /// Keeps a copy, and drops the oldest if there are too many; returns the number of frames that are lost by that.
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

    /// Length of the oldest frame.
    pub(super) fn next_len(&self) -> Option<usize> {
        self.0.front().map(|(frame, _)| frame.len())
    }

    /// Takes the oldest frame.
    pub(super) fn pop(&mut self) -> Option<(Vec<u8>, Offload)> {
        self.0.pop_front()
    }
}

/// Neighbour requests and the first segments of a few connections; other senders retransmit.
const COUNT_MAX: usize = 16;

/// Bytes of a frame: requests and SYNs are small, and what is larger is retransmitted.
const FRAME_BYTES_MAX: usize = 256;
