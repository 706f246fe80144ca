//! The queues of an interface that one worker has, as one link.
//!
//! Frames are received from all of them and sent by the first. Most workers have one, and pay one comparison for the
//! others.

use crate::af_xdp::{XdpCounters, XdpLink};
use mill_stack::link::{Burst, FrameId, Link, LinkProperties, Offload, Received};
use mill_sys::xsk::XskStatistics;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// One queue or more.
#[derive(Debug)]
pub struct Queues {
    first: XdpLink,
    others: Vec<XdpLink>,
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
            first,
            others,
            turn: 0,
        }
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
        is_possible && self.others.iter_mut().all(|link| link.set_mtu(mtu))
    }

    /// The counters of all queues together.
    pub fn counters(&self) -> XdpCounters {
        self.iter()
            .fold(XdpCounters::default(), |sum, link| sum + link.counters())
    }

    /// The kernel's counters; a system call for each queue.
    pub fn statistics(&self) -> io::Result<XskStatistics> {
        self.iter().try_fold(XskStatistics::default(), |sum, link| {
            Ok(sum + link.statistics()?)
        })
    }

    /// As [`XdpLink::is_zero_copy`], for the queue that sends.
    pub fn is_zero_copy(&self) -> io::Result<bool> {
        self.first.is_zero_copy()
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

    /// As [`XdpLink::frame_len_max`].
    pub fn frame_len_max(&self) -> usize {
        self.first.frame_len_max()
    }

    /// As [`XdpLink::leave`].
    pub fn leave(&mut self) {
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
        self.first.properties()
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
        self.first.reserve(len_max)
    }

    #[inline]
    fn transmit(&mut self, len: usize, offload: Offload) {
        self.first.transmit(len, offload);
    }

    #[inline]
    fn flush(&mut self) -> bool {
        self.first.flush()
    }

    fn hand_over(&mut self, _frame: &Received) -> bool {
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
