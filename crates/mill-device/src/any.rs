//! Any of the links, as one type: so one engine serves all, and no call per frame goes through `dyn`.

use crate::forwarding::WorkerForwarding;
use crate::impair::ImpairedLink;
use crate::interface::InterfaceLink;
use crate::memif::MemifLink;
use crate::nowhere::Nowhere;
use crate::pcap::CapturedLink;
use crate::pcap::sink::FrameSender;
use crate::standby::StandbyLink;
use crate::tap::TapLink;
use mill_stack::link::{
    Burst, FrameId, Link, LinkChange, LinkProperties, Offload, Received, Service,
};
use mill_sys::epoll::Watcher;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};

/// A device as it is or captured; a TAP device also over a bad wire.
#[derive(Debug)]
pub enum AnyLink {
    Tap(TapLink),
    CapturedTap(CapturedLink<TapLink>),
    Impaired(ImpairedLink),
    /// The file shows what the stack sees.
    CapturedImpaired(CapturedLink<ImpairedLink>),
    Memif(MemifLink),
    CapturedMemif(CapturedLink<MemifLink>),
    AfXdp(InterfaceLink),
    CapturedAfXdp(CapturedLink<InterfaceLink>),
    /// The interface is another process's, at present or for good.
    Standby(Box<StandbyLink>),
    /// For the moment in which one of these becomes another.
    Moving(Nowhere),
}

impl AnyLink {
    /// The interface, if it is one of this machine's.
    pub fn interface(&self) -> Option<&InterfaceLink> {
        match self {
            Self::AfXdp(link) => Some(link),
            Self::CapturedAfXdp(link) => Some(link.inner()),
            _ => None,
        }
    }

    /// The same, to be asked more.
    pub fn interface_mut(&mut self) -> Option<&mut InterfaceLink> {
        match self {
            Self::AfXdp(link) => Some(link),
            Self::CapturedAfXdp(link) => Some(link.inner_mut()),
            _ => None,
        }
    }

    /// Has what passes given to a queue, from now on. False if it is written down already.
    pub fn begin_capture(&mut self, frames: FrameSender) -> bool {
        let (captured, has_begun) = match std::mem::replace(self, Self::Moving(Nowhere)) {
            Self::Tap(link) => (
                Self::CapturedTap(CapturedLink::for_a_while(link, frames)),
                true,
            ),
            Self::Impaired(link) => {
                let link = CapturedLink::for_a_while(link, frames);
                (Self::CapturedImpaired(link), true)
            }
            Self::Memif(link) => (
                Self::CapturedMemif(CapturedLink::for_a_while(link, frames)),
                true,
            ),
            Self::AfXdp(link) => (
                Self::CapturedAfXdp(CapturedLink::for_a_while(link, frames)),
                true,
            ),
            other => (other, false),
        };
        *self = captured;
        has_begun
    }

    /// Ends what [`Self::begin_capture`] has begun.
    pub fn end_capture(&mut self) {
        *self = match std::mem::replace(self, Self::Moving(Nowhere)) {
            Self::CapturedTap(link) => Self::Tap(link.into_inner()),
            Self::CapturedImpaired(link) => Self::Impaired(link.into_inner()),
            Self::CapturedMemif(link) => Self::Memif(link.into_inner()),
            Self::CapturedAfXdp(link) => Self::AfXdp(link.into_inner()),
            other => other,
        };
    }

    /// Its kind, as the first word of a specification.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Tap(_) | Self::CapturedTap(_) | Self::Impaired(_) | Self::CapturedImpaired(_) => {
                "tap"
            }
            Self::Memif(_) | Self::CapturedMemif(_) => "memif",
            Self::AfXdp(_) | Self::CapturedAfXdp(_) => "af_xdp",
            Self::Standby(_) => "af_xdp",
            Self::Moving(_) => "none",
        }
    }

    /// The way to an interface that another process has, if it is one.
    pub fn standby(&self) -> Option<&StandbyLink> {
        match self {
            Self::Standby(link) => Some(link),
            _ => None,
        }
    }

    /// The memif, if it is one.
    pub fn memif(&self) -> Option<&MemifLink> {
        match self {
            Self::Memif(link) => Some(link),
            Self::CapturedMemif(link) => Some(link.inner()),
            _ => None,
        }
    }

    /// What ends a wait beside frames, if there is anything.
    pub fn control_fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Standby(link) => Some(link.control_fd()),
            _ => self.interface().map(InterfaceLink::control_fd),
        }
    }

    /// What frames come by, beside the link's own descriptor.
    pub fn other_queues(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.interface()
            .into_iter()
            .flat_map(InterfaceLink::other_queues)
    }

    /// What ends a wait by changing, without being read: another worker has frames for this one.
    pub fn doorbell_fd(&self) -> Option<BorrowedFd<'_>> {
        self.forwarding().map(WorkerForwarding::doorbell_fd)
    }

    /// The other workers of the device.
    pub fn forwarding(&self) -> Option<&WorkerForwarding> {
        match self {
            Self::Tap(link) => link.forwarding(),
            Self::CapturedTap(link) => link.inner().forwarding(),
            _ => self.interface()?.forwarding(),
        }
    }

    /// Has frames end waits by this watcher, from when on and as long as they come to this process. It comes back where the
    /// descriptor of the link stays the same, which can be watched as well.
    pub fn set_watcher(&mut self, watcher: Watcher) -> Option<Watcher> {
        match self {
            Self::AfXdp(link) => link.set_watcher(watcher),
            Self::Standby(link) => {
                link.set_watcher(watcher);
                None
            }
            _ => Some(watcher),
        }
    }

    fn given(link: InterfaceLink) -> Self {
        match link.give() {
            Ok(standby) => Self::Standby(standby),
            Err(link) => Self::AfXdp(*link),
        }
    }

    /// Gives the device to another process that asks for it, or takes one that has become ours.
    #[cold]
    fn change_places(&mut self) {
        *self = match std::mem::replace(self, Self::Moving(Nowhere)) {
            Self::AfXdp(link) => Self::given(link),
            // Somebody writes down for a while what passes. It ends with what is written by then.
            Self::CapturedAfXdp(link) => Self::given(link.into_inner()),
            Self::Standby(link) => match InterfaceLink::take(link.into_parts()) {
                Ok(link) => Self::AfXdp(*link),
                Err(standby) => Self::Standby(standby),
            },
            other => other,
        };
    }
}

/// The same expression for whichever it is.
macro_rules! each {
    ($any:expr, $link:ident => $expression:expr) => {
        match $any {
            AnyLink::Tap($link) => $expression,
            AnyLink::CapturedTap($link) => $expression,
            AnyLink::Impaired($link) => $expression,
            AnyLink::CapturedImpaired($link) => $expression,
            AnyLink::Memif($link) => $expression,
            AnyLink::CapturedMemif($link) => $expression,
            AnyLink::AfXdp($link) => $expression,
            AnyLink::CapturedAfXdp($link) => $expression,
            AnyLink::Standby($link) => $expression,
            AnyLink::Moving($link) => $expression,
        }
    };
}

impl Link for AnyLink {
    fn properties(&self) -> &LinkProperties {
        each!(self, link => link.properties())
    }

    fn receive(&mut self, burst: &mut Burst) {
        each!(self, link => link.receive(burst));
    }

    fn frame(&mut self, id: FrameId) -> &mut [u8] {
        each!(self, link => link.frame(id))
    }

    fn release(&mut self, id: FrameId) {
        each!(self, link => link.release(id));
    }

    fn reserve(&mut self, len_max: usize) -> Option<&mut [u8]> {
        each!(self, link => link.reserve(len_max))
    }

    fn transmit(&mut self, len: usize, offload: Offload) {
        each!(self, link => link.transmit(len, offload));
    }

    fn flush(&mut self) {
        each!(self, link => link.flush());
    }

    fn serve(&mut self, service: Service, on: bool) {
        each!(self, link => link.serve(service, on));
    }

    fn open_ports(&mut self, ports: RangeInclusive<u16>) {
        each!(self, link => link.open_ports(ports));
    }

    fn brings(&self, remote: SocketAddr, local_port: u16) -> bool {
        each!(self, link => link.brings(remote, local_port))
    }

    fn resolve(&mut self, address: IpAddr) {
        each!(self, link => link.resolve(address));
    }

    fn forget(&mut self, service: Service) {
        each!(self, link => link.forget(service));
    }

    fn hand_over(&mut self, frame: &Received) -> bool {
        each!(self, link => link.hand_over(frame))
    }

    #[inline]
    fn is_behind(&self) -> bool {
        each!(self, link => link.is_behind())
    }

    #[inline]
    fn frames_per_turn(&self) -> usize {
        each!(self, link => link.frames_per_turn())
    }

    fn take_changes(&mut self, into: &mut Vec<LinkChange>) {
        each!(self, link => link.take_changes(into));
        let is_due = match self {
            Self::AfXdp(link) => link.is_asked(),
            Self::CapturedAfXdp(link) => link.inner().is_asked(),
            Self::Standby(link) => link.is_owner(),
            _ => false,
        };
        if is_due {
            self.change_places();
        }
    }
}

impl AsFd for AnyLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        each!(self, link => link.as_fd())
    }
}
