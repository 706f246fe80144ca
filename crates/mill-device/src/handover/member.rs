//! What a process has of the handover, whether or not it owns the device.

use super::peers::Peers;
use super::{Aim, Endpoint};
use crate::relay::Relay;
use std::collections::VecDeque;

/// The process's means, and what comes to it from others.
pub(crate) struct Member {
    pub(crate) endpoint: Endpoint,
    /// What this process wanted when it began: it gives away at once what it owns only because no other process did.
    pub(crate) aim: Aim,
    /// Those that stand by while this process owns the device.
    pub(crate) peers: Peers,
    /// Connections that others have passed on to this process while it owned the device, each message as it came.
    pub(crate) passed: VecDeque<Vec<u8>>,
    /// What this process has given to owners that ended before they had sent it, the oldest first.
    pub(crate) unsent: VecDeque<Relay>,
    /// Another process opens connections, or another worker of this one.
    pub(crate) opens_ports: bool,
}

impl Member {
    /// What an owner that has ended has not sent is to go by the next one.
    pub(crate) fn keep_unsent(&mut self, relay: Relay) {
        if self.unsent.len() == UNSENT_MAX {
            self.unsent.pop_front();
        }
        self.unsent.extend(relay.turned_back());
    }

    /// Sends that; `send` as for [`Relay::carry`]. Whether a frame is left.
    pub(crate) fn carry_unsent(&mut self, mut send: impl FnMut(&mut Relay, usize) -> bool) -> bool {
        while let Some(unsent) = self.unsent.front_mut() {
            if unsent.carry(&mut send) {
                return true;
            }
            self.unsent.pop_front();
        }
        false
    }

    pub(crate) fn new(endpoint: Endpoint, aim: Aim) -> Self {
        Self {
            endpoint,
            aim,
            peers: Peers::default(),
            passed: VecDeque::new(),
            unsent: VecDeque::new(),
            opens_ports: false,
        }
    }
}

/// Owners that end in a row before a next one has sent anything.
const UNSENT_MAX: usize = 4;
