//! The owner's side of the handover: it sends the frames of those that stand by, gives them theirs, and answers requests for the
//! device.

use super::directory::{Directory, Holder, ProcessTag};
use super::member::Member;
use super::peers::Peers;
use super::returned_frames::{ReturnedFrames, is_returned, returns};
use super::waiting_frames::WaitingFrames;
use super::{Asked, Endpoint, EventSource, PeerProcess, Request, RequestKind};
use crate::interface::{FaultCallback, InterfaceFault, untaken};
use crate::relay::{FarEnd, Note, RETURNS_MAX, Relay, RelayCounters};
use crate::standby::{Origin, Parts, StandbyLink};
use crate::steering::Table;
use crate::wanted::Wanted;
use mill_stack::link::{FrameId, Link, Received, Stray};
use mill_sys::epoll::Watcher;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Frames of others on their way out.
mod carrying;
use carrying::{carry, carry_unsent};

/// What the owner keeps for the handover. `O` opens the device again when it has come back to this process.
pub(crate) struct Owner<O> {
    member: Member,
    reopen: O,
    /// The request to answer at the end of this turn.
    take_request: Option<Request>,
    /// Requests for ways, which are answered before that one, once this process has listed its flows.
    join_requests: Vec<Request>,
    /// LEAVING was sent: this process serves no port any more.
    has_announced_leaving: bool,
    /// Frames of others wait for room at the device.
    has_backlog: bool,
    /// Frames for others wait for a way to them.
    waiting: WaitingFrames,
    /// Frames that others had and that are to be received once more.
    returned: ReturnedFrames,
    /// The former owner is gone: other processes are about to ask for ways, until the timer expires.
    expects_joins: bool,
    /// The table's entries for what former owners served are kept as long as another process lives, which may be stopped: the timer
    /// looks.
    awaits_stopped: bool,
}

/// A process that is to have the device, and a relay to it.
pub(crate) struct Heir {
    request: Request,
    relay: Relay,
    far: FarEnd,
}

/// What has become of a frame that may be another process's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// It is no business of this process any more.
    Done,
    /// It is another process's, to which there is no way here yet. Where no other worker has one, it is dropped, as on a full link; when
    /// it is sent again, there may be one.
    NoWay,
    None,
}

impl Delivery {
    const fn of(is_given: bool) -> Self {
        match is_given {
            true => Self::Done,
            false => Self::None,
        }
    }
}

impl<O> Owner<O> {
    /// `table` is the device's, where it is steered.
    pub(crate) fn new(member: Member, reopen: O, table: Option<&Table>) -> Box<Self> {
        let expects_joins = member.peers.is_empty() && table.is_some_and(Table::keeps_any);
        if expects_joins {
            member.endpoint.set_timer(Some(TIMEOUT));
        } else if let Some(table) = table {
            table.set_has_successor(!member.peers.is_empty());
        }
        Box::new(Self {
            member,
            reopen,
            take_request: None,
            join_requests: Vec::new(),
            has_announced_leaving: false,
            has_backlog: false,
            waiting: WaitingFrames::default(),
            returned: ReturnedFrames::default(),
            expects_joins,
            awaits_stopped: expects_joins,
        })
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.member.endpoint
    }

    /// In a child after fork(2): closes its parent's descriptors without a word. The epoll set is the parent's, too, and stays.
    pub(crate) fn close_ways(&mut self) {
        self.take_request = None;
        self.join_requests.clear();
        self.member.peers = Peers::default();
    }

    pub(crate) fn set_watcher(&mut self, watcher: Watcher) {
        self.member.endpoint.set_watcher(watcher);
    }

    /// Its flows are in the directory of another partition.
    pub(crate) fn set_directory(&mut self, directory: Directory) {
        self.member.endpoint.set_directory(directory);
    }

    /// Where the host is to list its flows, if others stand by or are about to, or are about to have the device.
    #[inline]
    pub(crate) fn flow_directory(&self) -> Option<Directory> {
        let is_shared = self.has_requests() || !self.member.peers.is_empty();
        is_shared.then(|| self.member.endpoint.directory())
    }

    /// What has passed between this process and those that stand by; `None` without any.
    pub(crate) fn relayed(&self) -> Option<RelayCounters> {
        self.member.peers.relayed()
    }

    /// Whether other processes have sent TAKE or JOIN.
    #[inline]
    pub(crate) fn has_requests(&self) -> bool {
        self.take_request.is_some() || !self.join_requests.is_empty()
    }

    /// Whether this process has served, and others stand by that may serve.
    pub(crate) fn may_have_heir(&self, wanted: &Wanted) -> bool {
        wanted.has_ended_serving() && !self.member.peers.is_empty()
    }

    /// Answers those that have sent JOIN. What has no entry in the directory then is no flow of this process.
    pub(crate) fn admit(&mut self, table: Option<&Table>, wanted: &Wanted) {
        for request in core::mem::take(&mut self.join_requests) {
            self.on_join(request, table, wanted);
        }
    }

    /// The process that has sent TAKE, if it is still there. Then the device has to be closed, and [`Self::stand_by`] called.
    pub(crate) fn accept_heir(&mut self) -> Option<Heir> {
        let request = self.take_request.take();
        let request = request.filter(|request| !request.is_over())?;
        // Without a relay, dropping the request ends its channel, and the requester asks again.
        let (relay, far) = Relay::new().ok()?;
        Some(Heir {
            request,
            relay,
            far,
        })
    }

    /// This process opens connections.
    pub(crate) fn note_opened(&mut self) {
        self.member.opens_ports = true;
    }

    /// Gives the closed device to the heir, with the ways to all others. This process stands by from then on.
    pub(crate) fn stand_by(
        self,
        heir: Heir,
        (wanted, on_fault): (Wanted, FaultCallback),
        origin: impl FnOnce(O) -> Origin,
    ) -> Box<StandbyLink> {
        let Self {
            mut member,
            reopen,
            mut waiting,
            mut returned,
            ..
        } = self;
        member.endpoint.note_change();
        member.peers.forget(&member.endpoint, &heir.request);
        // Nothing of this process touches the device any more. GIVEN and the ways go out before the lock is released: a process
        // that found the file unlocked without them would conclude that this one is gone.
        let identity = heir.request.identity;
        let own = member.endpoint.names();
        let ways = u32::try_from(member.peers.len()).unwrap_or(u32::MAX);
        let mut owner = PeerProcess::give(heir.request, (heir.relay, heir.far), (own, ways));
        if let Ok(owner) = &mut owner {
            if member.endpoint.is_numbered() {
                let waiting = waiting.take().chain(returned.take());
                give_waiting(waiting, &mut owner.relay);
            }
            member.peers.pass_all(&member.endpoint, owner.channel());
            // Answers to what this process and those behind it have opened go on to come.
            if member.opens_ports || wanted.opens_ports {
                owner.send_open_ports();
            }
        }
        match &owner {
            Ok(_) => member.endpoint.unlock_for(identity),
            Err(_) => {
                // The ways were not passed: their processes ask for others.
                member.peers.clear(&member.endpoint);
                member.endpoint.unlock();
            }
        }
        let parts = Parts {
            member,
            origin: origin(reopen),
            on_fault,
            wanted,
            has_failed: false,
        };
        // If the requester is gone by now, no process owns the device, and the standby link locks it again.
        Box::new(StandbyLink::new(parts, owner.ok()))
    }

    /// Sends the frames of others; one of more than `len_max` bytes is dropped. Whether there were any: then a process has rung, which
    /// ends waits until the sources are polled.
    #[inline]
    pub(crate) fn carry(&mut self, device: &mut impl Link, len_max: usize) -> bool {
        self.has_backlog = false;
        if !self.member.unsent.is_empty() {
            self.has_backlog =
                carry_unsent(&mut self.member, &mut self.returned, (device, len_max));
        }
        if !self.waiting.is_empty() {
            let directory = self.member.endpoint.directory();
            for (note, frame) in self.waiting.give(directory, &mut self.member.peers) {
                self.returned.keep(note, &frame, len_max);
            }
        }
        if self.member.peers.is_empty() {
            return false;
        }
        let has_waited = self.member.peers.have_sent();
        if has_waited && !self.has_backlog {
            self.has_backlog = carry(&mut self.member, &mut self.returned, (device, len_max));
        }
        self.member.peers.publish();
        has_waited
    }

    /// Whether frames of others wait for room at the device, for a way, or to be received once more.
    #[inline]
    pub(crate) fn has_backlog(&self) -> bool {
        self.has_backlog || !self.returned.is_empty() || !self.waiting.is_empty()
    }

    /// Frames that others had and that are to be received once more.
    #[inline]
    pub(crate) fn returned(&mut self) -> &mut ReturnedFrames {
        &mut self.returned
    }

    /// A copy of a frame if it is one of these.
    #[inline]
    pub(crate) fn returned_copy(&mut self, id: FrameId) -> Option<Vec<u8>> {
        is_returned(id).then(|| self.returned.frame(id).to_vec())
    }

    /// Whether received frames should stay in the device: frames for ports that the former owner served keep coming, and
    /// for a few milliseconds this process does not listen there yet. One that serves no more has connections of its own.
    #[inline]
    pub(crate) fn must_defer_frames(&self, wanted: &Wanted) -> bool {
        self.expects_joins && !wanted.is_serving() && !wanted.is_leaving()
    }

    /// Connections that former owners have passed on.
    pub(crate) fn take_passed(&mut self) -> Option<Vec<u8>> {
        self.member.passed.pop_front()
    }

    /// Gives a frame to the process that has its flow, or to all; a new connection, while this process leaves, to the one that had the
    /// device before.
    pub(crate) fn give_listed(
        &mut self,
        received: &Received,
        frame: &[u8],
        (stray, wanted): (&Stray<'_>, &Wanted),
    ) -> Delivery {
        let Member {
            endpoint, peers, ..
        } = &mut self.member;
        if peers.is_empty() && endpoint.is_alone() {
            return Delivery::None;
        }
        let note = note_of(received);
        let (flow, is_opening) = match stray {
            Stray::Shared => return Delivery::of(peers.put_to_all(&note, frame)),
            Stray::Segment(flow) => (flow, false),
            Stray::Opening(flow) => (flow, true),
        };
        let directory = endpoint.directory();
        let found = directory.find(flow);
        if matches!(found, Some(Holder::Moving)) {
            if endpoint.has_arrived() {
                return Delivery::None;
            }
            self.waiting.keep(flow, is_opening, note, frame);
            return Delivery::Done;
        }
        match found.and_then(|holder| holder.process(is_opening)) {
            Some(tag) if tag != directory.own() => {
                self.waiting.give_first(flow, directory, peers);
                if peers.put(tag, &note, frame) {
                    return Delivery::Done;
                }
                // Its locks may be about to be those of a process that goes on in its place. A SYN is for a new connection nevertheless, but for
                // one that the network has doubled.
                if (is_opening || endpoint.is_calm()) && !endpoint.lives(tag) {
                    return Delivery::None;
                }
                // Without numbers other workers of this process may have a way.
                let waits =
                    endpoint.is_numbered() && self.waiting.keep(flow, is_opening, note, frame);
                match waits {
                    true => Delivery::Done,
                    false => Delivery::NoWay,
                }
            }
            Some(_) => Delivery::None,
            // Processes with numbers have groups for what is new.
            None if is_opening && wanted.is_leaving() && !endpoint.is_numbered() => {
                let former = peers.former();
                Delivery::of(former.is_some_and(|former| peers.put(former, &note, frame)))
            }
            None => Delivery::None,
        }
    }

    /// Gives a frame that no process has listed to the one that had the device before, where that may know it nevertheless: in the
    /// first moments a cookie, and a port at which this process does not listen yet; and where the directory was full.
    pub(crate) fn fall_back(&mut self, received: &Received, frame: &[u8]) -> bool {
        let Member {
            endpoint, peers, ..
        } = &mut self.member;
        let is_incomplete = endpoint.directory().is_incomplete();
        if endpoint.is_settled() && !is_incomplete {
            return false;
        }
        // Processes with numbers have groups for what is new.
        if endpoint.is_numbered() {
            return is_incomplete && !peers.is_empty();
        }
        let note = note_of(received);
        let former = peers.former();
        former.is_some_and(|former| peers.put(former, &note, frame))
    }

    /// Gives a frame to the process of this number; `false` if there is no way to it.
    pub(crate) fn pass_to(&mut self, received: &Received, frame: &[u8], process: u64) -> bool {
        let note = note_of(received);
        let tag = ProcessTag::of(process);
        self.member.peers.put(tag, &note, frame)
    }

    /// Polls the sources and handles what is ready.
    pub(crate) fn poll(
        &mut self,
        (device, len_max): (&mut impl Link, usize),
        (table, wanted): (Option<&Table>, &Wanted),
        on_fault: &mut FaultCallback,
    ) {
        let ready = self.member.endpoint.poll();
        if ready.at(EventSource::Requests) {
            self.read_requests(wanted);
        }
        if ready.at(EventSource::Peer) {
            let (opens_ports, ended) = self.member.peers.read();
            if opens_ports {
                self.member.opens_ports = true;
                open_ports(table);
            }
            self.drop_peers(device, len_max, (table, &ended));
        }
        let broken = self.member.peers.broken();
        if !broken.is_empty() {
            on_fault(InterfaceFault::RelayBroken);
            self.drop_peers(device, len_max, (table, &broken));
        }
        if ready.at(EventSource::Timer) {
            self.member.endpoint.set_timer(None);
            self.expects_joins = false;
            if self.awaits_stopped {
                self.forget_successors(table);
            }
        }
        // A frame may have come since the rings were looked at, whose doorbell was taken for heard just now, and none rings for the next ones
        // until it is sent.
        if ready.at(EventSource::PeerDoorbell) && self.carry(device, len_max) {
            self.has_backlog |= device.flush();
        }
        if wanted.is_leaving() != self.has_announced_leaving && !self.member.peers.is_empty() {
            self.has_announced_leaving = !self.has_announced_leaving;
            if self.has_announced_leaving {
                self.member.peers.send_leaving();
            }
        }
    }
}

impl<O> Owner<O> {
    fn read_requests(&mut self, wanted: &Wanted) {
        while self.take_request.is_none()
            && let Some(asked) = self.member.endpoint.request()
        {
            let request = match asked {
                Asked::Request(request) => request,
                Asked::Waiting(connections) => {
                    self.member.passed.push_back(connections);
                    continue;
                }
            };
            let is_kept = self.member.aim.is_met_by_owning(wanted);
            let is_given = !is_kept || !self.member.endpoint.is_later_than(&request);
            // All that stand by have heard of LEAVING: the first one has the device, and keeps it unless it is another one's part.
            let is_left = wanted.is_leaving() || (!is_kept && request.is_for_own_part);
            match request.request_kind {
                RequestKind::Take if is_given => self.take_request = Some(request),
                RequestKind::TakeAhead if is_left => self.take_request = Some(request),
                // It has connected before it serves, and keeps its way.
                RequestKind::Take if self.member.peers.have(&request) => {}
                RequestKind::Take | RequestKind::Join => self.join_requests.push(request),
                // Dropping its channel is the answer.
                RequestKind::TakeAhead => {}
            }
        }
    }

    fn on_join(&mut self, request: Request, table: Option<&Table>, wanted: &Wanted) {
        let names = (request.number, request.identity);
        // The requester may be gone.
        if let Ok(process) = PeerProcess::admit(request) {
            if self.has_announced_leaving || wanted.is_leaving() {
                process.send_leaving();
            }
            self.member.peers.add(&self.member.endpoint, names, process);
            (self.expects_joins, self.awaits_stopped) = (false, false);
            if let Some(table) = table {
                table.set_has_successor(true);
            }
        }
    }

    fn drop_peers(
        &mut self,
        device: &mut impl Link,
        len_max: usize,
        (table, tags): (Option<&Table>, &[ProcessTag]),
    ) {
        if tags.is_empty() {
            return;
        }
        // Frames that they sent before they ended.
        carry(&mut self.member, &mut self.returned, (device, len_max));
        let endpoint = &self.member.endpoint;
        for (tag, relay) in self.member.peers.drop_all(endpoint, tags) {
            // One that lives goes on to receive what it has been given. What others have not taken is another process's now.
            if !endpoint.lives(tag) {
                self.returned.take_back(relay, len_max);
            }
        }
        if self.member.peers.is_empty() {
            self.forget_successors(table);
        }
    }

    /// There is no way to another process. One that lives looks for its way when it goes on.
    fn forget_successors(&mut self, table: Option<&Table>) {
        let Some(table) = table else {
            return;
        };
        self.awaits_stopped = self.member.endpoint.has_company();
        if self.awaits_stopped {
            self.member.endpoint.set_timer(Some(TIMEOUT));
        } else {
            table.set_has_successor(false);
            table.forget_kept();
        }
    }
}

/// What accompanies a received frame, which may have come back before.
fn note_of(received: &Received) -> Note {
    Note {
        returns: returns(received.id),
        ..Note::arrived(received.checksum, received.merged)
    }
}

/// Gives frames that have waited for a way, or to be received once more, to the next owner, which looks whose they are.
fn give_waiting(frames: impl Iterator<Item = (Note, Vec<u8>)>, relay: &mut Relay) {
    for (note, frame) in frames {
        let returns = RETURNS_MAX.min(note.returns + 1);
        relay.put(&Note { returns, ..note }, &frame);
    }
    relay.publish();
}

impl<O> AsFd for Owner<O> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.member.endpoint.as_fd()
    }
}

/// Another process opens connections: answers to them are to come.
fn open_ports(table: Option<&Table>) {
    if let Some(table) = table {
        table.open_ports(untaken);
    }
}

/// How long the former owner's successors, if they are not stopped, may take to notice its end, which they poll for every few milliseconds, and
/// to join. Peers whose connections ended with the former owner get their RST so much later; they retransmit after some
/// hundred milliseconds.
const TIMEOUT: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
