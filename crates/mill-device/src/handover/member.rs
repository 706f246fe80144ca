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
    /// What this process has given to an owner that ended before it had sent it.
    pub(crate) unsent: Option<Relay>,
    /// Another process opens connections, or another worker of this one.
    pub(crate) opens_ports: bool,
}

impl Member {
    pub(crate) fn new(endpoint: Endpoint, aim: Aim) -> Self {
        Self {
            endpoint,
            aim,
            peers: Peers::default(),
            passed: VecDeque::new(),
            unsent: None,
            opens_ports: false,
        }
    }
}
