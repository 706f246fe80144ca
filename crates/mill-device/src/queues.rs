//! The queues of an interface that one worker has, as one link.
//!
//! Frames are received from all of them and sent by the first, but for long segments, which leave whole by an outlet where there is one.
//! Most workers have one queue, and pay one comparison for the others.

use crate::af_xdp::{XdpCounters, XdpLink};
use crate::outlet::{self, Outlet};
use crate::standby::frame_len_max;
use mill_stack::link::{
    Burst, ExternalBytes, ExternalSent, FrameId, Link, LinkProperties, Offload, Received, Stray,
};
use mill_sys::xsk::XskStatistics;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// One queue or more.
#[derive(Debug)]
pub struct Queues {
    first: XdpLink,
    others: Vec<XdpLink>,
    outlet: Option<Outlet>,
    /// The room that was reserved last is the outlet's.
    is_outlet_reserved: bool,
    properties: LinkProperties,
    /// The queue to poll first in this turn, so that a busy one does not starve the others.
    turn: usize,
}

/// How many queues a worker can have.
pub const QUEUES_MAX: usize = 64;

impl Queues {
    /// `first` sends.
    pub fn new(first: XdpLink, others: Vec<XdpLink>) -> Self {
        debug_assert!(others.len() < QUEUES_MAX);
        Self {
            properties: *first.properties(),
            first,
            others,
            outlet: None,
            is_outlet_reserved: false,
            turn: 0,
        }
    }

    /// The same, with another way out for long segments.
    #[must_use]
    pub(crate) fn with_outlet(self, outlet: Option<Outlet>) -> Self {
        let mut queues = Self { outlet, ..self };
        queues.set_properties();
        queues
    }

    fn set_properties(&mut self) {
        self.properties = *self.first.properties();
        if self.outlet.is_some() {
            self.properties.segment_bytes_max = outlet::SEGMENT_BYTES_MAX;
            self.properties.cut_bytes_min = outlet::CUT_BYTES_MIN;
            self.properties.sends_external = true;
        }
    }

    /// Whether long segments leave whole.
    pub fn has_outlet(&self) -> bool {
        self.outlet.is_some()
    }

    pub fn iter(&self) -> impl Iterator<Item = &XdpLink> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// The descriptors that end a wait.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.iter().map(AsFd::as_fd)
    }

    /// The same, beside that of the first queue.
    pub fn other_descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.others.iter().map(AsFd::as_fd)
    }

    /// As [`XdpLink::set_mtu`], for all queues or for none.
    pub fn set_mtu(&mut self, mtu: u16) -> bool {
        // They were made alike: what is possible for one is possible for all.
        let is_possible = self.first.set_mtu(mtu);
        self.set_properties();
        is_possible && self.others.iter_mut().all(|link| link.set_mtu(mtu))
    }

    /// The counters of all queues and of the outlet together.
    pub fn counters(&self) -> XdpCounters {
        let outlet = self.outlet.as_ref().map(Outlet::counters);
        self.iter().fold(outlet.unwrap_or_default(), |sum, link| {
            sum + link.counters()
        })
    }

    /// The kernel's counters; a system call for each queue.
    pub fn statistics(&self) -> io::Result<XskStatistics> {
        self.iter().try_fold(XskStatistics::default(), |sum, link| {
            Ok(sum + link.statistics()?)
        })
    }

    /// As [`XdpLink::is_zero_copy`], for the queue that sends.
    pub fn is_zero_copy(&self) -> bool {
        self.first.is_zero_copy()
    }

    /// As [`XdpLink::wake`], for all queues.
    pub(crate) fn wake(&self) {
        self.iter().for_each(XdpLink::wake);
    }

    /// As [`XdpLink::ring_depths`], summed.
    pub fn ring_depths(&mut self) -> (u32, u32, u32) {
        let (mut waiting, mut unsent, mut places) = self.first.ring_depths();
        for other in &mut self.others {
            let more = other.ring_depths();
            waiting += more.0;
            unsent += more.1;
            places += more.2;
        }
        (waiting, unsent, places)
    }

    /// Length of the longest frame that can be sent.
    pub fn frame_len_max(&self) -> usize {
        frame_len_max(self.properties.segment_bytes_max)
    }

    /// As [`XdpLink::leave`].
    pub fn leave(&mut self) {
        if let Some(outlet) = &mut self.outlet {
            outlet.flush();
        }
        self.first.leave();
        self.others.iter_mut().for_each(XdpLink::leave);
    }

    #[cold]
    fn receive_from_all(&mut self, burst: &mut Burst) {
        let count = self.others.len() + 1;
        self.turn = (self.turn + 1) % count;
        for step in 0..count {
            let index = (self.turn + step) % count;
            let before = burst.as_slice().len();
            let Some(link) = self.link(index) else {
                continue;
            };
            link.receive(burst);
            let new = burst.as_mut_slice().get_mut(before..).unwrap_or_default();
            for received in new {
                debug_assert!(received.id.0 >> INDEX_SHIFT == 0);
                received.id.0 |= u32::try_from(index).unwrap_or_default() << INDEX_SHIFT;
            }
        }
    }

    fn link(&mut self, index: usize) -> Option<&mut XdpLink> {
        match index.checked_sub(1) {
            None => Some(&mut self.first),
            Some(other) => self.others.get_mut(other),
        }
    }

    /// The queue of a frame, and the frame's id there.
    #[inline]
    fn of_frame(&mut self, id: FrameId) -> (&mut XdpLink, FrameId) {
        let index = (id.0 >> INDEX_SHIFT) as usize;
        let own = FrameId(id.0 & ((1 << INDEX_SHIFT) - 1));
        match index.checked_sub(1) {
            Some(other) if other < self.others.len() => (&mut self.others[other], own),
            _ => (&mut self.first, own),
        }
    }
}

impl Link for Queues {
    fn properties(&self) -> &LinkProperties {
        &self.properties
    }

    #[inline]
    fn receive(&mut self, burst: &mut Burst) {
        if self.others.is_empty() {
            self.first.receive(burst);
        } else {
            self.receive_from_all(burst);
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
        let Some(outlet) = &mut self.outlet else {
            return self.first.reserve(len_max);
        };
        // Nothing may be sent before a segment that waits.
        outlet.flush();
        if outlet.is_waiting() {
            return None;
        }
        self.is_outlet_reserved = len_max > self.first.frame_len_max();
        match self.is_outlet_reserved {
            true => outlet.reserve(len_max),
            false => self.first.reserve(len_max),
        }
    }

    #[inline]
    fn transmit(&mut self, len: usize, offload: Offload) {
        let is_long = self.is_outlet_reserved || offload.segmentation.is_some();
        match &mut self.outlet {
            Some(outlet) if is_long => {
                // A process that passes on what another one has written learns only then that it has to be cut, though it is no longer
                // than a frame: the path takes shorter ones.
                if !self.is_outlet_reserved
                    && let (Some(to), Some(from)) = (outlet.reserve(len), self.first.reserve(len))
                {
                    to.copy_from_slice(from);
                }
                // Frames that were sent before leave before.
                if self.first.has_unsent() {
                    self.first.flush();
                }
                outlet.transmit(len, offload);
            }
            _ => self.first.transmit(len, offload),
        }
    }

    fn transmit_external(
        &mut self,
        len: usize,
        offload: Offload,
        payload: ExternalBytes<'_>,
    ) -> ExternalSent {
        let Some(outlet) = self.outlet.as_mut().filter(|_| self.is_outlet_reserved) else {
            return ExternalSent::Unable;
        };
        // Frames that were sent before leave before.
        if self.first.has_unsent() {
            self.first.flush();
        }
        outlet.transmit_external(len, offload, payload)
    }

    #[inline]
    fn flush(&mut self) -> bool {
        let is_left = self.first.flush();
        match &mut self.outlet {
            Some(outlet) if outlet.is_waiting() => {
                outlet.flush();
                outlet.is_waiting() || is_left
            }
            _ => is_left,
        }
    }

    fn hand_over(&mut self, _frame: &Received, _stray: &Stray<'_>) -> bool {
        false
    }
}

impl AsFd for Queues {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.first.as_fd()
    }
}

/// Where the queue's number stands in a frame's id: above the ids of 64 workers' frames, 2^17 of each.
const INDEX_SHIFT: u32 = 24;
