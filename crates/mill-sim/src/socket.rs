//! Listening sockets and their queues.

use crate::endpoint::EndpointId;
use mill_runtime::address::Address;
use mill_runtime::engine::ListenOptions;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// A socket that listens. Engines that listen with equal address and `share` have one socket together.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) options: ListenOptions,
    /// Established connections that were not accepted yet.
    pub(crate) waiting: VecDeque<EndpointId>,
    /// How many engines listen here; the last one's leaving closes the socket.
    pub(crate) listeners: usize,
}

/// One engine's part in a socket.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) engine: usize,
    pub(crate) socket: usize,
    pub(crate) accepting: bool,
    pub(crate) open: bool,
}

impl Socket {
    pub(crate) const fn is_open(&self) -> bool {
        self.listeners > 0
    }

    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= self.options.backlog as usize
    }

    /// How well the socket fits a target: an exact address before a wildcard.
    pub(crate) fn fit(&self, target: &Address) -> Option<Fit> {
        if !self.is_open() {
            return None;
        }
        if self.options.address == *target {
            return Some(Fit::Exact);
        }
        match (&self.options.address, target) {
            (Address::Ip(own), Address::Ip(target)) if covers(own, target) => Some(Fit::Wildcard),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    Wildcard,
    Exact,
}

fn covers(own: &SocketAddr, target: &SocketAddr) -> bool {
    own.ip().is_unspecified() && own.port() == target.port() && own.is_ipv4() == target.is_ipv4()
}
