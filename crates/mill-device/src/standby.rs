//! The link of a process that does not own the device: it sends and receives through its predecessor in the chain
//! (see [`crate::handover`]), or waits until it owns the device.

use crate::forwarding::take_returned;
use crate::frames::Frames;
use crate::handover::{self, Aim, EventSource, Message, PeerProcess, Request, RequestKind};
use crate::interface::InterfaceFault;
use crate::network::monitor::Change;
use crate::relay::{Note, Relay, RelayCounters};
use mill_stack::link::{
    Burst, FrameId, Link, LinkChange, LinkProperties, Offload, Received, Service,
};
use mill_sys::epoll::Watcher;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// What a process keeps of the device.
mod origin;
pub(crate) use origin::{OpenDevice, Origin, Parts};

/// Frames that this worker does not know.
mod unknown;

/// The link of a device that another process owns.
pub struct StandbyLink {
    parts: Parts,
    properties: LinkProperties,
    /// The next process towards the device.
    predecessor: Option<PeerProcess>,
    /// The channel of a request that is not answered yet.
    pending_request: Option<OwnedFd>,
    /// After GIVEN, while the former owner has not unlocked yet: how often this process still tries to lock.
    lock_attempts_left: u32,
    /// Timer expirations since the pending request was sent.
    waits: u32,
    /// Whether the predecessor was lost: JOIN has to be sent, rather than TAKE.
    is_orphan: bool,
    /// The predecessor has sent LEAVING: a process that serves may take the device.
    predecessor_leaves: bool,
    /// The successor was told that.
    has_passed_leaving: bool,
    is_owner: bool,
    /// Frames of the successor wait for room in the predecessor's relay.
    has_backlog: bool,
    frames: Frames,
    /// The frame that is being written, to be sent by [`Link::transmit`].
    room: Vec<u8>,
    /// Turns until the sources are polled again.
    turns_left: u32,
}

impl Parts {
    /// Whether connections are opened here or further down the chain.
    fn opens_ports(&self) -> bool {
        self.member.opens_ports || self.wanted.ports.is_some()
    }

    fn ask_for_ports(&mut self, predecessor: Option<&PeerProcess>) {
        match predecessor {
            Some(predecessor) => predecessor.send_open_ports(),
            None => self.member.opens_ports = true,
        }
    }
}

impl StandbyLink {
    /// The first link of a process that starts while another one owns the device.
    pub(crate) fn waiting(mut parts: Parts) -> Self {
        parts.origin.begin(&parts.member);
        let mut link = Self::new(parts, None);
        link.is_orphan = false;
        link
    }

    /// The link of a process that owned the device, and could not open it.
    pub(crate) fn without_device(parts: Parts, error: &io::Error) -> Box<Self> {
        let mut parts = parts;
        (parts.on_fault)(InterfaceFault::NotTaken(error.to_string()));
        if let Some(successor) = parts.member.successor.take() {
            successor.close(&parts.member.endpoint);
        }
        parts.member.endpoint.unlock();
        parts.has_failed = true;
        Box::new(Self::new(parts, None))
    }

    /// The device's kind, as in a specification.
    pub(crate) fn kind(&self) -> &'static str {
        self.parts.origin.kind()
    }

    /// Sets what lets the device's frames end waits once this process owns it.
    pub(crate) fn set_watcher(&mut self, watcher: Watcher) {
        self.parts.member.endpoint.set_watcher(watcher);
    }

    /// A link behind `predecessor`, or one that has to find a predecessor.
    pub(crate) fn new(parts: Parts, predecessor: Option<PeerProcess>) -> Self {
        let properties = parts.origin.properties();
        match &predecessor {
            Some(predecessor) => predecessor.open(
                &parts.member.endpoint,
                [EventSource::Predecessor, EventSource::PredecessorDoorbell],
            ),
            None => parts.member.endpoint.set_timer(Some(LOCK_INTERVAL)),
        }
        Self {
            frames: Frames::new(FRAMES, frame_len_max(properties.segment_bytes_max)),
            room: vec![0; frame_len_max(properties.segment_bytes_max)],
            properties,
            is_orphan: predecessor.is_none(),
            predecessor,
            pending_request: None,
            lock_attempts_left: 0,
            waits: 0,
            predecessor_leaves: false,
            has_passed_leaving: false,
            is_owner: false,
            has_backlog: false,
            turns_left: 0,
            parts,
        }
    }

    /// Whether this process owns the device now: then the caller continues with [`Self::into_parts`].
    #[inline]
    pub(crate) fn is_owner(&self) -> bool {
        self.is_owner
    }

    /// What the link over the device itself is made of.
    pub(crate) fn into_parts(self) -> Parts {
        if let Some(predecessor) = &self.predecessor {
            predecessor.close(&self.parts.member.endpoint);
        }
        if let Some(pending_request) = &self.pending_request {
            self.parts.member.endpoint.close(pending_request.as_fd());
        }
        self.parts.member.endpoint.set_timer(None);
        self.parts
    }

    /// What has passed between this process and its predecessor; `None` while it has none.
    pub fn relayed(&self) -> Option<RelayCounters> {
        let predecessor = self.predecessor.as_ref();
        predecessor.map(|predecessor| predecessor.relay.counters())
    }

    /// The descriptor that ends a wait.
    pub fn control_fd(&self) -> BorrowedFd<'_> {
        self.parts.member.endpoint.as_fd()
    }

    /// Polls the sources and handles what is ready.
    fn poll(&mut self) {
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
                    self.is_orphan = false;
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
        self.is_orphan = true;
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

    /// Forwards the successor's frames to the predecessor.
    fn carry(&mut self) {
        self.has_backlog = false;
        let member = &mut self.parts.member;
        let (Some(predecessor), Some(successor)) = (&mut self.predecessor, &mut member.successor)
        else {
            return;
        };
        let returns = member.returns.as_ref();
        self.has_backlog = successor.relay.carry(|relay, len| {
            if !predecessor.relay.has_room(len) {
                return false;
            }
            let room = self.room.get_mut(..len).unwrap_or_default();
            match relay.take(room) {
                Some(note) if note.returns > 0 => take_returned(returns, &note, room),
                Some(note) => {
                    predecessor.relay.put(&note, room);
                }
                None => {}
            }
            true
        });
    }

    fn on_change(&mut self, change: Change, into: &mut Vec<LinkChange>) {
        match change {
            Change::Link(state) => {
                into.push(LinkChange::OwnMac(state.mac.0));
                if frame_len_max(u32::from(state.mtu)) <= self.room.len() {
                    if self.properties.segment_bytes_max == u32::from(self.properties.mtu) {
                        self.properties.segment_bytes_max = u32::from(state.mtu);
                    }
                    self.properties.mtu = state.mtu;
                    into.push(LinkChange::Mtu(state.mtu));
                } else {
                    (self.parts.on_fault)(InterfaceFault::MtuTooLarge(state.mtu));
                }
            }
            Change::Addresses(addresses) => into.push(LinkChange::Addresses(addresses)),
            Change::Routes { routes, elsewhere } => {
                into.push(LinkChange::Elsewhere(elsewhere));
                into.push(LinkChange::Routes(routes));
            }
            Change::Neighbor { address, mac } => into.push(LinkChange::Neighbor {
                address,
                mac: mac.map(|mac| mac.0),
            }),
            Change::Gone => (self.parts.on_fault)(InterfaceFault::Gone),
        }
    }
}

impl Link for StandbyLink {
    fn properties(&self) -> &LinkProperties {
        &self.properties
    }

    fn receive(&mut self, burst: &mut Burst) {
        let Some(predecessor) = &mut self.predecessor else {
            return;
        };
        while receive_from(&mut predecessor.relay, &mut self.frames, burst)
            && predecessor.relay.release()
            && burst.room() > 0
        {}
    }

    fn frame(&mut self, id: FrameId) -> &mut [u8] {
        self.frames.frame(id)
    }

    fn release(&mut self, id: FrameId) {
        self.frames.release(id);
    }

    fn reserve(&mut self, len_max: usize) -> Option<&mut [u8]> {
        let predecessor = self.predecessor.as_mut()?;
        if !predecessor.relay.has_room(len_max) {
            return None;
        }
        self.room.get_mut(..len_max)
    }

    fn transmit(&mut self, len: usize, offload: Offload) {
        let Some(predecessor) = &mut self.predecessor else {
            return;
        };
        let note = Note {
            offload,
            ..Note::default()
        };
        let frame = self.room.get(..len).unwrap_or_default();
        let is_put = predecessor.relay.put(&note, frame);
        debug_assert!(is_put, "room was reserved");
    }

    fn flush(&mut self) -> bool {
        self.carry();
        let peers = [&mut self.predecessor, &mut self.parts.member.successor];
        for peer in peers.into_iter().flatten() {
            peer.relay.publish();
        }
        self.has_backlog
    }

    fn hand_over(&mut self, frame: &Received) -> bool {
        self.pass_on(frame) || self.may_be_of_others()
    }
}

/// What [`mill_stack::link::FlowSteering`], [`mill_stack::link::LinkMonitor`] and [`mill_stack::link::LinkSuccession`] ask of an
/// interface.
impl StandbyLink {
    pub(crate) fn has_heir(&self) -> bool {
        self.predecessor.is_some()
    }

    pub(crate) fn pass_waiting(&self, connections: &[u8]) -> bool {
        self.has_heir() && self.parts.member.endpoint.send_waiting(connections)
    }

    pub(crate) fn take_passed(&mut self) -> Option<Vec<u8>> {
        self.parts.member.passed.pop_front()
    }

    pub(crate) fn serve(&mut self, service: Service, on: bool) {
        self.parts.wanted.serve(service, on);
    }

    pub(crate) fn open_ports(&mut self, ports: RangeInclusive<u16>) {
        self.parts.wanted.ports = Some(ports);
        self.parts.ask_for_ports(self.predecessor.as_ref());
        self.turns_left = 0;
    }

    /// Whether a process further down the chain opens connections, asked once.
    pub(crate) fn take_ports_wanted(&mut self) -> bool {
        std::mem::take(&mut self.parts.member.opens_ports)
    }

    pub(crate) fn resolve(&mut self, address: IpAddr) {
        self.parts.origin.resolve(address);
        self.turns_left = 0;
    }

    pub(crate) fn take_changes(&mut self, into: &mut Vec<LinkChange>) {
        if let Some(left) = self.turns_left.checked_sub(1) {
            self.turns_left = left;
            return;
        }
        self.turns_left = TURNS_BETWEEN;
        self.poll();
        let Origin::Interface {
            monitor, changes, ..
        } = &mut self.parts.origin
        else {
            return;
        };
        if let Err(error) = monitor.changes(changes) {
            (self.parts.on_fault)(InterfaceFault::NetlinkLost(error.to_string()));
        }
        let mut changes = std::mem::take(changes);
        for change in changes.drain(..) {
            self.on_change(change, into);
        }
        if let Origin::Interface {
            changes: buffer, ..
        } = &mut self.parts.origin
        {
            *buffer = changes;
        }
    }
}

/// Receives what the relay holds, as far as the burst and the pool have room; `false` if the pool is full.
fn receive_from(relay: &mut Relay, frames: &mut Frames, burst: &mut Burst) -> bool {
    while burst.room() > 0
        && let Some(len) = relay.waiting()
    {
        if len > frames.place_bytes() {
            // Sent by a process that knows of a larger MTU.
            relay.take(&mut []);
            continue;
        }
        let mut note = Note::default();
        let filled = frames.fill(|place| {
            let place = place.get_mut(..len).ok_or(())?;
            note = relay.take(place).ok_or(())?;
            Ok::<_, ()>(len)
        });
        match filled {
            Some(Ok(id)) => burst.push(Received {
                id,
                checksum: note.checksum,
                merged: note.merged,
            }),
            Some(Err(())) => {}
            None => {
                relay.release();
                return false;
            }
        }
    }
    true
}

impl AsFd for StandbyLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.control_fd()
    }
}

impl fmt::Debug for StandbyLink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("StandbyLink")
            .field("predecessor", &self.predecessor)
            .finish_non_exhaustive()
    }
}

/// Length of the longest frame: an Ethernet header with two VLAN tags, and a packet.
pub(crate) const fn frame_len_max(packet_bytes_max: u32) -> usize {
    22 + packet_bytes_max as usize
}

/// Frames received and not released yet: those that a host holds, and a few bursts.
const FRAMES: u32 = 512;

/// Turns between two polls of the sources; the interface's monitor is polled as rarely.
const TURNS_BETWEEN: u32 = 63;

/// Interval at which a process without predecessor tries to lock. No frames pass meanwhile; peers retransmit after some
/// hundred milliseconds.
const LOCK_INTERVAL: Duration = Duration::from_millis(5);

/// Intervals without an answer until [`InterfaceFault::NotGiven`] is reported: five seconds.
const WAITS_UNTIL_FAULT: u32 = 1000;

/// Intervals that the former owner may take to unlock after GIVEN, until the device is requested again.
const LOCK_ATTEMPTS: u32 = 200;
