//! What is told of a link: what it counts, and what can happen to it.

use std::ops::Add;

/// What has passed, and what has not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XdpCounters {
    pub received: u64,
    pub received_bytes: u64,
    pub transmitted: u64,
    pub transmitted_bytes: u64,
    /// Frames that came in several pieces.
    pub gathered: u64,
    /// Frames that came and were dropped here: longer than the MTU, or more of several pieces at once than there is room
    /// for.
    pub dropped: u64,
    /// Calls to send.
    pub kicks: u64,
    /// Calls after which frames still waited.
    pub waited: u64,
    /// Times that the other end's queue was full and a frame was lost.
    pub lost: u64,
    /// Calls that the kernel refused: the interface is down or gone.
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
            gathered: self.gathered + other.gathered,
            dropped: self.dropped + other.dropped,
            kicks: self.kicks + other.kicks,
            waited: self.waited + other.waited,
            lost: self.lost + other.lost,
            refused: self.refused + other.refused,
        }
    }
}

/// What can happen to a running link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpTrouble {
    /// Somebody has deleted the interface: nothing passes any more.
    DeviceGone,
    /// Frames are received and none is sent: the queue's number is beyond the interface's queues that send.
    QueueSendsNothing,
}
