//! The link of a process that does not own the device: it sends and receives through the owner (see [`crate::handover`]), or waits
//! until it owns the device.

use crate::frames::Frames;
use crate::handover::directory::Directory;
use crate::handover::owner::Delivery;
use crate::handover::peers::Peers;
use crate::handover::returned_frames::{plain, returned, returns};
use crate::handover::{Endpoint, EventSource, PeerProcess};
use crate::interface::InterfaceFault;
use crate::network::monitor::Change;
use crate::relay::{Note, RETURNS_MAX, Relay, RelayCounters};
use mill_stack::flow_directory::FlowDirectory;
use mill_stack::link::{
    Burst, ExternalBytes, ExternalSent, FrameId, Link, LinkChange, LinkProperties, Offload,
    Received, Service, Stray,
};
use mill_sys::epoll::Watcher;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// What a process keeps of the device.
mod origin;
pub(crate) use origin::{OpenDevice, Origin, Parts};

/// This process's way to the owner.
mod seeking;
use seeking::Given;

/// The link of a device that another process owns.
pub struct StandbyLink {
    parts: Parts,
    properties: LinkProperties,
    owner: Option<PeerProcess>,
    /// To an owner that has ended: what it has given is received still, and what it has not sent goes to the next one.
    former: Option<Relay>,
    /// The channel of a request that is not answered yet.
    pending_request: Option<OwnedFd>,
    /// GIVEN has come …
    given: Option<Given>,
    /// … and the former owner has not unlocked yet: how long this process tries to lock.
    lock_until: Option<Duration>,
    /// Timer expirations since the pending request was sent.
    waits: u32,
    /// Whether the owner was lost: JOIN has to be sent, rather than TAKE.
    is_orphan: bool,
    /// It has begun to serve, and TAKE was not sent since.
    wants_part: bool,
    /// The owner has sent LEAVING: a process that serves may take the device.
    owner_leaves: bool,
    is_owner: bool,
    frames: Frames,
    /// The frame that is being written, to be sent by [`Link::transmit`].
    room: Vec<u8>,
    /// Turns until the sources are polled again.
    turns_left: u32,
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
        parts.member.peers.clear(&parts.member.endpoint);
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

    /// A link by way of `owner`, or one that has to find an owner.
    pub(crate) fn new(parts: Parts, owner: Option<PeerProcess>) -> Self {
        let properties = parts.origin.properties();
        match &owner {
            Some(owner) => owner.open(
                &parts.member.endpoint,
                [EventSource::Owner, EventSource::OwnerDoorbell],
            ),
            None => parts.member.endpoint.set_timer(Some(LOCK_INTERVAL)),
        }
        Self {
            frames: Frames::new(FRAMES, frame_len_max(properties.segment_bytes_max)),
            room: vec![0; frame_len_max(properties.segment_bytes_max)],
            properties,
            is_orphan: owner.is_none(),
            wants_part: false,
            owner,
            former: None,
            pending_request: None,
            given: None,
            lock_until: None,
            waits: 0,
            owner_leaves: false,
            is_owner: false,
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
    pub(crate) fn into_parts(mut self) -> Parts {
        self.take_ways();
        self.close_way();
        self.leave_former();
        if let Some(pending_request) = &self.pending_request {
            self.parts.member.endpoint.close(pending_request.as_fd());
        }
        self.parts.member.endpoint.set_timer(None);
        self.parts
    }

    /// What has passed between this process and the owner; `None` while it knows of none.
    pub fn relayed(&self) -> Option<RelayCounters> {
        let owner = self.owner.as_ref();
        owner.map(|owner| owner.relay.counters())
    }

    /// What becomes of a frame that another worker has forwarded: this one has no way but to the owner, from which frames come. Before
    /// it has that, the owner may have the flow and not have listed it yet, as no other process had a part in the device; it does
    /// before it answers.
    pub(crate) fn look_up(&self, stray: &Stray<'_>) -> Delivery {
        let Stray::Segment(flow) = stray else {
            return Delivery::None;
        };
        // Its process may be the owner, and slow to give the device.
        match self.owner.is_none() || self.directory().is_elsewhere(flow) {
            true => Delivery::NoWay,
            false => Delivery::None,
        }
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.parts.member.endpoint
    }

    /// Whether there is an owner to which frames can go back. Processes without numbers may be of several versions.
    fn has_numbered_owner(&self) -> bool {
        self.owner.is_some() && self.parts.member.endpoint.is_numbered()
    }

    /// In a child after fork(2): closes its parent's descriptors without a word. The epoll set is the parent's, too, and stays.
    pub(crate) fn close_ways(&mut self) {
        (self.owner, self.pending_request, self.given) = (None, None, None);
        self.former = None;
        self.parts.member.peers = Peers::default();
    }

    /// Where the host's flows are to be listed.
    pub(crate) fn directory(&self) -> Directory {
        self.parts.member.endpoint.directory()
    }

    /// Its flows are in the directory of another partition.
    pub(crate) fn set_directory(&mut self, directory: Directory) {
        self.parts.member.endpoint.set_directory(directory);
    }

    /// The descriptor that ends a wait.
    pub fn control_fd(&self) -> BorrowedFd<'_> {
        self.parts.member.endpoint.as_fd()
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
        if let Some(former) = &mut self.former
            && receive_from(former, &mut self.frames, burst)
        {
            former.release();
        }
        let Some(owner) = &mut self.owner else {
            return;
        };
        if owner.relay.waiting().is_some() {
            // It has rung, which ends waits until the sources are polled.
            self.turns_left = 0;
        }
        while receive_from(&mut owner.relay, &mut self.frames, burst)
            && owner.relay.release()
            && burst.room() > 0
        {}
    }

    fn frame(&mut self, id: FrameId) -> &mut [u8] {
        self.frames.frame(plain(id))
    }

    fn release(&mut self, id: FrameId) {
        self.frames.release(plain(id));
    }

    fn reserve(&mut self, len_max: usize) -> Option<&mut [u8]> {
        let owner = self.owner.as_mut()?;
        if !owner.relay.has_room(len_max) {
            return None;
        }
        self.room.get_mut(..len_max)
    }

    fn transmit(&mut self, len: usize, offload: Offload) {
        let Some(owner) = &mut self.owner else {
            return;
        };
        let note = Note {
            offload,
            ..Note::default()
        };
        let frame = self.room.get(..len).unwrap_or_default();
        let is_put = owner.relay.put(&note, frame);
        debug_assert!(is_put, "room was reserved");
    }

    fn transmit_external(&mut self, _: usize, _: Offload, _: ExternalBytes<'_>) -> ExternalSent {
        ExternalSent::Unable
    }

    fn flush(&mut self) -> bool {
        if let Some(owner) = &mut self.owner {
            owner.relay.publish();
        }
        false
    }

    /// The owner has given this process the frame because it was this one's. By now another process may have the flow, or be about to.
    fn hand_over(&mut self, frame: &Received, stray: &Stray<'_>) -> bool {
        let Stray::Segment(flow) = stray else {
            return false;
        };
        let is_others = self.has_numbered_owner() && self.directory().is_elsewhere(flow);
        if is_others {
            // It is none of this process's, whether or not it goes back.
            self.give_back(frame);
        }
        is_others
    }

    fn give_back(&mut self, frame: &Received) -> bool {
        let returns = returns(frame.id) + 1;
        if !self.has_numbered_owner() || returns > RETURNS_MAX {
            return false;
        }
        let note = Note {
            returns,
            ..Note::arrived(frame.checksum, frame.merged)
        };
        if let Some(owner) = &mut self.owner {
            owner.relay.put(&note, self.frames.frame(plain(frame.id)));
        }
        true
    }
}

/// What [`mill_stack::link::FlowSteering`], [`mill_stack::link::LinkMonitor`] and [`mill_stack::link::LinkSuccession`] ask of an
/// interface.
impl StandbyLink {
    pub(crate) fn has_heir(&self) -> bool {
        self.owner.is_some()
    }

    pub(crate) fn pass_waiting(&self, connections: &[u8]) -> bool {
        self.has_heir() && self.parts.member.endpoint.send_waiting(connections)
    }

    pub(crate) fn note_change(&self) {
        self.parts.member.endpoint.note_change();
    }

    pub(crate) fn take_passed(&mut self) -> Option<Vec<u8>> {
        self.parts.member.passed.pop_front()
    }

    /// The device is asked for at once, before anything is told of this process that serves; also where it has connected before, and
    /// has a way to the owner since then.
    pub(crate) fn serve(&mut self, service: Service, on: bool) {
        let begins = on && !self.parts.wanted.is_serving();
        self.parts.wanted.serve(service, on);
        self.wants_part |= begins;
        if on {
            self.announce(&[service]);
        }
        if on && self.is_seeking() {
            self.seek_device();
        }
    }

    /// Has the device bring what is for listeners of this process, in a group with others, once the owner can give it.
    fn announce(&self, services: &[Service]) {
        if self.owner.is_some() && self.parts.member.endpoint.is_numbered() {
            let services = services.iter().copied();
            services.for_each(|service| self.parts.origin.listen(service));
        }
    }

    pub(crate) fn forget(&mut self, service: Service) {
        self.parts.wanted.forget(service);
    }

    pub(crate) fn open_ports(&mut self) {
        self.parts.wanted.opens_ports = true;
        self.parts.origin.open_ports();
        if let Some(owner) = &self.owner {
            owner.send_open_ports();
        }
        self.turns_left = 0;
    }

    pub(crate) fn brings(&self, local_port: u16) -> bool {
        self.parts.origin.has_opened(local_port)
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
        self.poll();
        // Its timer ends waits until the sources are polled.
        self.turns_left = match self.is_seeking() {
            true => 0,
            false => TURNS_BETWEEN,
        };
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
                id: match note.returns {
                    0 => id,
                    returns => returned(id, returns),
                },
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
            .field("owner", &self.owner)
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

/// Interval at which a process without owner tries to lock. No frames pass meanwhile; peers retransmit after some
/// hundred milliseconds.
const LOCK_INTERVAL: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests;
