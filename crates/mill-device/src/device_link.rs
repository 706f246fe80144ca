//! The links, one variant for each kind of device, so that no call per frame goes through `dyn`.

use crate::direct::DirectLink;
use crate::handover::Endpoint;
use crate::handover::directory::Directory;
use crate::handover::owner::Delivery;
use crate::interface::InterfaceLink;
use crate::movable::MovableLink;
use crate::nowhere::Nowhere;
use crate::partitions::Partitions;
use crate::standby::{Origin, StandbyLink};
use mill_stack::flow_directory::FlowDirectory;
use mill_stack::link::{
    Burst, ExternalBytes, ExternalSent, FlowSteering, FrameId, Link, LinkChange, LinkMonitor,
    LinkProperties, LinkSuccession, Offload, Received, Service, Stray,
};
use mill_sys::epoll::Watcher;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

/// A device's link.
#[expect(
    clippy::large_enum_variant,
    reason = "a worker has one, and every frame would follow the pointer of a box"
)]
#[derive(Debug)]
pub enum DeviceLink {
    Direct(DirectLink),
    AfXdp(InterfaceLink),
    /// A TAP device or a memif that other processes may take over.
    Movable(Box<MovableLink>),
    /// Another process owns the device.
    Standby(Box<StandbyLink>),
    /// Several processes have queues of the interface.
    Partitions(Partitions),
    /// While the owner's link becomes a standby link, or the other way round.
    Moving(Nowhere),
}

impl DeviceLink {
    /// The descriptor that ends a wait for anything but frames, if there is one.
    pub(crate) fn control_fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::AfXdp(link) => Some(link.control_fd()),
            Self::Movable(link) => Some(link.control_fd()),
            Self::Standby(link) => Some(link.control_fd()),
            _ => None,
        }
    }

    /// Sets the watcher by which the device's frames end waits while this process owns it. Returns the watcher if the
    /// descriptor of the link never changes, so that it can be watched instead.
    pub(crate) fn set_watcher(&mut self, watcher: Watcher) -> Option<Watcher> {
        match self {
            Self::AfXdp(link) => return link.set_watcher(watcher),
            Self::Movable(link) => link.set_watcher(watcher),
            Self::Standby(link) => link.set_watcher(watcher),
            Self::Partitions(link) => link.set_watcher(&watcher),
            _ => return Some(watcher),
        }
        None
    }

    /// Gives the device to a process that has requested it, or opens it if this process has become its owner.
    #[cold]
    fn give_or_take(&mut self) {
        *self = match std::mem::replace(self, Self::Moving(Nowhere)) {
            Self::AfXdp(link) => match link.give() {
                Ok(standby) => Self::Standby(standby),
                Err(link) => Self::AfXdp(*link),
            },
            Self::Movable(link) => match link.give() {
                Ok(standby) => Self::Standby(standby),
                Err(link) => Self::Movable(link),
            },
            Self::Standby(link) => Self::taken(*link),
            other => other,
        };
    }

    /// The link of the owner that a process has become.
    fn taken(link: StandbyLink) -> Self {
        let parts = link.into_parts();
        let taken = match &parts.origin {
            Origin::Interface { .. } => InterfaceLink::take(parts).map(|link| Self::AfXdp(*link)),
            Origin::Device { .. } => MovableLink::take(parts).map(Self::Movable),
        };
        taken.unwrap_or_else(Self::Standby)
    }

    /// In a child after fork(2): the ways are its parent's.
    pub(crate) fn close_ways(&mut self) {
        match self {
            Self::AfXdp(link) => link.close_ways(),
            Self::Movable(link) => link.close_ways(),
            Self::Standby(link) => link.close_ways(),
            Self::Partitions(link) => link.close_ways(),
            Self::Direct(_) | Self::Moving(_) => {}
        }
    }

    /// The device's kind, as in a specification.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Direct(link) => link.kind(),
            Self::AfXdp(_) | Self::Partitions(_) => "af_xdp",
            Self::Movable(link) => link.device().kind(),
            Self::Standby(link) => link.kind(),
            Self::Moving(_) => "none",
        }
    }

    /// Gives a frame to the process that has its flow, or to all; `bytes` are those of one that another worker has forwarded.
    pub(crate) fn give_listed(
        &mut self,
        frame: &Received,
        bytes: Option<&[u8]>,
        stray: &Stray<'_>,
    ) -> Delivery {
        match self {
            Self::AfXdp(link) => link.give_listed(frame, bytes, stray),
            Self::Movable(link) => link.give_listed(frame, bytes, stray),
            Self::Standby(link) => link.look_up(stray),
            _ => Delivery::None,
        }
    }

    /// For some time no process that has a part in the device answers segments of connections that are on their way from one to another.
    pub(crate) fn note_change(&self) {
        match self {
            Self::AfXdp(link) => link.note_change(),
            Self::Movable(link) => link.endpoint().note_change(),
            Self::Standby(link) => link.note_change(),
            Self::Direct(_) | Self::Partitions(_) | Self::Moving(_) => {}
        }
    }

    /// Gives a frame that none has listed to the process that had the device before, in the first moments.
    pub(crate) fn fall_back(&mut self, frame: &Received, bytes: Option<&[u8]>) -> bool {
        match self {
            Self::AfXdp(link) => link.fall_back(frame, bytes),
            Self::Movable(link) => link.fall_back(frame, bytes),
            _ => false,
        }
    }

    /// Where the host is to list its flows, if other processes have or are about to have a part in the device.
    #[inline]
    pub(crate) fn directory(&self) -> Option<Directory> {
        match self {
            Self::AfXdp(link) => link.flow_directory(),
            Self::Movable(link) => link.flow_directory(),
            Self::Standby(link) => Some(link.directory()),
            Self::Partitions(link) => link.directory(),
            Self::Direct(_) | Self::Moving(_) => None,
        }
    }

    /// The directory of its lock, whether or not others stand by.
    pub(crate) fn own_directory(&self) -> Option<Directory> {
        match self {
            Self::AfXdp(link) => link.endpoint().map(Endpoint::directory),
            Self::Standby(link) => Some(link.directory()),
            _ => None,
        }
    }

    /// Its flows are in the directory of another partition.
    pub(crate) fn set_directory(&mut self, directory: Directory) {
        match self {
            Self::AfXdp(link) => link.set_directory(directory),
            Self::Standby(link) => link.set_directory(directory),
            _ => {}
        }
    }

    /// The link of the device itself, if this process owns one whose frames nothing steers.
    pub(crate) fn direct(&self) -> Option<&DirectLink> {
        match self {
            Self::Direct(link) => Some(link),
            Self::Movable(link) => Some(link.device()),
            _ => None,
        }
    }
}

/// The same expression for each variant.
macro_rules! each {
    ($any:expr, $link:ident => $expression:expr) => {
        match $any {
            DeviceLink::Direct($link) => $expression,
            DeviceLink::AfXdp($link) => $expression,
            DeviceLink::Movable($link) => $expression,
            DeviceLink::Standby($link) => $expression,
            DeviceLink::Partitions($link) => $expression,
            DeviceLink::Moving($link) => $expression,
        }
    };
}

impl Link for DeviceLink {
    fn properties(&self) -> &LinkProperties {
        each!(self, link => link.properties())
    }

    #[inline]
    fn receive(&mut self, burst: &mut Burst) {
        each!(self, link => link.receive(burst));
    }

    #[inline]
    fn frame(&mut self, id: FrameId) -> &mut [u8] {
        each!(self, link => link.frame(id))
    }

    #[inline]
    fn release(&mut self, id: FrameId) {
        each!(self, link => link.release(id));
    }

    #[inline]
    fn reserve(&mut self, len_max: usize) -> Option<&mut [u8]> {
        each!(self, link => link.reserve(len_max))
    }

    #[inline]
    fn transmit(&mut self, len: usize, offload: Offload) {
        each!(self, link => link.transmit(len, offload));
    }

    fn transmit_external(
        &mut self,
        len: usize,
        offload: Offload,
        payload: ExternalBytes<'_>,
    ) -> ExternalSent {
        each!(self, link => link.transmit_external(len, offload, payload))
    }

    #[inline]
    fn flush(&mut self) -> bool {
        each!(self, link => link.flush())
    }

    fn hand_over(&mut self, frame: &Received, stray: &Stray<'_>) -> bool {
        each!(self, link => link.hand_over(frame, stray))
    }

    fn pass_to(&mut self, frame: &Received, process: u64) -> bool {
        each!(self, link => link.pass_to(frame, process))
    }

    fn give_back(&mut self, frame: &Received) -> bool {
        each!(self, link => link.give_back(frame))
    }
}

/// An interface is shared with the kernel, and the queues of a device are shared by workers. All frames of a memif come.
impl FlowSteering for DeviceLink {
    fn serve(&mut self, service: Service, on: bool) {
        match self {
            Self::AfXdp(link) => link.serve(service, on),
            Self::Movable(link) => link.serve(service, on),
            Self::Standby(link) => link.serve(service, on),
            Self::Partitions(link) => link.serve(service, on),
            Self::Direct(_) | Self::Moving(_) => {}
        }
    }

    fn retire(&mut self, service: Service) {
        match self {
            Self::AfXdp(link) => link.retire(service),
            Self::Movable(link) => link.serve(service, false),
            Self::Standby(link) => link.serve(service, false),
            Self::Partitions(link) => link.retire(service),
            Self::Direct(_) | Self::Moving(_) => {}
        }
    }

    fn forget(&mut self, service: Service) {
        match self {
            Self::AfXdp(link) => link.forget(service),
            Self::Partitions(link) => link.forget(service),
            Self::Standby(link) => link.forget(service),
            Self::Movable(link) => link.forget(service),
            Self::Direct(_) | Self::Moving(_) => {}
        }
    }

    fn open_ports(&mut self) {
        match self {
            Self::AfXdp(link) => link.open_ports(),
            Self::Movable(link) => link.open_ports(),
            Self::Standby(link) => link.open_ports(),
            Self::Partitions(link) => link.open_ports(),
            Self::Direct(_) | Self::Moving(_) => {}
        }
    }

    fn set_blocked(&mut self, addresses: &[IpAddr]) {
        match self {
            Self::AfXdp(link) => link.set_blocked(addresses),
            Self::Partitions(link) => link.set_blocked(addresses),
            // The process that has the interface steers its frames, and others are not steered.
            Self::Standby(_) | Self::Movable(_) => {}
            Self::Direct(_) | Self::Moving(_) => {}
        }
    }

    fn brings(&self, remote: SocketAddr, local_port: u16) -> bool {
        match self {
            Self::AfXdp(link) => link.brings(remote, local_port),
            Self::Partitions(link) => link.brings(remote, local_port),
            Self::Standby(link) => link.brings(local_port),
            Self::Direct(_) | Self::Movable(_) | Self::Moving(_) => true,
        }
    }
}

/// The kernel's view of an interface changes, and a memif's peer comes and goes.
impl LinkMonitor for DeviceLink {
    fn resolve(&mut self, address: IpAddr) {
        match self {
            Self::AfXdp(link) => link.resolve(address),
            Self::Standby(link) => link.resolve(address),
            Self::Partitions(link) => link.resolve(address),
            Self::Movable(_) | Self::Direct(_) | Self::Moving(_) => {}
        }
    }

    fn take_changes(&mut self, into: &mut Vec<LinkChange>) {
        match self {
            Self::AfXdp(link) => link.take_changes(into),
            Self::Movable(link) => link.take_changes(into),
            Self::Standby(link) => link.take_changes(into),
            Self::Partitions(link) => link.take_changes(into),
            Self::Direct(link) => link.take_changes(into),
            Self::Moving(_) => {}
        }
    }

    #[inline]
    fn flow_directory(&mut self) -> Option<Box<dyn FlowDirectory>> {
        let directory = self.directory()?;
        Some(Box::new(directory))
    }

    #[inline]
    fn change_places(&mut self) {
        let is_due = match self {
            Self::AfXdp(link) => link.has_requests(),
            Self::Movable(link) => link.has_requests(),
            Self::Standby(link) => link.is_owner(),
            Self::Partitions(link) => return link.change_places(),
            Self::Direct(_) | Self::Moving(_) => false,
        };
        if is_due {
            self.give_or_take();
        }
    }
}

/// A device goes from process to process.
impl LinkSuccession for DeviceLink {
    fn has_heir(&self) -> bool {
        match self {
            Self::Standby(link) => link.has_heir(),
            Self::Partitions(link) => link.has_heir(),
            _ => false,
        }
    }

    fn seek_heir(&mut self) -> bool {
        match self {
            Self::AfXdp(link) => link.seek_heir(),
            Self::Movable(link) => link.seek_heir(),
            Self::Partitions(link) => link.seek_heir(),
            _ => false,
        }
    }

    fn pass_waiting(&mut self, connections: &[u8]) -> bool {
        match self {
            Self::Standby(link) => {
                link.note_change();
                link.pass_waiting(connections)
            }
            Self::Partitions(link) => link.pass_waiting(connections),
            _ => false,
        }
    }

    fn note_moving(&mut self) {
        match self {
            Self::Partitions(link) => link.note_moving(),
            other => other.note_change(),
        }
    }

    #[inline]
    fn take_passed(&mut self) -> Option<Vec<u8>> {
        match self {
            Self::AfXdp(link) => link.take_passed(),
            Self::Movable(link) => link.take_passed(),
            Self::Standby(link) => link.take_passed(),
            Self::Partitions(link) => link.take_passed(),
            _ => None,
        }
    }
}

impl AsFd for DeviceLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        each!(self, link => link.as_fd())
    }
}
