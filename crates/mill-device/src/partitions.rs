//! An interface whose queues are in partitions, as one link.
//!
//! Each partition has queues, a table of what is served, and an owner of its own (see [`crate::handover`]). A process takes part in
//! all of them: it owns some, sends by one of these, and stands by at the others, from whose owners it gets the frames of its
//! connections that arrive there. Where it has a flow stands in one directory for all: that of the first partition.
//!
//! ```text
//! partition 0   worker 1 (owner)   worker 2            worker 3
//! partition 1   worker 2 (owner)   worker 1            worker 3
//! partition 2   worker 3 (owner)   worker 1            worker 2
//! ```
//!
//! The interface's changes are the same at all of them: those that the first one reports are passed on.

use crate::device_link::DeviceLink;
use crate::handover::directory::Directory;
use crate::interface::InterfaceLink;
use crate::standby::StandbyLink;
use mill_stack::flow_directory::FlowDirectory;
use mill_stack::link::{
    Burst, ExternalBytes, ExternalSent, FlowSteering, FrameId, Link, LinkChange, LinkMonitor,
    LinkProperties, LinkSuccession, Offload, Received, Service, Stray,
};
use mill_sys::epoll::Watcher;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

/// Two partitions or more.
#[derive(Debug)]
pub struct Partitions {
    parts: Vec<DeviceLink>,
    /// The partition by which this process sends.
    sender: usize,
    /// The partition to poll first in this turn, so that a busy one does not starve the others.
    turn: usize,
    /// What partitions behind the first one report.
    repeated: Vec<LinkChange>,
}

/// How many there can be.
pub const PARTITIONS_MAX: u32 = 1 << (u32::BITS - PARTITION_SHIFT);

/// How many queues a partition of several can have, by the room that ids of frames have for their number.
pub(crate) const PARTITION_QUEUES_MAX: usize = 32;

impl Partitions {
    /// `links` are of all partitions, in their order.
    pub(crate) fn new(mut links: Vec<DeviceLink>) -> Self {
        if let Some(first) = links.first().and_then(DeviceLink::own_directory) {
            for link in &mut links {
                link.set_directory(first);
            }
        }
        debug_assert!((2..=PARTITIONS_MAX as usize).contains(&links.len()));
        let mut partitions = Self {
            parts: links,
            sender: 0,
            turn: 0,
            repeated: Vec::new(),
        };
        partitions.choose_sender();
        partitions
    }

    /// Where the host is to list its flows, if others stand by, or this process does.
    #[inline]
    pub(crate) fn directory(&self) -> Option<Directory> {
        self.parts.iter().find_map(DeviceLink::directory)
    }

    /// Partitions change hands between turns.
    #[inline]
    pub(crate) fn change_places(&mut self) {
        self.each().for_each(LinkMonitor::change_places);
        self.choose_sender();
    }

    /// The partitions that this process owns.
    pub fn owned(&self) -> impl Iterator<Item = &InterfaceLink> {
        self.parts.iter().filter_map(|part| match part {
            DeviceLink::AfXdp(link) => Some(link),
            _ => None,
        })
    }

    /// The same as bits.
    pub(crate) fn owned_places(&self) -> u32 {
        let places = self.parts.iter().enumerate();
        let owned = places.filter(|(_, part)| is_owned(part));
        owned.fold(0, |bits, (place, _)| bits | 1 << place)
    }

    /// The partitions that others own.
    pub fn others(&self) -> impl Iterator<Item = &StandbyLink> {
        self.parts.iter().filter_map(|part| match part {
            DeviceLink::Standby(link) => Some(&**link),
            _ => None,
        })
    }

    pub(crate) fn close_ways(&mut self) {
        self.each().for_each(DeviceLink::close_ways);
    }

    /// Descriptors that end a wait for anything but frames.
    pub fn control_fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.parts.iter().filter_map(DeviceLink::control_fd)
    }

    /// Sets the watcher by which frames of the partitions that this process owns end waits.
    pub fn set_watcher(&mut self, watcher: &Watcher) {
        for part in &mut self.parts {
            // Without one, frames are found when something else ends the wait.
            if let Ok(watcher) = watcher.try_clone() {
                part.set_watcher(watcher);
            }
        }
    }

    /// The next turn sends by one that is this process's, else through another process.
    fn choose_sender(&mut self) {
        let is_good = |index: usize| {
            let part = self.parts.get(index);
            part.is_some_and(is_owned)
        };
        if is_good(self.sender) {
            return;
        }
        let places = 0..self.parts.len();
        let owned = places.clone().find(|index| is_good(*index));
        let through = |index: &usize| {
            let part = self.parts.get(*index);
            part.is_some_and(LinkSuccession::has_heir)
        };
        let sender = owned.or_else(|| places.clone().find(through));
        self.sender = sender.unwrap_or(self.sender);
    }

    fn sender(&mut self) -> &mut DeviceLink {
        &mut self.parts[self.sender]
    }

    fn each(&mut self) -> impl Iterator<Item = &mut DeviceLink> {
        self.parts.iter_mut()
    }

    /// The partition of a frame, and the frame's id there.
    #[inline]
    fn of_frame(&mut self, id: FrameId) -> (&mut DeviceLink, FrameId) {
        let index = (id.0 >> PARTITION_SHIFT) as usize;
        let own = FrameId(id.0 & ((1 << PARTITION_SHIFT) - 1));
        (&mut self.parts[index], own)
    }
}

fn is_owned(link: &DeviceLink) -> bool {
    matches!(link, DeviceLink::AfXdp(_))
}

impl Link for Partitions {
    fn properties(&self) -> &LinkProperties {
        self.parts[self.sender].properties()
    }

    fn receive(&mut self, burst: &mut Burst) {
        let count = self.parts.len();
        self.turn = (self.turn + 1) % count;
        for step in 0..count {
            let index = (self.turn + step) % count;
            let before = burst.as_slice().len();
            self.parts[index].receive(burst);
            let new = burst.as_mut_slice().get_mut(before..).unwrap_or_default();
            for received in new {
                debug_assert!(received.id.0 >> PARTITION_SHIFT == 0);
                received.id.0 |= u32::try_from(index).unwrap_or_default() << PARTITION_SHIFT;
            }
        }
    }

    #[inline]
    fn frame(&mut self, id: FrameId) -> &mut [u8] {
        let (link, id) = self.of_frame(id);
        link.frame(id)
    }

    #[inline]
    fn release(&mut self, id: FrameId) {
        let (link, id) = self.of_frame(id);
        link.release(id);
    }

    #[inline]
    fn reserve(&mut self, len_max: usize) -> Option<&mut [u8]> {
        self.sender().reserve(len_max)
    }

    #[inline]
    fn transmit(&mut self, len: usize, offload: Offload) {
        self.sender().transmit(len, offload);
    }

    fn transmit_external(
        &mut self,
        len: usize,
        offload: Offload,
        payload: ExternalBytes<'_>,
    ) -> ExternalSent {
        self.sender().transmit_external(len, offload, payload)
    }

    fn flush(&mut self) -> bool {
        self.each()
            .fold(false, |is_full, link| is_full | link.flush())
    }

    fn hand_over(&mut self, frame: &Received, stray: &Stray<'_>) -> bool {
        let (link, id) = self.of_frame(frame.id);
        link.hand_over(&Received { id, ..*frame }, stray)
    }

    fn pass_to(&mut self, frame: &Received, process: u64) -> bool {
        let (link, id) = self.of_frame(frame.id);
        link.pass_to(&Received { id, ..*frame }, process)
    }

    fn give_back(&mut self, frame: &Received) -> bool {
        let (link, id) = self.of_frame(frame.id);
        link.give_back(&Received { id, ..*frame })
    }
}

impl FlowSteering for Partitions {
    fn serve(&mut self, service: Service, on: bool) {
        self.each().for_each(|link| link.serve(service, on));
    }

    fn retire(&mut self, service: Service) {
        self.each().for_each(|link| link.retire(service));
    }

    fn forget(&mut self, service: Service) {
        self.each().for_each(|link| link.forget(service));
    }

    fn open_ports(&mut self) {
        self.each().for_each(FlowSteering::open_ports);
    }

    fn set_blocked(&mut self, addresses: &[IpAddr]) {
        self.each().for_each(|link| link.set_blocked(addresses));
    }

    fn brings(&self, remote: SocketAddr, local_port: u16) -> bool {
        let mut parts = self.parts.iter();
        parts.all(|part| part.brings(remote, local_port))
    }
}

impl LinkMonitor for Partitions {
    fn resolve(&mut self, address: IpAddr) {
        if let Some(first) = self.each().next() {
            first.resolve(address);
        }
    }

    fn take_changes(&mut self, into: &mut Vec<LinkChange>) {
        for (index, part) in self.parts.iter_mut().enumerate() {
            let into = if index == 0 {
                &mut *into
            } else {
                &mut self.repeated
            };
            part.take_changes(into);
        }
        self.repeated.clear();
    }

    fn flow_directory(&mut self) -> Option<Box<dyn FlowDirectory>> {
        let directory = self.directory()?;
        Some(Box::new(directory))
    }

    fn change_places(&mut self) {
        Self::change_places(self);
    }
}

/// What waits at listeners, where no other process listens, goes to the owner of one partition, the first: so it never goes round. If the owner leaves, it keeps that
/// until a process that serves has taken the partition over.
impl LinkSuccession for Partitions {
    fn has_heir(&self) -> bool {
        self.parts.first().is_some_and(LinkSuccession::has_heir)
    }

    fn seek_heir(&mut self) -> bool {
        // Each of them looks in the next turn.
        let seeking = self.each().map(LinkSuccession::seek_heir);
        seeking.fold(false, core::ops::BitOr::bitor)
    }

    fn pass_waiting(&mut self, connections: &[u8]) -> bool {
        // Until that has them, the owner of none may answer their segments.
        self.note_moving();
        let first = self.parts.first_mut();
        first.is_some_and(|first| first.pass_waiting(connections))
    }

    fn note_moving(&mut self) {
        self.parts.iter().for_each(DeviceLink::note_change);
    }

    fn take_passed(&mut self) -> Option<Vec<u8>> {
        self.each().find_map(LinkSuccession::take_passed)
    }
}

/// What can end a wait for frames is watched ([`Partitions::set_watcher`]); this is one of the queues.
impl AsFd for Partitions {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.parts[self.sender].as_fd()
    }
}

/// Where the partition's number stands in a frame's id: above the numbers of 32 queues and of their frames.
const PARTITION_SHIFT: u32 = 29;
