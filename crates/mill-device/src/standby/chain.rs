//! This process's place in the chain of those that have the device: it asks for the device, or for a place behind its owner, and
//! hears of its neighbours.

use super::{LOCK_INTERVAL, Parts, StandbyLink};
use crate::handover::{self, Aim, EventSource, Message, PeerProcess, Request, RequestKind};
use crate::interface::InterfaceFault;
use std::io;
use std::os::fd::AsFd;

impl Parts {
    /// Whether connections are opened here or further down the chain.
    pub(super) fn opens_ports(&self) -> bool {
        self.member.opens_ports || self.wanted.ports.is_some()
    }

    pub(super) fn ask_for_ports(&mut self, predecessor: Option<&PeerProcess>) {
        match predecessor {
            Some(predecessor) => predecessor.send_open_ports(),
            None => self.member.opens_ports = true,
        }
    }
}

impl StandbyLink {
    /// Polls the sources and handles what is ready.
    pub(super) fn poll(&mut self) {
        let ready = self.parts.member.endpoint.poll();
        if ready.at(EventSource::Predecessor) {
            self.read_answer();
            self.read_predecessor();
        }
        if ready.at(EventSource::Successor) {
            self.read_successor();
        }
        self.drop_broken_relays();
        self.pass_leaving();
        if ready.at(EventSource::Timer) && self.pending_request.is_some() {
            self.waits += 1;
            if self.waits == WAITS_UNTIL_FAULT {
                (self.parts.on_fault)(InterfaceFault::NotGiven);
            }
        }
        // An owner that was killed leaves no trace but the unlocked file, so a process without predecessor tries again
        // and again; so does one whose predecessor leaves.
        if self.predecessor.is_none() || (self.predecessor_leaves && self.parts.wanted.is_serving())
        {
            self.seek_device();
            self.parts.member.endpoint.set_timer(Some(LOCK_INTERVAL));
        } else if ready.at(EventSource::Timer) {
            self.parts.member.endpoint.set_timer(None);
        }
    }

    /// Tries to become the owner, or else asks the owner for the device or for a place in the chain.
    fn seek_device(&mut self) {
        if self.lock_attempts_left > 0 {
            self.is_owner = self.parts.member.endpoint.lock();
            self.lock_attempts_left = if self.is_owner {
                0
            } else {
                self.lock_attempts_left - 1
            };
            return;
        }
        let may_have = self.predecessor.is_none() && !self.parts.has_failed;
        if may_have && self.parts.member.endpoint.lock() {
            // The former owner may have sent GIVEN and unlocked just now; it is the successor then.
            self.read_answer();
            self.lock_attempts_left = 0;
            self.is_owner = true;
            return;
        }
        let (aim, wanted) = (self.parts.member.aim, &self.parts.wanted);
        let is_to_take =
            aim.is_met_by_owning(wanted) || (self.predecessor_leaves && wanted.is_serving());
        let may_take = !self.parts.has_failed && is_to_take;
        // A process that only opens connections has them behind the owner.
        let is_to_join = aim == Aim::Join || self.parts.opens_ports();
        let has_to_join = self.is_orphan || (!may_take && is_to_join);
        let request_kind = match (has_to_join, &self.predecessor) {
            (true, _) => RequestKind::Join,
            (false, None) => RequestKind::Take,
            (false, Some(_)) => RequestKind::TakeAhead,
        };
        let is_wanted = has_to_join || may_take;
        if self.pending_request.is_none() && is_wanted {
            // If sending fails, the next timer tries again.
            self.pending_request = self.parts.member.endpoint.send_request(request_kind).ok();
        }
    }

    /// Handles the answer to the pending request.
    fn read_answer(&mut self) {
        let Some(pending_request) = self.pending_request.take() else {
            return;
        };
        let Some(message) = handover::next_message(&pending_request) else {
            self.pending_request = Some(pending_request);
            return;
        };
        self.parts.member.endpoint.close(pending_request.as_fd());
        match message {
            Message::Given(far) => {
                self.set_successor(PeerProcess::joined(pending_request, far));
                self.lock_attempts_left = LOCK_ATTEMPTS;
            }
            Message::Welcome(far) => {
                if let Ok(predecessor) = PeerProcess::joined(pending_request, far) {
                    predecessor.open(
                        &self.parts.member.endpoint,
                        [EventSource::Predecessor, EventSource::PredecessorDoorbell],
                    );
                    if self.parts.opens_ports() {
                        predecessor.send_open_ports();
                    }
                    self.predecessor = Some(predecessor);
                    self.set_orphan(false);
                }
            }
            // Refused: another process that serves has the device now.
            _ => self.predecessor_leaves = false,
        }
    }

    /// Installs a successor, if its relay could be had.
    fn set_successor(&mut self, successor: io::Result<PeerProcess>) {
        if let Ok(successor) = successor {
            self.parts.member.set_successor(successor);
            self.has_passed_leaving = false;
        }
    }

    fn read_predecessor(&mut self) {
        while let Some(predecessor) = &self.predecessor
            && let Some(message) = predecessor.next_message()
        {
            match message {
                Message::Leaving => {
                    self.predecessor_leaves = true;
                    self.has_passed_leaving = false;
                }
                Message::Join(channel) => {
                    let request = Request {
                        request_kind: RequestKind::Join,
                        number: 0,
                        channel,
                    };
                    match &self.parts.member.successor {
                        Some(successor) => successor.forward(&request),
                        None => self.set_successor(PeerProcess::admit(request)),
                    }
                }
                _ => self.drop_predecessor(),
            }
        }
    }

    /// Others answer nothing unknown while a process looks for its place.
    pub(super) fn set_orphan(&mut self, is_orphan: bool) {
        if core::mem::replace(&mut self.is_orphan, is_orphan) != is_orphan {
            self.parts.member.endpoint.note_orphan(is_orphan);
        }
    }

    /// The device's owner serves no port, nor does this process: one further down the chain may.
    fn pass_leaving(&mut self) {
        let is_due = self.predecessor_leaves && !self.parts.wanted.is_serving();
        if let Some(successor) = &self.parts.member.successor
            && is_due
            && !self.has_passed_leaving
        {
            successor.send_leaving();
            self.has_passed_leaving = true;
        }
    }

    fn drop_predecessor(&mut self) {
        self.parts.member.endpoint.note_change();
        if let Some(predecessor) = self.predecessor.take() {
            predecessor.close(&self.parts.member.endpoint);
        }
        self.set_orphan(true);
        self.predecessor_leaves = false;
        self.has_passed_leaving = false;
    }

    /// Drops a peer whose relay holds invalid data. The peer sees its channel end, and the chain is formed anew.
    fn drop_broken_relays(&mut self) {
        let is_broken = |peer: &mut PeerProcess| peer.relay.is_broken();
        if self.predecessor.as_mut().is_some_and(is_broken) {
            (self.parts.on_fault)(InterfaceFault::RelayBroken);
            self.drop_predecessor();
        }
        let successor = self.parts.member.successor.as_mut();
        if successor.is_some_and(is_broken) {
            (self.parts.on_fault)(InterfaceFault::RelayBroken);
            self.parts.member.drop_successor();
        }
    }

    fn read_successor(&mut self) {
        while let Some(successor) = &self.parts.member.successor
            && let Some(message) = successor.next_message()
        {
            match message {
                Message::OpenPorts => self.parts.ask_for_ports(self.predecessor.as_ref()),
                Message::End => {
                    // Frames that it sent before it ended.
                    self.carry();
                    self.parts.member.drop_successor();
                }
                _ => {}
            }
        }
    }
}

/// Intervals without an answer until [`InterfaceFault::NotGiven`] is reported: five seconds.
const WAITS_UNTIL_FAULT: u32 = 1000;

/// Intervals that the former owner may take to unlock after GIVEN, until the device is requested again.
const LOCK_ATTEMPTS: u32 = 200;
