//! This process's way to the owner: it asks for the device, or for a way to its owner, and hears of it.

use super::{LOCK_INTERVAL, StandbyLink};
use crate::handover::{self, Aim, EventSource, Message, PeerProcess, ProcessNumber, RequestKind};
use crate::interface::InterfaceFault;
use mill_sys::clock;
use std::os::fd::AsFd;
use std::time::Duration;

/// The former owner has given the device: a way to it, on which those to the others follow.
#[derive(Debug)]
pub(super) struct Given {
    former: (ProcessNumber, u64),
    process: PeerProcess,
    ways: u32,
}

impl StandbyLink {
    /// Polls the sources and handles what is ready.
    pub(super) fn poll(&mut self) {
        let ready = self.parts.member.endpoint.poll();
        if ready.at(EventSource::Owner) {
            self.read_answer();
            self.read_owner();
        }
        if self.former.is_some() || !self.parts.member.unsent.is_empty() {
            self.send_unsent();
        }
        self.drop_broken_relay();
        if ready.at(EventSource::Timer) && self.pending_request.is_some() {
            self.waits += 1;
            if self.waits == WAITS_UNTIL_FAULT {
                (self.parts.on_fault)(InterfaceFault::NotGiven);
            }
        }
        if self.is_seeking() {
            self.seek_device();
        }
        // An owner that was killed leaves no trace but the unlocked file, so a process without owner tries again
        // and again. One that leaves answers.
        if self.owner.is_none() || (self.is_seeking() && self.pending_request.is_none()) {
            self.parts.member.endpoint.set_timer(Some(LOCK_INTERVAL));
        } else if ready.at(EventSource::Timer) {
            self.parts.member.endpoint.set_timer(None);
        }
    }

    /// Whether this process wants another place than it has.
    pub(super) fn is_seeking(&self) -> bool {
        let is_without = self.owner.is_none() || self.lock_until.is_some() || self.wants_part;
        is_without || (self.owner_leaves && self.parts.wanted.is_serving())
    }

    /// Tries to become the owner, or else asks the owner for the device or for a way to it.
    pub(super) fn seek_device(&mut self) {
        if let Some(until) = self.lock_until {
            self.is_owner = !self.has_frames() && self.parts.member.endpoint.lock();
            if !self.is_owner && clock::monotonic() >= until {
                // Whatever has the device by now: the former owner, and those to which it had ways, ask that, and so does this process.
                (self.given, self.lock_until) = (None, None);
                self.lose_owner();
            }
            return;
        }
        let may_have = self.owner.is_none() && !self.parts.has_failed;
        if may_have && self.has_frames() {
            return;
        }
        if may_have && self.parts.member.endpoint.lock() {
            // The former owner may have sent GIVEN and unlocked just now.
            self.read_answer();
            self.lock_until = None;
            self.is_owner = true;
            return;
        }
        let (aim, wanted) = (self.parts.member.aim, &self.parts.wanted);
        let is_to_take = aim.is_met_by_owning(wanted) || (self.owner_leaves && wanted.is_serving());
        let may_take = !self.parts.has_failed && is_to_take;
        self.wants_part &= may_take;
        // A process that only opens connections has them by way of the owner.
        let is_to_join = aim == Aim::Join || self.parts.opens_ports();
        let is_fresh = self.owner.is_none();
        let has_to_join = self.is_orphan || (is_fresh && !may_take && is_to_join);
        let request_kind = match (has_to_join, self.owner_leaves) {
            (true, _) => RequestKind::Join,
            (false, false) => RequestKind::Take,
            (false, true) => RequestKind::TakeAhead,
        };
        let is_wanted = has_to_join || may_take;
        if self.pending_request.is_none() && is_wanted {
            // If sending fails, the next timer tries again.
            let endpoint = &self.parts.member.endpoint;
            self.pending_request = endpoint.send_request(request_kind, aim).ok();
            self.wants_part &= has_to_join || self.pending_request.is_none();
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
        let endpoint = &self.parts.member.endpoint;
        endpoint.close(pending_request.as_fd());
        match message {
            Message::Given { former, way, ways } => {
                let process = PeerProcess::joined(pending_request, way).ok();
                self.given = process.map(|process| Given {
                    former,
                    process,
                    ways,
                });
                self.lock_until = Some(clock::monotonic() + LOCK_TIME);
            }
            Message::Welcome(way) => {
                if let Ok(owner) = PeerProcess::joined(pending_request, way) {
                    owner.open(endpoint, [EventSource::Owner, EventSource::OwnerDoorbell]);
                    if self.parts.opens_ports() {
                        owner.send_open_ports();
                    }
                    self.owner = Some(owner);
                    self.is_orphan = false;
                    self.announce(&self.parts.wanted.services);
                }
            }
            // Refused: another process that serves has the device now.
            _ => self.owner_leaves = false,
        }
    }

    /// Takes the ways over that the former owner has had, all of which it has sent before it gave up the lock.
    pub(super) fn take_ways(&mut self) {
        let Some(given) = self.given.take() else {
            return;
        };
        let member = &mut self.parts.member;
        for _ in 0..given.ways {
            match given.process.next_message() {
                Some(Message::Passed(names, way, channel)) => {
                    if let Ok(process) = PeerProcess::joined(channel, *way) {
                        member.peers.add(&member.endpoint, names, process);
                    }
                }
                // One could not be sent: its process asks for another. This follows on them.
                Some(Message::OpenPorts) => member.opens_ports = true,
                _ => break,
            }
        }
        member
            .peers
            .add(&member.endpoint, given.former, given.process);
    }

    fn read_owner(&mut self) {
        while let Some(owner) = &self.owner
            && let Some(message) = owner.next_message()
        {
            match message {
                Message::Leaving => self.owner_leaves = true,
                _ => self.drop_owner(),
            }
        }
    }

    fn drop_owner(&mut self) {
        // If it was given the device and has not locked it yet, it will not. Where this process was, that ends its former way.
        if self.given.is_none() {
            self.parts.member.endpoint.end_reservation();
        }
        self.lose_owner();
    }

    fn lose_owner(&mut self) {
        self.parts.member.endpoint.note_change();
        self.close_way();
        self.is_orphan = true;
        self.owner_leaves = false;
    }

    /// Leaves the owner. What lies in the relay is kept, unless that is broken.
    pub(super) fn close_way(&mut self) {
        if let Some(owner) = self.owner.take() {
            owner.close(&self.parts.member.endpoint);
            self.leave_former();
            self.former = Some(owner.relay).filter(|relay| !relay.is_broken());
        }
    }

    /// Nothing more is received of what a former owner has given; what it has not sent goes by the next one.
    pub(super) fn leave_former(&mut self) {
        if let Some(former) = self.former.take() {
            self.parts.member.keep_unsent(former);
        }
    }

    /// Whether an owner that has left has given frames which are not received yet. They are before this process has the device, from which it
    /// receives from then on.
    fn has_frames(&mut self) -> bool {
        let owner = self.owner.as_mut().map(|owner| &mut owner.relay);
        let mut relays = owner.into_iter().chain(&mut self.former);
        relays.any(|relay| relay.waiting().is_some())
    }

    /// Gives the owner what former ones have not sent, once all that they have given is received.
    fn send_unsent(&mut self) {
        if let Some(former) = self.former.take_if(|relay| relay.waiting().is_none()) {
            self.parts.member.keep_unsent(former);
        }
        let (Some(owner), room) = (&mut self.owner, &mut self.room) else {
            return;
        };
        self.parts.member.carry_unsent(|unsent, len| {
            if !owner.relay.has_room(len) {
                return false;
            }
            let room = room.get_mut(..len).unwrap_or_default();
            if let Some(note) = unsent.take(room) {
                owner.relay.put(&note, room);
            }
            true
        });
        owner.relay.publish();
    }

    /// Drops an owner whose relay holds invalid data. It sees the channel end, and this process asks for another way.
    fn drop_broken_relay(&mut self) {
        let is_broken = |peer: &PeerProcess| peer.relay.is_broken();
        if self.owner.as_ref().is_some_and(is_broken) {
            (self.parts.on_fault)(InterfaceFault::RelayBroken);
            self.drop_owner();
        }
    }
}

/// Intervals without an answer until [`InterfaceFault::NotGiven`] is reported: five seconds.
const WAITS_UNTIL_FAULT: u32 = 1000;

/// How long the former owner may take to unlock after GIVEN, until the device is requested again.
const LOCK_TIME: Duration = Duration::from_secs(1);
