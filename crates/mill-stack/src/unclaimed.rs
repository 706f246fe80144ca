//! SYNs to ports at which nothing listens yet, kept for a moment: a program may have bound the port and be about to listen there.

use crate::receive::{Packet, Refused};
use alloc::vec::Vec;
use mill_tcp::time::{Duration, Instant};

/// SYNs that wait for a listener, the oldest first. Without [`Self::is_on`] there are none.
#[derive(Debug, Default)]
pub(crate) struct UnclaimedSyns {
    pub(crate) is_on: bool,
    kept: Vec<UnclaimedSyn>,
}

/// A SYN, and what it would be answered with.
#[derive(Debug)]
pub(crate) struct UnclaimedSyn {
    arrived_at: Instant,
    /// A listener at its port is expected.
    pub(crate) is_expected: bool,
    pub(crate) packet: Packet,
    pub(crate) segment: Vec<u8>,
    pub(crate) refused: Refused,
}

impl UnclaimedSyn {
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        now.since(self.arrived_at) > PATIENCE
    }
}

impl UnclaimedSyns {
    /// Keeps a SYN, in the place of one of the same flow. Gives it back if there is no room.
    pub(crate) fn push(
        &mut self,
        packet: &Packet,
        segment: &[u8],
        refused: Refused,
        now: Instant,
    ) -> Option<Refused> {
        self.kept
            .retain(|other| other.refused.flow() != refused.flow() && !other.is_over(now));
        if !self.is_on || self.kept.len() >= KEPT_MAX {
            return Some(refused);
        }
        self.kept.push(UnclaimedSyn {
            arrived_at: now,
            is_expected: false,
            packet: packet.clone(),
            segment: segment.to_vec(),
            refused,
        });
        None
    }

    /// Keeps one that was taken.
    pub(crate) fn put_back(&mut self, syn: UnclaimedSyn) {
        self.kept.push(syn);
    }

    pub(crate) fn take(&mut self) -> Vec<UnclaimedSyn> {
        core::mem::take(&mut self.kept)
    }

    /// Whether there is one of which it is not known whether a listener is expected.
    pub(crate) fn has_news(&self) -> bool {
        self.kept.iter().any(|syn| !syn.is_expected)
    }
}

/// As many as the least backlog of half-open connections would hold several times over.
const KEPT_MAX: usize = 64;

/// A peer sends its SYN again after this time (RFC 6298 2.1).
const PATIENCE: Duration = Duration::from_secs(1);
