//! The state of one stream: RFC 9113 5.1.

use super::frame::{ID_MAX, StreamId};
use super::priority::Priority;

/// A stream that is open, or half closed. A closed one is forgotten.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) id: StreamId,
    /// The peer has ended its side.
    pub(super) is_remote_closed: bool,
    /// On a client's side: the final head of the answer has come.
    pub(super) has_head: bool,
    /// Our side has ended.
    pub(super) is_local_closed: bool,
    /// Bytes that may be sent.
    pub(super) send_window: i64,
    /// Bytes that the peer may still send.
    pub(super) receive_window: i64,
    /// The window that is granted anew when half of it is used.
    pub(super) receive_window_bytes: u32,
    /// Bytes that were taken since the last WINDOW_UPDATE.
    pub(super) taken: u32,
    /// Bytes of content that Content-Length still promises.
    pub(super) promised: Option<u64>,
    pub(super) priority: Priority,
    /// By PRIORITY_UPDATE, which counts more than a field of the head.
    pub(super) is_priority_updated: bool,
    /// It waits for room to send content.
    pub(super) wants_to_send: bool,
    /// When it sent last: the one that has waited longest is next among equals.
    pub(super) sent_at: u64,
}

impl Stream {
    /// Takes content into account. `false`: more or less than Content-Length promises.
    pub(super) fn receive(&mut self, len: usize, end: bool) -> bool {
        if let Some(promised) = &mut self.promised {
            match promised.checked_sub(len as u64) {
                Some(left) => *promised = left,
                None => return false,
            }
            if end && *promised > 0 {
                return false;
            }
        }
        self.is_remote_closed |= end;
        true
    }

    /// The peer allows more. `false`: more than a window may be.
    pub(super) fn widen(&mut self, increment: i64) -> bool {
        self.send_window += increment;
        self.send_window <= i64::from(ID_MAX)
    }

    pub(super) const fn is_closed(&self) -> bool {
        self.is_remote_closed && self.is_local_closed
    }
}
