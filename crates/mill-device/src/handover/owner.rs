//! The owner's side of the handover: it sends its successor's frames, offers it those that it does not know, and answers requests
//! for the device.

use super::member::Member;
use super::{Asked, Endpoint, EventSource, Message, PeerProcess, Request, RequestKind};
use crate::forwarding::{Returns, take_returned};
use crate::interface::{FaultCallback, InterfaceFault};
use crate::relay::{FarEnd, Note, Relay, RelayCounters};
use crate::standby::{Origin, Parts, StandbyLink};
use crate::steering::Table;
use crate::wanted::Wanted;
use mill_stack::link::{Link, LinkProperties, Offload, Received};
use mill_sys::epoll::Watcher;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// What the owner keeps for the handover. `O` opens the device again when it has come back to this process.
pub(crate) struct Owner<O> {
    member: Member,
    reopen: O,
    /// The request to answer at the end of this turn.
    take_request: Option<Request>,
    /// LEAVING was sent: this process serves no port any more.
    has_announced_leaving: bool,
    /// Frames of the successor wait for room at the device.
    has_backlog: bool,
    /// The former owner is gone: the table's entries for what it served are kept until the timer expires.
    expects_joins: bool,
    /// That process had successors, which notice its end within milliseconds and join this one. Until then, or until
    /// the timer expires, a segment without connection may be theirs, so it is dropped without a RST.
    may_belong_to_others: bool,
}

/// A process that is to have the device, and a relay to it.
pub(crate) struct Heir {
    request: Request,
    relay: Relay,
    far: FarEnd,
}

impl<O> Owner<O> {
    /// `table` is the device's, where it is steered.
    pub(crate) fn new(member: Member, reopen: O, table: Option<&Table>) -> Box<Self> {
        let expects_joins = member.successor.is_none() && table.is_some_and(Table::keeps_any);
        if expects_joins {
            member.endpoint.set_timer(Some(TIMEOUT));
        } else if let Some(table) = table {
            table.set_has_successor(member.successor.is_some());
        }
        Box::new(Self {
            member,
            reopen,
            take_request: None,
            has_announced_leaving: false,
            has_backlog: false,
            expects_joins,
            may_belong_to_others: expects_joins && table.is_some_and(Table::has_successor),
        })
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.member.endpoint
    }

    pub(crate) fn set_watcher(&mut self, watcher: Watcher) {
        self.member.endpoint.set_watcher(watcher);
    }

    /// Where frames go that the successor returns.
    pub(crate) fn set_returns(&mut self, returns: Returns) {
        self.member.returns = Some(returns);
    }

    /// What has passed between this process and its successor; `None` without one.
    pub(crate) fn relayed(&self) -> Option<RelayCounters> {
        let successor = self.member.successor.as_ref()?;
        Some(successor.relay.counters())
    }

    /// Whether another process has sent TAKE.
    #[inline]
    pub(crate) fn has_take_request(&self) -> bool {
        self.take_request.is_some()
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

    /// Gives the closed device to the heir, whose successor this process becomes.
    pub(crate) fn stand_by(
        self,
        heir: Heir,
        (wanted, on_fault): (Wanted, FaultCallback),
        origin: impl FnOnce(O) -> Origin,
    ) -> Box<StandbyLink> {
        let Self {
            mut member, reopen, ..
        } = self;
        member.endpoint.note_change();
        // Nothing of this process touches the device any more. GIVEN goes out before the lock is released: a process
        // that found the file unlocked without it would conclude that this one is gone.
        let number = heir.request.number;
        let predecessor = PeerProcess::admit_over(heir.request, heir.relay, heir.far);
        member.endpoint.unlock_for(number);
        let parts = Parts {
            member,
            origin: origin(reopen),
            on_fault,
            wanted,
            has_failed: false,
        };
        // If the requester is gone by now, no process owns the device, and the standby link locks it again.
        Box::new(StandbyLink::new(parts, predecessor.ok()))
    }

    /// Sends the frames of the successor; one of more than `len_max` bytes is dropped. Whether there were any: then the successor has
    /// rung, which ends waits until the sources are polled.
    #[inline]
    pub(crate) fn carry(&mut self, device: &mut impl Link, len_max: usize) -> bool {
        self.has_backlog = false;
        let waits = |successor: &mut PeerProcess| successor.relay.waiting().is_some();
        let has_waited = self.member.successor.as_mut().is_some_and(waits);
        if has_waited {
            self.has_backlog = carry(&mut self.member, device, len_max);
        }
        if let Some(successor) = &mut self.member.successor {
            successor.relay.publish();
        }
        has_waited
    }

    /// Whether frames of the successor wait for room at the device.
    #[inline]
    pub(crate) fn has_backlog(&self) -> bool {
        self.has_backlog
    }

    /// Whether received frames should stay in the device: frames for ports that the former owner served keep coming, and
    /// for a few milliseconds this process does not listen there yet.
    #[inline]
    pub(crate) fn must_defer_frames(&self, wanted: &Wanted) -> bool {
        self.expects_joins && !wanted.is_serving()
    }

    /// Connections that former owners have passed on.
    pub(crate) fn take_passed(&mut self) -> Option<Vec<u8>> {
        self.member.passed.pop_front()
    }

    /// Whether a process further down the chain opens connections, asked once.
    pub(crate) fn take_ports_wanted(&mut self) -> bool {
        std::mem::take(&mut self.member.opens_ports)
    }

    /// Whether a frame without connection may be of a process that has no place in the chain yet. It is dropped then, as on a
    /// full link: when it is retransmitted, that process may have joined.
    pub(crate) fn may_be_of_others(&self) -> bool {
        self.may_belong_to_others || !self.member.endpoint.is_settled()
    }

    /// Passes a frame to the successor; `false` without one.
    pub(crate) fn pass_on(&mut self, received: &Received, frame: &[u8]) -> bool {
        let Some(successor) = &mut self.member.successor else {
            return false;
        };
        let note = Note::arrived(received.checksum, received.merged);
        // Without room the frame is dropped, as on a full link.
        successor.relay.put(&note, frame);
        true
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
            self.read_requests(table, wanted);
        }
        let is_over = ready.at(EventSource::Successor) && self.read_successor();
        let is_broken = |successor: &PeerProcess| successor.relay.is_broken();
        let is_broken = self.member.successor.as_ref().is_some_and(is_broken);
        if is_broken {
            on_fault(InterfaceFault::RelayBroken);
        }
        if is_over || is_broken {
            self.drop_successor(device, len_max, table);
        }
        if ready.at(EventSource::Timer) {
            self.member.endpoint.set_timer(None);
            if std::mem::take(&mut self.expects_joins) {
                self.may_belong_to_others = false;
                has_no_successor(table);
            }
        }
        if let Some(successor) = &self.member.successor
            && wanted.is_leaving() != self.has_announced_leaving
        {
            self.has_announced_leaving = !self.has_announced_leaving;
            if self.has_announced_leaving {
                successor.send_leaving();
            }
        }
    }
}

impl<O> Owner<O> {
    fn read_requests(&mut self, table: Option<&Table>, wanted: &Wanted) {
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
            match request.request_kind {
                RequestKind::Take | RequestKind::TakeAhead if is_given => {
                    self.take_request = Some(request);
                }
                RequestKind::Take | RequestKind::Join => self.on_join(request, table),
                // Dropping its channel is the answer.
                RequestKind::TakeAhead => {}
            }
        }
    }

    fn on_join(&mut self, request: Request, table: Option<&Table>) {
        let request = Request {
            request_kind: RequestKind::Join,
            ..request
        };
        if let Some(successor) = &self.member.successor {
            return successor.forward(&request);
        }
        // The requester may be gone.
        if let Ok(successor) = PeerProcess::admit(request) {
            self.member.set_successor(successor);
            self.expects_joins = false;
            self.may_belong_to_others = false;
            if let Some(table) = table {
                table.set_has_successor(true);
            }
        }
    }

    /// Whether the successor has ended.
    fn read_successor(&mut self) -> bool {
        while let Some(successor) = &self.member.successor
            && let Some(message) = successor.next_message()
        {
            match message {
                Message::OpenPorts => self.member.opens_ports = true,
                Message::End => return true,
                _ => {}
            }
        }
        false
    }

    fn drop_successor(&mut self, device: &mut impl Link, len_max: usize, table: Option<&Table>) {
        // Frames that it sent before it ended.
        carry(&mut self.member, device, len_max);
        self.member.drop_successor();
        has_no_successor(table);
    }
}

fn has_no_successor(table: Option<&Table>) {
    if let Some(table) = table {
        table.set_has_successor(false);
        table.forget_kept();
    }
}

/// Sends the successor's frames; whether one is left for which the device has no room.
#[cold]
fn carry(member: &mut Member, device: &mut impl Link, len_max: usize) -> bool {
    let Some(successor) = &mut member.successor else {
        return false;
    };
    let returns = member.returns.as_ref();
    successor.relay.carry(|relay, len| {
        if len > len_max {
            relay.take(&mut []);
            return true;
        }
        let Some(room) = device.reserve(len) else {
            return false;
        };
        let room = room.get_mut(..len).unwrap_or_default();
        match relay.take(room) {
            Some(note) if note.returns > 0 => take_returned(returns, &note, room),
            Some(note) if can_send(note.offload, device.properties()) => {
                device.transmit(len, note.offload);
            }
            _ => {}
        }
        true
    })
}

/// Whether the device does what a frame leaves to it; the frame of a process that expects another device is dropped.
fn can_send(offload: Offload, device: &LinkProperties) -> bool {
    let cuts = device.segment_bytes_max > u32::from(device.mtu);
    match (offload.segmentation, offload.checksum) {
        (Some(_), _) => cuts,
        (None, Some(_)) => device.completes_checksums,
        (None, None) => true,
    }
}

impl<O> AsFd for Owner<O> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.member.endpoint.as_fd()
    }
}

/// How long the former owner's successors may take to notice its end, which they poll for every few milliseconds, and
/// to join. Peers whose connections ended with the former owner get their RST so much later; they retransmit after some
/// hundred milliseconds.
const TIMEOUT: Duration = Duration::from_secs(1);
