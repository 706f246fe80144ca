//! Any of the links, as one type: so one engine serves all, and no call per frame goes through `dyn`.

use crate::impair::ImpairedLink;
use crate::interface::InterfaceLink;
use crate::memif::MemifLink;
use crate::pcap::CapturedLink;
use crate::tap::TapLink;
use mill_stack::link::{
    Burst, FrameId, Link, LinkChange, LinkProperties, Offload, Received, Service,
};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};

/// A device as it is or captured; a TAP device also over a bad wire.
#[derive(Debug)]
pub enum AnyLink {
    Tap(TapLink),
    CapturedTap(CapturedLink<TapLink>),
    Impaired(ImpairedLink<TapLink>),
    /// The file shows what the stack sees.
    CapturedImpaired(CapturedLink<ImpairedLink<TapLink>>),
    Memif(MemifLink),
    CapturedMemif(CapturedLink<MemifLink>),
    AfXdp(InterfaceLink),
    CapturedAfXdp(CapturedLink<InterfaceLink>),
}

impl AnyLink {
    /// What ends a wait beside frames, if there is anything.
    pub fn surroundings(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::AfXdp(link) => Some(link.surroundings()),
            Self::CapturedAfXdp(link) => Some(link.inner().surroundings()),
            _ => None,
        }
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

    fn resolve(&mut self, address: IpAddr) {
        each!(self, link => link.resolve(address));
    }

    fn hand_over(&mut self, frame: &Received) -> bool {
        each!(self, link => link.hand_over(frame))
    }

    fn take_changes(&mut self, into: &mut Vec<LinkChange>) {
        each!(self, link => link.take_changes(into));
    }
}

impl AsFd for AnyLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        each!(self, link => link.as_fd())
    }
}
