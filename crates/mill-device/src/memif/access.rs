//! How a worker comes to its rings: by the control channel, or from the worker that has it.

use super::connection::Connection;
use super::control::{Control, News, ON_CHANGE, RING};
use super::follower::Follower;
use super::handshake::Refusal;
use mill_sys::epoll::Epoll;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// One of the two ways.
#[derive(Debug)]
pub(super) enum Access {
    Control(Box<Control>),
    Follower(Follower),
}

impl Access {
    /// Handles all events and clears the edge-triggered ones. One system call if there are none.
    pub(super) fn look(&mut self, news: &mut Vec<News>) {
        match self {
            Self::Control(control) => control.look(news),
            Self::Follower(follower) => follower.look(news),
        }
    }

    /// Disconnects a peer that violates the protocol.
    pub(super) fn hang_up(&mut self, refusal: Refusal) {
        match self {
            Self::Control(control) => control.hang_up(refusal),
            Self::Follower(follower) => follower.hang_up(),
        }
    }

    /// Whether it is not known yet that there are no rings: what is to be sent has to wait.
    pub(super) fn is_asking(&self) -> bool {
        match self {
            Self::Control(_) => false,
            Self::Follower(follower) => follower.is_asking(),
        }
    }

    /// Leaves the connection to the next process, which is asked to go on with it.
    pub(super) fn leave(&mut self) {
        match self {
            Self::Control(control) => control.leave(),
            // The next process's worker asks the leader for its rings.
            Self::Follower(_) => {}
        }
    }

    /// Makes the connection's events part of this descriptor's readiness.
    pub(super) fn watch(&self, connection: &Connection) -> io::Result<()> {
        for event in connection.events() {
            self.epoll().add(event, ON_CHANGE, RING)?;
        }
        Ok(())
    }

    /// Has to be called before the connection is dropped: the peer holds the same eventfds open, so that closing them
    /// here does not remove them from the epoll set.
    pub(super) fn forget(&self, connection: &Connection) {
        for event in connection.events() {
            // An event that was never added is not found.
            let _ = self.epoll().remove(event);
        }
    }

    fn epoll(&self) -> &Epoll {
        match self {
            Self::Control(control) => control.epoll(),
            Self::Follower(follower) => follower.epoll(),
        }
    }
}

impl AsFd for Access {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll().as_fd()
    }
}
