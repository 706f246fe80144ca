//! Handover of the interface to another process while both serve: the owner's side (see [`crate::handover`]).

use super::{FaultCallback, InterfaceFault, InterfaceLink, Passage, PreexistingKernelFlows};
use crate::handover::{
    Aim, Asked, Endpoint, EventSource, Message, PeerProcess, Request, RequestKind,
};
use crate::network::LinkState;
use crate::queues::Queues;
use crate::relay::{Note, Relay, RelayCounters};
use crate::standby::{Parts, StandbyLink};
use crate::steering::Table;
use crate::wanted::Wanted;
use mill_stack::link::{Link, Offload, Received};
use mill_sys::epoll::Watcher;
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// What the owner keeps for the handover.
pub(super) struct Handover {
    endpoint: Endpoint,
    open: OpenQueue,
    /// What this process wanted: it gives away at once what it owns only because no other process did.
    aim: Aim,
    successor: Option<PeerProcess>,
    /// Connections that former owners have passed on, each message as it came.
    passed: VecDeque<Vec<u8>>,
    /// A process further down the chain opens connections.
    opens_ports: bool,
    /// The request to answer at the end of this turn.
    take_request: Option<Request>,
    /// LEAVING was sent: this process serves no port any more.
    has_announced_leaving: bool,
    /// Frames of the successor wait for room at the interface.
    has_backlog: bool,
    /// The former owner is gone: the table's entries for what it served are kept until the timer expires.
    expects_joins: bool,
    /// That process had successors, which notice its end within milliseconds and join this one. Until then, or until
    /// the timer expires, a segment without connection may be theirs, so it is dropped without a RST.
    may_belong_to_others: bool,
}

/// Opens queues and table in the state in which the former owner left them.
pub(crate) type OpenQueue = Box<dyn Fn(&LinkState) -> io::Result<(Queues, Table)> + Send>;

impl InterfaceLink {
    /// Lets other processes take the interface over.
    #[must_use]
    pub(crate) fn with_handover(mut self, endpoint: Endpoint, open: OpenQueue, aim: Aim) -> Self {
        endpoint.open(EventSource::Network, self.monitor.as_fd());
        let mut handover = Handover::new((endpoint, open), None, &self.table);
        handover.aim = aim;
        self.handover = Some(Box::new(handover));
        self
    }

    /// What has passed between this process and its successor; `None` without one.
    pub fn relayed(&self) -> Option<RelayCounters> {
        let successor = self.handover.as_ref()?.successor.as_ref()?;
        Some(successor.relay.counters())
    }

    /// Whether another process has sent TAKE.
    #[inline]
    pub(crate) fn has_take_request(&self) -> bool {
        let handover = self.handover.as_ref();
        handover.is_some_and(|handover| handover.take_request.is_some())
    }

    /// Passes the watcher to the handover, which has to watch another descriptor when the owner changes; returns it if
    /// this link takes no part in one.
    pub(crate) fn set_watcher(&mut self, watcher: Watcher) -> Option<Watcher> {
        let Some(handover) = &mut self.handover else {
            return Some(watcher);
        };
        handover.endpoint.set_watcher(watcher);
        handover.endpoint.watch(self.queues.descriptors());
        None
    }

    /// Gives the interface to the process that has sent TAKE, and returns the link that continues as its successor. No
    /// frame may be held or being written.
    pub(crate) fn give(mut self) -> Result<Box<StandbyLink>, Box<Self>> {
        let Some(mut handover) = self.handover.take() else {
            return Err(Box::new(self));
        };
        let request = handover.take_request.take();
        let Some(request) = request.filter(|request| !request.is_over()) else {
            self.handover = Some(handover);
            return Err(Box::new(self));
        };
        let Ok((relay, far)) = Relay::new() else {
            // Dropping the request ends its channel, and the requester asks again.
            self.handover = Some(handover);
            return Err(Box::new(self));
        };
        let Self {
            mut queues,
            table,
            monitor,
            changes,
            on_fault,
            wanted,
            ..
        } = self;
        queues.leave();
        handover.endpoint.note_change();
        // From here on this process is a successor of the requester.
        table.set_has_successor(true);
        handover.endpoint.unwatch(queues.descriptors());
        drop((queues, table));
        // Nothing of this process touches the rings any more. GIVEN goes out before the lock is released: a process
        // that found the file unlocked without it would conclude that this one is gone.
        let heir = request.number;
        let predecessor = PeerProcess::admit_over(request, relay, far);
        handover.endpoint.unlock_for(heir);
        let Handover {
            endpoint,
            open,
            successor,
            passed,
            opens_ports,
            aim,
            ..
        } = *handover;
        let parts = Parts {
            passed,
            opens_ports,
            endpoint,
            open,
            monitor,
            on_fault,
            wanted,
            successor,
            changes,
            aim,
            has_failed: false,
        };
        // If the requester is gone by now, no process owns the device, and the standby link locks it again.
        Ok(Box::new(StandbyLink::new(parts, predecessor.ok())))
    }

    /// Opens the interface, which this process owns now, in the state in which the former owner left it.
    pub(crate) fn take(mut parts: Parts) -> Result<Box<Self>, Box<StandbyLink>> {
        let opened = (parts.open)(&parts.monitor.network().link);
        let (queues, table) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                (parts.on_fault)(InterfaceFault::NotTaken(error.to_string()));
                if let Some(successor) = parts.successor.take() {
                    successor.close(&parts.endpoint);
                }
                parts.endpoint.unlock();
                parts.has_failed = true;
                return Err(Box::new(StandbyLink::new(parts, None)));
            }
        };
        parts.endpoint.note_change();
        parts.endpoint.watch(queues.descriptors());
        let Parts {
            endpoint,
            open,
            monitor,
            on_fault,
            wanted,
            successor,
            passed,
            opens_ports,
            changes,
            aim,
            has_failed: _,
        } = parts;
        let addresses = monitor.network().addresses.clone();
        let mut link = Self {
            queues,
            flows: table.flow_hash(),
            worker: 0,
            forwarding: None,
            monitor,
            kernel_flows: PreexistingKernelFlows::inherited(&wanted.services, &table),
            taken: BTreeSet::new(),
            table,
            changes,
            turns_left: 0,
            passage: Passage::Open,
            on_fault,
            wanted: Wanted::default(),
            handover: None,
        };
        for service in wanted.services {
            link.wanted.serve(service, true);
            link.table.serve(service, true);
        }
        if let Some(ports) = wanted.ports {
            link.open_ports(ports);
        }
        link.steer(&addresses);
        let state = link.monitor.network().link.clone();
        link.report_passage(&state);
        let handover = Handover {
            passed,
            opens_ports,
            aim,
            ..Handover::new((endpoint, open), successor, &link.table)
        };
        link.handover = Some(Box::new(handover));
        Ok(Box::new(link))
    }
}

impl Handover {
    fn new(
        (endpoint, open): (Endpoint, OpenQueue),
        successor: Option<PeerProcess>,
        table: &Table,
    ) -> Self {
        let expects_joins = successor.is_none() && table.keeps_any();
        if expects_joins {
            endpoint.set_timer(Some(TIMEOUT));
        } else {
            table.set_has_successor(successor.is_some());
        }
        Self {
            endpoint,
            open,
            aim: Aim::Take,
            successor,
            passed: VecDeque::new(),
            opens_ports: false,
            take_request: None,
            has_announced_leaving: false,
            has_backlog: false,
            expects_joins,
            may_belong_to_others: expects_joins && table.has_successor(),
        }
    }

    /// Sends the frames of the successor.
    #[inline]
    pub(super) fn carry(&mut self, queues: &mut Queues) {
        self.has_backlog = false;
        if let Some(successor) = &mut self.successor
            && successor.relay.waiting().is_some()
        {
            self.has_backlog = carry(successor, queues);
        }
        if let Some(successor) = &mut self.successor {
            successor.relay.publish();
        }
    }

    /// Whether frames of the successor wait for room at the interface.
    #[inline]
    pub(super) fn has_backlog(&self) -> bool {
        self.has_backlog
    }

    /// Whether received frames should stay in the ring: frames for ports that the former owner served keep coming, and
    /// for a few milliseconds this process does not listen there yet.
    #[inline]
    pub(super) fn must_defer_frames(&self, wanted: &Wanted) -> bool {
        self.expects_joins && !wanted.is_serving()
    }

    /// Connections that former owners have passed on.
    pub(super) fn take_passed(&mut self) -> Option<Vec<u8>> {
        self.passed.pop_front()
    }

    /// Whether a process further down the chain opens connections, asked once.
    pub(super) fn take_ports_wanted(&mut self) -> bool {
        std::mem::take(&mut self.opens_ports)
    }

    pub(super) fn hand_over(&mut self, received: &Received, frame: &[u8]) -> bool {
        let Some(successor) = &mut self.successor else {
            // Dropped, as on a full link: when it is retransmitted, the process it belongs to may have joined.
            return self.may_belong_to_others || !self.endpoint.is_settled();
        };
        let note = Note::arrived(received.checksum, received.merged);
        // Without room the frame is dropped, as on a full link.
        successor.relay.put(&note, frame);
        true
    }

    /// Polls the sources and handles what is ready.
    pub(super) fn poll(
        &mut self,
        queues: &mut Queues,
        (table, wanted): (&Table, &Wanted),
        on_fault: &mut FaultCallback,
    ) {
        let ready = self.endpoint.poll();
        while ready.at(EventSource::Requests)
            && self.take_request.is_none()
            && let Some(asked) = self.endpoint.request()
        {
            let request = match asked {
                Asked::Request(request) => request,
                Asked::Waiting(connections) => {
                    self.passed.push_back(connections);
                    continue;
                }
            };
            let is_kept = wanted.is_serving() && self.aim == Aim::Take;
            let is_given = !is_kept || !self.endpoint.is_later_than(&request);
            match request.request_kind {
                RequestKind::Take | RequestKind::TakeAhead if is_given => {
                    self.take_request = Some(request);
                }
                RequestKind::Take | RequestKind::Join => self.on_join(request, table),
                // Dropping its channel is the answer.
                RequestKind::TakeAhead => {}
            }
        }
        if let Some(successor) = &mut self.successor {
            let mut is_over = false;
            while ready.at(EventSource::Successor)
                && !is_over
                && let Some(message) = successor.next_message()
            {
                match message {
                    Message::OpenPorts => self.opens_ports = true,
                    Message::End => is_over = true,
                    _ => {}
                }
            }
            let is_broken = successor.relay.is_broken();
            if is_broken {
                on_fault(InterfaceFault::RelayBroken);
            }
            if is_over || is_broken {
                self.endpoint.note_change();
                // Frames that it sent before it ended.
                carry(successor, queues);
                successor.close(&self.endpoint);
                self.successor = None;
                table.set_has_successor(false);
                table.forget_kept();
            }
        }
        if ready.at(EventSource::Timer) {
            self.endpoint.set_timer(None);
            if std::mem::take(&mut self.expects_joins) {
                self.may_belong_to_others = false;
                table.set_has_successor(false);
                table.forget_kept();
            }
        }
        if let Some(successor) = &self.successor
            && wanted.is_leaving() != self.has_announced_leaving
        {
            self.has_announced_leaving = !self.has_announced_leaving;
            if self.has_announced_leaving {
                successor.send_leaving();
            }
        }
    }
}

impl Handover {
    fn on_join(&mut self, request: Request, table: &Table) {
        let request = Request {
            request_kind: RequestKind::Join,
            ..request
        };
        match &self.successor {
            Some(successor) => successor.forward(&request),
            // The requester may be gone.
            None => {
                if let Ok(successor) = PeerProcess::admit(request) {
                    successor.open(
                        &self.endpoint,
                        [EventSource::Successor, EventSource::SuccessorDoorbell],
                    );
                    self.successor = Some(successor);
                    self.expects_joins = false;
                    self.may_belong_to_others = false;
                    table.set_has_successor(true);
                }
            }
        }
    }
}

/// Sends the successor's frames; whether one is left for which the interface has no room.
#[cold]
fn carry(successor: &mut PeerProcess, queues: &mut Queues) -> bool {
    successor.relay.carry(|relay, len| {
        if len > queues.frame_len_max() {
            relay.take(&mut []);
            return true;
        }
        let Some(room) = queues.reserve(len) else {
            return false;
        };
        // The interface offloads neither checksums nor segmentation, so a frame that requires it is dropped.
        if let Some(note) = relay.take(room.get_mut(..len).unwrap_or_default())
            && note.offload == Offload::default()
        {
            queues.transmit(len, Offload::default());
        }
        true
    })
}

impl AsFd for Handover {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.endpoint.as_fd()
    }
}

/// How long the former owner's successors may take to notice its end, which they poll for every few milliseconds, and
/// to join. Peers whose connections ended with the former owner get their RST so much later; they retransmit after some
/// hundred milliseconds.
const TIMEOUT: Duration = Duration::from_secs(1);
