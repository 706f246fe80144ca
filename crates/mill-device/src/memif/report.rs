//! Counters of an interface, and the changes of its peer.

use std::fmt;
use std::io;

/// Counters of frames, not segments: a frame may stand for many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemifCounters {
    pub received: u64,
    pub received_bytes: u64,
    /// Frames whose descriptors were invalid.
    pub refused: u64,
    pub transmitted: u64,
    pub transmitted_bytes: u64,
    /// Frames dropped because there was no peer for too long.
    pub unconnected: u64,
    /// Frames that a peer had not received when it disconnected.
    pub untaken: u64,
    /// Frames dropped because the peer's buffers were too few.
    pub no_room: u64,
    /// Signals sent to a sleeping peer.
    pub wakeups: u64,
    /// Peers that have connected.
    pub connected: u64,
    /// Handshakes that have failed.
    pub failed: u64,
}

/// A change of the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemifChange {
    /// The peer has connected. `offload`: large frames pass whole, and without checksums.
    Up { offload: bool },
    /// The peer that connects has fewer rings than there are workers here, which need one each.
    FewRings { rings: usize, workers: usize },
    /// The peer has disconnected; why.
    Down(String),
    /// A handshake has failed; why.
    Failed(String),
    /// As slave: no process listens at the socket, or it cannot be used; why.
    Absent(io::ErrorKind),
}

/// Calls a listener at changes.
pub(super) struct ChangeReporter {
    listener: Box<dyn Fn(&MemifChange) + Send>,
    last: Option<MemifChange>,
}

impl ChangeReporter {
    pub(super) fn new(listener: impl Fn(&MemifChange) + Send + 'static) -> Self {
        Self {
            listener: Box::new(listener),
            last: None,
        }
    }

    /// Reports a change, except a first peer, which is expected, and a repetition of the last change, as when a slave
    /// is refused at each try.
    pub(super) fn report(&mut self, change: &MemifChange) {
        let is_expected = self.last.is_none() && matches!(change, MemifChange::Up { .. });
        if self.last.as_ref() != Some(change) {
            self.last = Some(change.clone());
            if !is_expected {
                (self.listener)(change);
            }
        }
    }
}

impl fmt::Debug for ChangeReporter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ChangeReporter({:?})", self.last)
    }
}
