//! The link of a process that has no part of the device itself: it waits for it, or sends and receives through the process
//! that has it.

use crate::frames::Frames;
use crate::handover::{self, Endpoint, EventSource, Message, PeerProcess, Request, RequestKind};
use crate::interface::{FaultCallback, InterfaceFault, OpenQueue};
use crate::network::monitor::{Change, NetlinkMonitor};
use crate::relay::{Note, Relay, RelayCounters};
use crate::wanted::Wanted;
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

/// An interface that another process has.
pub struct StandbyLink {
    parts: Parts,
    properties: LinkProperties,
    /// Who has the device, or is nearer to it.
    before: Option<PeerProcess>,
    /// Whom we have asked has not answered.
    asked: Option<OwnedFd>,
    /// The device was given to us, and how often we may look yet whether it is ours.
    looks_left: u32,
    /// Times that the timer has told in vain, while somebody is asked.
    waits: u32,
    /// Who was before us is gone.
    is_orphan: bool,
    /// Who is before us leaves, and whoever serves may take the device.
    is_called: bool,
    is_owner: bool,
    /// What who is behind us sends waits for room at who is before us.
    has_left: bool,
    frames: Frames,
    /// Where the next frame to be sent is written.
    room: Vec<u8>,
    /// Until the sources are looked at.
    turns_left: u32,
}

/// What stays, whoever has the device.
pub(crate) struct Parts {
    pub(crate) endpoint: Endpoint,
    pub(crate) open: OpenQueue,
    pub(crate) monitor: NetlinkMonitor,
    pub(crate) on_fault: FaultCallback,
    pub(crate) wanted: Wanted,
    pub(crate) behind: Option<PeerProcess>,
    /// Memory for what the monitor says.
    pub(crate) heard: Vec<Change>,
    /// The device could not be opened when it was ours: it is left to others.
    pub(crate) has_failed: bool,
}

impl StandbyLink {
    /// The first link of a process, while another has the device.
    pub(crate) fn waiting(mut parts: Parts) -> Self {
        let monitor = &parts.monitor;
        parts.endpoint.open(EventSource::Network, monitor.as_fd());
        let network = monitor.network().clone();
        parts.heard.push(Change::Routes {
            routes: network.routes,
            elsewhere: network.elsewhere,
        });
        let known = network.neighbors.into_iter();
        let known = known.map(|(address, mac)| Change::Neighbor {
            address,
            mac: Some(mac),
        });
        parts.heard.extend(known);
        let mut link = Self::new(parts, None);
        link.is_orphan = false;
        link
    }

    /// Has frames of the device end the waits of whoever has the watcher, once it is ours.
    pub(crate) fn set_watcher(&mut self, watcher: Watcher) {
        self.parts.endpoint.set_watcher(watcher);
    }

    /// A link behind somebody, or that looks for a place.
    pub(crate) fn new(parts: Parts, before: Option<PeerProcess>) -> Self {
        let state = &parts.monitor.network().link;
        match &before {
            Some(before) => before.open(
                &parts.endpoint,
                [EventSource::Before, EventSource::DoorbellBefore],
            ),
            None => parts.endpoint.set_timer(Some(PAUSE)),
        }
        Self {
            frames: Frames::new(FRAMES, frame_len_max(state.mtu)),
            room: vec![0; frame_len_max(state.mtu)],
            properties: LinkProperties {
                address: state.mac.0,
                mtu: state.mtu,
                completes_checksums: false,
                segment_bytes_max: u32::from(state.mtu),
            },
            is_orphan: before.is_none(),
            before,
            asked: None,
            looks_left: 0,
            waits: 0,
            is_called: false,
            is_owner: false,
            has_left: false,
            turns_left: 0,
            parts,
        }
    }

    /// Whether the device has become ours: then it is time for [`Self::into_parts`].
    #[inline]
    pub(crate) fn is_owner(&self) -> bool {
        self.is_owner
    }

    /// What goes on over the device itself.
    pub(crate) fn into_parts(self) -> Parts {
        if let Some(before) = &self.before {
            before.close(&self.parts.endpoint);
        }
        if let Some(asked) = &self.asked {
            self.parts.endpoint.close(asked.as_fd());
        }
        self.parts.endpoint.set_timer(None);
        self.parts
    }

    /// What has passed through the process that has the interface, or is nearer to it; nothing while this one waits for it.
    pub fn relayed(&self) -> Option<RelayCounters> {
        let before = self.before.as_ref();
        before.map(|before| before.relay.counters())
    }

    /// What ends a wait.
    pub fn control_fd(&self) -> BorrowedFd<'_> {
        self.parts.endpoint.as_fd()
    }

    /// Looks who is at the sources.
    fn look(&mut self) {
        let ready = self.parts.endpoint.look();
        if ready.at(EventSource::Before) {
            self.hear_asked();
            self.hear_before();
        }
        if ready.at(EventSource::Behind) {
            self.hear_behind();
        }
        self.leave_broken();
        if ready.at(EventSource::Timer) && self.asked.is_some() {
            self.waits += 1;
            if self.waits == WAITS {
                (self.parts.on_fault)(InterfaceFault::NotGiven);
            }
        }
        // Who was before us may be gone without anybody to say so but the lock.
        if self.before.is_none() || (self.is_called && self.parts.wanted.is_serving()) {
            self.seek();
            self.parts.endpoint.set_timer(Some(PAUSE));
        } else if ready.at(EventSource::Timer) {
            self.parts.endpoint.set_timer(None);
        }
    }

    /// Looks for the device, or for a place behind who has it.
    fn seek(&mut self) {
        if self.looks_left > 0 {
            self.is_owner = self.parts.endpoint.lock();
            self.looks_left = if self.is_owner {
                0
            } else {
                self.looks_left - 1
            };
            return;
        }
        let may_have = self.before.is_none() && !self.parts.has_failed;
        if may_have && self.parts.endpoint.lock() {
            // Perhaps it was given to us this moment, by somebody who is behind us then.
            self.hear_asked();
            self.looks_left = 0;
            self.is_owner = true;
            return;
        }
        let request_kind = if self.is_orphan {
            RequestKind::Join
        } else {
            RequestKind::Take
        };
        let may_take = self.parts.wanted.is_serving() && !self.parts.has_failed;
        let is_wanted = self.is_orphan || may_take;
        if self.asked.is_none() && is_wanted {
            // If that can't be it is tried again.
            self.asked = self.parts.endpoint.ask(request_kind).ok();
        }
    }

    /// What somebody whom we have asked answers.
    fn hear_asked(&mut self) {
        let Some(asked) = self.asked.take() else {
            return;
        };
        let Some(next_message) = handover::next_message(&asked) else {
            self.asked = Some(asked);
            return;
        };
        self.parts.endpoint.close(asked.as_fd());
        match next_message {
            Message::Given(far) => {
                self.settle_behind(PeerProcess::joined(asked, far));
                self.looks_left = LOOKS;
            }
            Message::Welcome(far) => {
                if let Ok(before) = PeerProcess::joined(asked, far) {
                    before.open(
                        &self.parts.endpoint,
                        [EventSource::Before, EventSource::DoorbellBefore],
                    );
                    self.before = Some(before);
                    self.is_orphan = false;
                }
            }
            Message::Leaving | Message::Join(_) | Message::End => {}
        }
    }

    /// Somebody is behind us from now on. Who was there before finds a place further behind.
    fn settle_behind(&mut self, behind: io::Result<PeerProcess>) {
        let Ok(behind) = behind else {
            return;
        };
        behind.open(
            &self.parts.endpoint,
            [EventSource::Behind, EventSource::DoorbellBehind],
        );
        if let Some(former) = self.parts.behind.replace(behind) {
            former.close(&self.parts.endpoint);
        }
    }

    fn hear_before(&mut self) {
        while let Some(before) = &self.before
            && let Some(next_message) = before.next_message()
        {
            match next_message {
                Message::Leaving => self.is_called = true,
                Message::Join(channel) => {
                    let request = Request {
                        request_kind: RequestKind::Join,
                        channel,
                    };
                    match &self.parts.behind {
                        Some(behind) => behind.pass_on(&request),
                        None => self.settle_behind(PeerProcess::admit(request)),
                    }
                }
                Message::Given(_) | Message::Welcome(_) | Message::End => self.lose_before(),
            }
        }
    }

    fn lose_before(&mut self) {
        if let Some(before) = self.before.take() {
            before.close(&self.parts.endpoint);
        }
        self.is_orphan = true;
        self.is_called = false;
    }

    /// Parts with whoever passes on what makes no sense; he notices, and the two find each other anew.
    fn leave_broken(&mut self) {
        let is_broken = |neighbor: &mut PeerProcess| neighbor.relay.is_broken();
        if self.before.as_mut().is_some_and(is_broken) {
            (self.parts.on_fault)(InterfaceFault::RelayBroken);
            self.lose_before();
        }
        if let Some(behind) = self.parts.behind.take_if(is_broken) {
            (self.parts.on_fault)(InterfaceFault::RelayBroken);
            behind.close(&self.parts.endpoint);
        }
    }

    fn hear_behind(&mut self) {
        if let Some(behind) = &self.parts.behind
            && let Some(Message::End) = behind.next_message()
        {
            // What it has sent last.
            self.carry();
            if let Some(behind) = self.parts.behind.take() {
                behind.close(&self.parts.endpoint);
            }
        }
    }

    /// Passes on what who is behind us sends.
    fn carry(&mut self) {
        self.has_left = false;
        let (Some(before), Some(behind)) = (&mut self.before, &mut self.parts.behind) else {
            return;
        };
        self.has_left = behind.relay.carry(|relay, len| {
            if !before.relay.has_room(len) {
                return false;
            }
            let room = self.room.get_mut(..len).unwrap_or_default();
            if let Some(note) = relay.take(room) {
                before.relay.put(&note, room);
            }
            true
        });
    }

    fn on_heard(&mut self, change: Change, into: &mut Vec<LinkChange>) {
        match change {
            Change::Link(state) => {
                into.push(LinkChange::OwnMac(state.mac.0));
                if frame_len_max(state.mtu) <= self.room.len() {
                    self.properties.mtu = state.mtu;
                    self.properties.segment_bytes_max = u32::from(state.mtu);
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
        let Some(before) = &mut self.before else {
            return;
        };
        while receive_from(&mut before.relay, &mut self.frames, burst)
            && before.relay.release()
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
        let before = self.before.as_mut()?;
        if !before.relay.has_room(len_max) {
            return None;
        }
        self.room.get_mut(..len_max)
    }

    fn transmit(&mut self, len: usize, offload: Offload) {
        let Some(before) = &mut self.before else {
            return;
        };
        let note = Note {
            offload,
            ..Note::default()
        };
        let frame = self.room.get(..len).unwrap_or_default();
        let is_put = before.relay.put(&note, frame);
        debug_assert!(is_put, "room was reserved");
    }

    fn flush(&mut self) {
        self.carry();
        let neighbors = [&mut self.before, &mut self.parts.behind];
        for neighbor in neighbors.into_iter().flatten() {
            neighbor.relay.publish();
        }
    }

    fn is_behind(&self) -> bool {
        self.has_left
    }

    fn serve(&mut self, service: Service, on: bool) {
        self.parts.wanted.serve(service, on);
    }

    fn open_ports(&mut self, ports: RangeInclusive<u16>) {
        self.parts.wanted.ports = Some(ports);
    }

    fn resolve(&mut self, address: IpAddr) {
        // Whoever waits asks again, and gives up in the end.
        let _ = self.parts.monitor.ask(address);
        self.turns_left = 0;
    }

    fn hand_over(&mut self, frame: &Received) -> bool {
        let Some(behind) = &mut self.parts.behind else {
            return false;
        };
        let note = Note::arrived(frame.checksum, frame.merged);
        // Without room it is lost, as it might be on its way.
        behind.relay.put(&note, self.frames.frame(frame.id));
        true
    }

    fn take_changes(&mut self, into: &mut Vec<LinkChange>) {
        if let Some(left) = self.turns_left.checked_sub(1) {
            self.turns_left = left;
            return;
        }
        self.turns_left = TURNS_BETWEEN;
        self.look();
        let mut heard = std::mem::take(&mut self.parts.heard);
        if let Err(error) = self.parts.monitor.changes(&mut heard) {
            (self.parts.on_fault)(InterfaceFault::NetlinkLost(error.to_string()));
        }
        for change in heard.drain(..) {
            self.on_heard(change, into);
        }
        self.parts.heard = heard;
    }
}

/// Receives what there is, as far as there is room; whether that was all.
fn receive_from(relay: &mut Relay, frames: &mut Frames, burst: &mut Burst) -> bool {
    while burst.room() > 0
        && let Some(len) = relay.waiting()
    {
        if len > frames.place_bytes() {
            // Of an interface whose packets are longer by now.
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
            .field("before", &self.before)
            .finish_non_exhaustive()
    }
}

/// Bytes of the longest frame: Ethernet's header with two VLAN tags, and the packet.
fn frame_len_max(mtu: u16) -> usize {
    22 + usize::from(mtu)
}

/// Frames that may be received and not released: those that a host holds, and a few bursts.
const FRAMES: u32 = 512;

/// Turns without a look at the sources after one with; as an interface's between two questions to its monitor.
const TURNS_BETWEEN: u32 = 63;

/// How long it is waited until it is looked again whether the device has become free: without frames meanwhile, peers send
/// again what they have sent after some hundred milliseconds.
const PAUSE: Duration = Duration::from_millis(5);

/// How many of these pauses somebody who is asked may let pass until it is said: five seconds.
const WAITS: u32 = 1000;

/// How often it is looked whether who gave us the device has let go of it, until it is asked for again.
const LOOKS: u32 = 200;
