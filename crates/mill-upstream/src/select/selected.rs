//! The server that was chosen for a try, and what came of it.

use crate::peer::Peer;
use mill_config::config::upstream::ResponseTime;
use mill_runtime::time::Instant;
use std::sync::Arc;

/// A chosen server. It counts as active until this is dropped.
#[derive(Debug)]
pub struct Selected {
    peer: Arc<Peer>,
    /// The group has no other one: failures do not make it unavailable.
    is_single: bool,
    since: Instant,
    /// The time that `least_time … inflight` looks at, while it runs.
    waiting: Option<ResponseTime>,
}

/// How a try ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server, or the way to it, is to blame.
    Failed,
    /// It says nothing about the server: the client has gone.
    Unknown,
}

impl Selected {
    pub(super) fn new(
        peer: Arc<Peer>,
        is_single: bool,
        waiting: Option<ResponseTime>,
        since: Instant,
    ) -> Self {
        if waiting.is_some() {
            peer.load().begin_waiting(since);
        }
        Self {
            peer,
            is_single,
            since,
            waiting,
        }
    }

    pub const fn peer(&self) -> &Arc<Peer> {
        &self.peer
    }

    /// It has accepted a connection, and that is all that was asked for.
    pub fn connected(&mut self, now: Instant) {
        self.peer.load().passed(&self.peer.settings, now);
        self.measured(ResponseTime::Header, now);
    }

    /// The head of its answer is here. Returns whether it is unhealthy from now on (`failover=` of `health_check`).
    pub fn answered(&mut self, status: u16, now: Instant) -> bool {
        let load = self.peer.load();
        let fails = load.answered(status, now);
        load.passed(&self.peer.settings, now);
        self.measured(ResponseTime::Header, now);
        fails
    }

    /// The head of its answer is here, and another server is tried because of its status.
    pub fn refused(&self, status: u16, now: Instant) -> bool {
        self.peer.load().answered(status, now)
    }

    /// All of its answer is here.
    pub fn completed(&mut self, now: Instant) {
        self.measured(ResponseTime::LastByte, now);
    }

    /// The try has failed; the server is free. Returns whether it is unavailable from now on.
    pub fn report(self, outcome: Outcome, now: Instant) -> bool {
        match outcome {
            Outcome::Failed if self.is_single => {
                self.peer.load().failed_alone();
                false
            }
            Outcome::Failed => self.peer.load().failed(&self.peer.settings, now),
            Outcome::Unknown => false,
        }
    }

    fn measured(&mut self, time: ResponseTime, now: Instant) {
        self.peer.load().measured(time, now.since(self.since));
        if self.waiting == Some(time) {
            self.stop_waiting();
        }
    }

    fn stop_waiting(&mut self) {
        if self.waiting.take().is_some() {
            self.peer.load().end_waiting(self.since);
        }
    }
}

impl Drop for Selected {
    fn drop(&mut self) {
        self.stop_waiting();
        self.peer.load().end();
    }
}
