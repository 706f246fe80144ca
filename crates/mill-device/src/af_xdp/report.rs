//! Counters of a link, and its faults.

use std::ops::Add;

/// Counters of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XdpCounters {
    pub received: u64,
    pub received_bytes: u64,
    pub transmitted: u64,
    pub transmitted_bytes: u64,
    /// Long segments that left whole; they are among the frames transmitted.
    pub segments: u64,
    /// Frames that came in several pieces.
    pub gathered: u64,
    /// Received frames that were dropped: longer than the MTU, or more frames of several pieces at once than there is
    /// room for.
    pub dropped: u64,
    /// System calls to send.
    pub kicks: u64,
    /// Calls after which frames still waited.
    pub waited: u64,
    /// Frames that were lost because the other end's queue was full.
    pub lost: u64,
    /// Calls that failed because the interface is down or gone.
    pub refused: u64,
}

impl Add for XdpCounters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            received: self.received + other.received,
            received_bytes: self.received_bytes + other.received_bytes,
            transmitted: self.transmitted + other.transmitted,
            transmitted_bytes: self.transmitted_bytes + other.transmitted_bytes,
            segments: self.segments + other.segments,
            gathered: self.gathered + other.gathered,
            dropped: self.dropped + other.dropped,
            kicks: self.kicks + other.kicks,
            waited: self.waited + other.waited,
            lost: self.lost + other.lost,
            refused: self.refused + other.refused,
        }
    }
}

/// Faults of a running link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpTrouble {
    /// The interface was deleted: no frames pass any more.
    DeviceGone,
    /// Frames are received and none is sent: the queue's number is beyond the interface's queues that send.
    QueueSendsNothing,
}
