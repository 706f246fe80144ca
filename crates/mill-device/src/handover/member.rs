//! What a process has of the chain, whether or not it owns the device.

use super::{Aim, Endpoint, EventSource, PeerProcess};
use crate::forwarding::Returns;
use std::collections::VecDeque;

/// The process's means, and what comes to it from behind.
pub(crate) struct Member {
    pub(crate) endpoint: Endpoint,
    /// What this process wanted when it began: it gives away at once what it owns only because no other process did.
    pub(crate) aim: Aim,
    pub(crate) successor: Option<PeerProcess>,
    /// Where frames go that the successor returns, if this process has other workers that may know them.
    pub(crate) returns: Option<Returns>,
    /// Connections that others have passed on to this process while it owned the device, each message as it came.
    pub(crate) passed: VecDeque<Vec<u8>>,
    /// A process further down the chain opens connections.
    pub(crate) opens_ports: bool,
}

impl Member {
    pub(crate) fn new(endpoint: Endpoint, aim: Aim) -> Self {
        Self {
            endpoint,
            aim,
            successor: None,
            returns: None,
            passed: VecDeque::new(),
            opens_ports: false,
        }
    }

    /// Installs a successor. A former one loses its channel and joins further down the chain.
    pub(crate) fn set_successor(&mut self, successor: PeerProcess) {
        self.endpoint.note_change();
        successor.open(
            &self.endpoint,
            [EventSource::Successor, EventSource::SuccessorDoorbell],
        );
        if let Some(former) = self.successor.replace(successor) {
            former.close(&self.endpoint);
        }
    }

    pub(crate) fn drop_successor(&mut self) {
        self.endpoint.note_change();
        if let Some(successor) = self.successor.take() {
            successor.close(&self.endpoint);
        }
    }
}
