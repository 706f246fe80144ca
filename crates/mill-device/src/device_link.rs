//! The links, one variant for each kind of device, so that no call per frame goes through `dyn`.

use crate::direct::DirectLink;
use crate::forwarding::Returns;
use crate::interface::InterfaceLink;
use crate::movable::MovableLink;
use crate::nowhere::Nowhere;
use crate::partitions::Partitions;
use crate::standby::{Origin, StandbyLink};
use mill_stack::link::{
    Burst, ExternalBytes, ExternalSent, FlowSteering, FrameId, Link, LinkChange, LinkMonitor,
    LinkProperties, LinkSuccession, Offload, Received, Service,
};
use mill_sys::epoll::Watcher;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
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
    pub(crate) fn change_places(&mut self) {
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

    /// Returns a frame that no worker of this process knows to the process that has passed it on, if there is one: the frame has
    /// come back `returns` times.
    pub(crate) fn give_back(&mut self, frame: &Received, bytes: &[u8], returns: u8) -> bool {
        match self {
            Self::Standby(link) => link.give_back(frame, bytes, returns),
            _ => false,
        }
    }

    /// Whether a frame without connection may be of a process that has no place on the device yet.
    pub(crate) fn may_be_of_others(&self) -> bool {
        match self {
            Self::AfXdp(link) => link.may_be_of_others(),
            Self::Movable(link) => link.may_be_of_others(),
            Self::Standby(link) => link.may_be_of_others(),
            _ => false,
        }
    }

    /// Where frames go that the successor returns: to the other workers of this process.
    pub(crate) fn set_returns(&mut self, returns: Returns) {
        match self {
            Self::AfXdp(link) => link.set_returns(returns),
            Self::Movable(link) => link.set_returns(returns),
            Self::Standby(link) => link.set_returns(returns),
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

    fn hand_over(&mut self, frame: &Received) -> bool {
        each!(self, link => link.hand_over(frame))
    }

    fn pass_on(&mut self, frame: &Received) -> bool {
        each!(self, link => link.pass_on(frame))
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
            // The process that has the interface steers its frames, and others are not steered.
            Self::Standby(_) | Self::Movable(_) => {}
            Self::Direct(_) | Self::Moving(_) => {}
        }
    }

    fn open_ports(&mut self, ports: RangeInclusive<u16>) {
        match self {
            Self::AfXdp(link) => link.open_ports(ports),
            Self::Movable(link) => link.open_ports(ports),
            Self::Standby(link) => link.open_ports(ports),
            Self::Partitions(link) => link.open_ports(ports),
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
            Self::Direct(_) | Self::Movable(_) | Self::Standby(_) | Self::Moving(_) => true,
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
        let is_due = match self {
            Self::AfXdp(link) => {
                link.take_changes(into);
                link.has_take_request()
            }
            Self::Movable(link) => {
                link.take_changes(into);
                link.has_take_request()
            }
            Self::Standby(link) => {
                link.take_changes(into);
                link.is_owner()
            }
            Self::Partitions(link) => {
                link.take_changes(into);
                false
            }
            Self::Direct(link) => {
                link.take_changes(into);
                false
            }
            Self::Moving(_) => false,
        };
        if is_due {
            self.change_places();
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

    fn pass_waiting(&mut self, connections: &[u8]) -> bool {
        match self {
            Self::Standby(link) => link.pass_waiting(connections),
            Self::Partitions(link) => link.pass_waiting(connections),
            _ => false,
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

    #[inline]
    fn take_ports_wanted(&mut self) -> bool {
        match self {
            Self::AfXdp(link) => link.take_ports_wanted(),
            Self::Movable(link) => link.take_ports_wanted(),
            Self::Standby(link) => link.take_ports_wanted(),
            Self::Partitions(link) => link.take_ports_wanted(),
            _ => false,
        }
    }
}

impl AsFd for DeviceLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        each!(self, link => link.as_fd())
    }
}
