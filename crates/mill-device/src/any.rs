//! Any of the links, as one type: so one engine serves all, and no call per frame goes through `dyn`.

use crate::impair::ImpairedLink;
use crate::pcap::CapturedLink;
use crate::tap::TapLink;
use mill_stack::link::{Burst, FrameId, Link, LinkProperties, Offload};
use std::os::fd::{AsFd, BorrowedFd};

/// A TAP device as it is, captured, over a bad wire, or both.
#[derive(Debug)]
pub enum AnyLink {
    Tap(TapLink),
    Captured(CapturedLink<TapLink>),
    Impaired(ImpairedLink<TapLink>),
    /// The file shows what the stack sees.
    CapturedImpaired(CapturedLink<ImpairedLink<TapLink>>),
}

/// The same expression for whichever it is.
macro_rules! each {
    ($any:expr, $link:ident => $expression:expr) => {
        match $any {
            AnyLink::Tap($link) => $expression,
            AnyLink::Captured($link) => $expression,
            AnyLink::Impaired($link) => $expression,
            AnyLink::CapturedImpaired($link) => $expression,
        }
    };
}

impl AnyLink {
    /// The TAP device beneath.
    pub fn tap(&self) -> &TapLink {
        match self {
            Self::Tap(tap) => tap,
            Self::Captured(link) => link.inner(),
            Self::Impaired(link) => link.inner(),
            Self::CapturedImpaired(link) => link.inner().inner(),
        }
    }

    /// Whether frames wait until the descriptor can be written.
    pub fn is_full(&self) -> bool {
        self.tap().is_full()
    }
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
}

impl AsFd for AnyLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tap().as_fd()
    }
}
