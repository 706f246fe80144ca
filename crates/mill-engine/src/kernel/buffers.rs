//! The two buffers that all connections of a worker share within a turn.

use mill_runtime::received::{ReceiveBuffers, Received};
use std::fmt;
use std::ops::RangeInclusive;
use std::rc::Rc;

/// The bytes that were received last, with the slot that they belong to. Bytes that the task did not consume move to
/// the slot when another slot receives, or at the end of the turn.
pub(super) struct Inbound {
    bytes: Vec<u8>,
    buffers: Rc<ReceiveBuffers>,
    start: usize,
    end: usize,
    owner: Option<u32>,
}

impl Inbound {
    pub(super) fn new() -> Self {
        let buffers = ReceiveBuffers::new(INBOUND_BYTES, VACANT_MAX);
        Self {
            bytes: buffers.take(),
            buffers,
            start: 0,
            end: 0,
            owner: None,
        }
    }

    pub(super) fn owner(&self) -> Option<u32> {
        self.owner
    }

    /// The whole buffer, to receive into.
    pub(super) fn space(&mut self) -> &mut [u8] {
        debug_assert!(
            self.owner.is_none(),
            "what was left is kept before the next receive"
        );
        &mut self.bytes
    }

    pub(super) fn fill(&mut self, owner: u32, count: usize) {
        (self.start, self.end) = (0, count.min(self.bytes.len()));
        self.owner = (count > 0).then_some(owner);
    }

    pub(super) fn unread(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.start..self.end).unwrap_or_default()
    }

    pub(super) fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
        if self.start == self.end {
            self.owner = None;
        }
    }

    /// Gives the buffer away with the unread bytes of `owner`, and goes on with another one.
    pub(super) fn give(&mut self, owner: u32, lengths: &RangeInclusive<usize>) -> Option<Received> {
        let unread = self.start..self.end;
        if self.owner != Some(owner) || !lengths.contains(&unread.len()) {
            return None;
        }
        let given = std::mem::replace(&mut self.bytes, self.buffers.take());
        self.clear();
        Some(Received::new(given, unread, Rc::clone(&self.buffers)))
    }

    pub(super) fn clear(&mut self) {
        (self.start, self.end, self.owner) = (0, 0, None);
    }
}

/// The bytes that were written last, with the slot that wrote them; sent when that task waits, when another slot
/// writes, when the buffer is full, or at the end of the turn.
pub(super) struct Gather {
    pub(super) bytes: Vec<u8>,
    owner: Option<u32>,
}

impl Gather {
    pub(super) fn new() -> Self {
        Self {
            bytes: Vec::with_capacity(GATHER_BYTES),
            owner: None,
        }
    }

    pub(super) fn owner(&self) -> Option<u32> {
        self.owner
    }

    pub(super) fn has_room(&self, len: usize) -> bool {
        self.bytes.len() + len <= GATHER_BYTES
    }

    pub(super) fn append(&mut self, owner: u32, bytes: &[u8]) {
        debug_assert!(
            self.owner.is_none_or(|other| other == owner),
            "flushed before another writes"
        );
        self.owner = Some(owner);
        self.bytes.extend_from_slice(bytes);
    }

    /// Bytes gathered for `owner`.
    pub(super) fn len_of(&self, owner: u32) -> usize {
        if self.owner == Some(owner) {
            self.bytes.len()
        } else {
            0
        }
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.owner = None;
    }
}

impl fmt::Debug for Inbound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "Inbound({} bytes of {:?})",
            self.end - self.start,
            self.owner
        )
    }
}

impl fmt::Debug for Gather {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "Gather({} bytes of {:?})",
            self.bytes.len(),
            self.owner
        )
    }
}

/// Bytes received in one call at most; also the most that a connection can have unread beyond what its task asked for.
pub(super) const INBOUND_BYTES: usize = 64 * 1024;

/// Buffers for received bytes that are kept while they are not in use: 4 MiB.
const VACANT_MAX: usize = 64;

/// Responses to pipelined requests are gathered up to this many bytes, and smaller payloads are copied rather
/// than referred to.
pub(super) const GATHER_BYTES: usize = 64 * 1024;
