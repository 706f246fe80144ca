//! Frames that match none of this worker's connections: another process's, or another worker's.

use super::StandbyLink;
use crate::forwarding::Returns;
use crate::relay::Note;
use mill_stack::link::Received;

impl StandbyLink {
    /// Returns a frame that no worker of this process knows to the predecessor, whose other workers may know it. One that has come
    /// back often enough is dropped: while processes change their places, the workers' chains can form a ring. `false` without a
    /// predecessor.
    pub(crate) fn give_back(&mut self, frame: &Received, bytes: &[u8], returns: u8) -> bool {
        let Some(predecessor) = &mut self.predecessor else {
            return false;
        };
        if returns < RETURNS_MAX {
            let note = Note {
                returns: returns + 1,
                ..Note::arrived(frame.checksum, frame.merged)
            };
            predecessor.relay.put(&note, bytes);
        }
        true
    }

    /// Whether a frame without connection may be of a process that has no place in the chain yet.
    pub(crate) fn may_be_of_others(&self) -> bool {
        !self.parts.member.endpoint.is_settled()
    }

    /// Where frames go that the successor returns.
    pub(crate) fn set_returns(&mut self, returns: Returns) {
        self.parts.member.returns = Some(returns);
    }
}

/// How often a frame comes back: once from each process of a long row of upgrades.
const RETURNS_MAX: u8 = 4;
