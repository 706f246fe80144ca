//! What an interface tells of itself.

use std::fmt;
use std::io;

/// What passed and what did not. Frames, not segments: one may be many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemifCounters {
    pub received: u64,
    pub received_bytes: u64,
    /// Frames of which the peer wrote nonsense.
    pub refused: u64,
    pub transmitted: u64,
    pub transmitted_bytes: u64,
    /// Frames for which there was nobody for too long.
    pub unconnected: u64,
    /// Frames that a peer had not taken when it went away.
    pub untaken: u64,
    /// Frames for which the peer's buffers were too few.
    pub no_room: u64,
    /// Times that the peer slept and was woken.
    pub wakeups: u64,
    /// Times that a peer has connected.
    pub connected: u64,
    /// Handshakes that came to nothing.
    pub failed: u64,
}

/// What has become of the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemifChange {
    /// Frames pass. `offload`: large ones too, and without checksums.
    Up { offload: bool },
    /// They no longer do; why.
    Down(String),
    /// One who wanted to connect, or to whom we did, was not the right one; why.
    Failed(String),
    /// As slave: nobody listens at the socket, or it can't be used; why.
    Absent(io::ErrorKind),
}

/// Who hears of changes.
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

    /// Tells a change, but for the first peer, who is expected, and the last change again, as when a slave is refused each
    /// time it tries.
    pub(super) fn tell(&mut self, change: &MemifChange) {
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
