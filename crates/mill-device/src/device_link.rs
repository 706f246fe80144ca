//! The links, one variant for each kind of device, so that no call per frame goes through `dyn`.

use crate::impair::ImpairedLink;
use crate::interface::InterfaceLink;
use crate::memif::MemifLink;
use crate::nowhere::Nowhere;
use crate::standby::StandbyLink;
use crate::tap::TapLink;
use mill_stack::link::{Burst, FrameId, Link, LinkProperties, Offload, Received};
use std::os::fd::{AsFd, BorrowedFd};

/// A device's link.
#[expect(
    clippy::large_enum_variant,
    reason = "a worker has one, and every frame would follow the pointer of a box"
)]
#[derive(Debug)]
pub enum DeviceLink {
    Tap(TapLink),
    Impaired(ImpairedLink),
    Memif(MemifLink),
    AfXdp(InterfaceLink),
    /// Another process owns the interface.
    Standby(Box<StandbyLink>),
    /// While the owner's link becomes a standby link, or the other way round.
    Moving(Nowhere),
}

impl DeviceLink {
    /// Gives the device to a process that has requested it, or opens it if this process has become its owner.
    #[cold]
    pub(crate) fn change_places(&mut self) {
        *self = match std::mem::replace(self, Self::Moving(Nowhere)) {
            Self::AfXdp(link) => match link.give() {
                Ok(standby) => Self::Standby(standby),
                Err(link) => Self::AfXdp(*link),
            },
            Self::Standby(link) => match InterfaceLink::take(link.into_parts()) {
                Ok(link) => Self::AfXdp(*link),
                Err(standby) => Self::Standby(standby),
            },
            other => other,
        };
    }
}

/// The same expression for each variant.
macro_rules! each {
    ($any:expr, $link:ident => $expression:expr) => {
        match $any {
            DeviceLink::Tap($link) => $expression,
            DeviceLink::Impaired($link) => $expression,
            DeviceLink::Memif($link) => $expression,
            DeviceLink::AfXdp($link) => $expression,
            DeviceLink::Standby($link) => $expression,
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

    #[inline]
    fn flush(&mut self) -> bool {
        each!(self, link => link.flush())
    }

    fn hand_over(&mut self, frame: &Received) -> bool {
        each!(self, link => link.hand_over(frame))
    }
}

impl AsFd for DeviceLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        each!(self, link => link.as_fd())
    }
}
