//! The link of a device itself that one process has at a time: a TAP device, a memif, or a port of DPDK. All of its frames come; nothing steers them.

use crate::dpdk::DpdkLink;
use crate::impair::ImpairedLink;
use crate::memif::MemifLink;
use crate::tap::TapLink;
use mill_stack::link::{
    Burst, ExternalBytes, ExternalSent, FrameId, Link, LinkChange, LinkProperties, Offload,
    Received, Stray,
};
use std::os::fd::{AsFd, BorrowedFd};

/// A device's own link. Apart from [`crate::device_link::DeviceLink`], so that calls by way of
/// [`crate::movable::MovableLink`] are not recursive and the compiler can put them together.
#[derive(Debug)]
pub enum DirectLink {
    Tap(TapLink),
    Impaired(ImpairedLink),
    Memif(MemifLink),
    Dpdk(Box<DpdkLink>),
}

impl DirectLink {
    /// The device's kind, as in a specification.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Tap(_) | Self::Impaired(_) => "tap",
            Self::Memif(_) => "memif",
            Self::Dpdk(_) => "dpdk",
        }
    }

    /// The memif, if it is one.
    pub(crate) const fn memif(&self) -> Option<&MemifLink> {
        match self {
            Self::Memif(link) => Some(link),
            _ => None,
        }
    }

    /// The port of DPDK, if it is one.
    pub(crate) fn dpdk(&self) -> Option<&DpdkLink> {
        match self {
            Self::Dpdk(link) => Some(link),
            _ => None,
        }
    }

    /// The TAP device, if it is one.
    pub(crate) fn tap(&self) -> Option<&TapLink> {
        match self {
            Self::Tap(link) => Some(link),
            Self::Impaired(link) => Some(link.inner()),
            Self::Memif(_) | Self::Dpdk(_) => None,
        }
    }

    /// Appends that a memif's peer has come or gone, and looks at the link of a port.
    #[inline]
    pub(crate) fn take_changes(&mut self, into: &mut Vec<LinkChange>) {
        match self {
            Self::Memif(link) => link.take_changes(into),
            Self::Dpdk(link) => link.look_at_link(),
            Self::Tap(_) | Self::Impaired(_) => {}
        }
    }
}

/// The same expression for each variant.
macro_rules! each {
    ($any:expr, $link:ident => $expression:expr) => {
        match $any {
            DirectLink::Tap($link) => $expression,
            DirectLink::Impaired($link) => $expression,
            DirectLink::Memif($link) => $expression,
            DirectLink::Dpdk($link) => $expression,
        }
    };
}

impl Link for DirectLink {
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
}

impl AsFd for DirectLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        each!(self, link => link.as_fd())
    }
}
