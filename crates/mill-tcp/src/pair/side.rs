//! One end of a pair and the application that uses it.

use crate::arrived::Events;
use crate::config::Config;
use crate::connection::Connection;
use crate::env::Shared;
use crate::listen::HalfOpen;
use crate::time_wait::TimeWait;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use mill_wire::seq::SeqNumber;

/// One end and the application that uses it.
#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) config: Config,
    pub(crate) shared: Shared,
    pub(crate) mss: u16,
    /// More than the MSS where the device segments.
    pub(crate) segment_bytes_max: u32,
    pub(crate) memory_left_bytes: u64,
    pub(crate) iss: SeqNumber,
    pub(crate) peer: Peer,
    /// What the application has written and the peer not acknowledged.
    pub(crate) queue: VecDeque<u8>,
    pub(crate) received: Vec<u8>,
    /// Whether the application consumes at once what is delivered.
    pub(crate) reads: bool,
    pub(crate) events: Events,
    /// Whether the edge may move back by less than a unit of its scale, as it does for a reader that sleeps while
    /// tiny segments come.
    pub(crate) rounds_down: bool,
    /// The right edge of the window as it went over the wire.
    pub(super) edge: Option<SeqNumber>,
}

/// What a side is at present.
#[derive(Debug)]
pub(crate) enum Peer {
    Listening,
    HalfOpen(HalfOpen),
    Open(Connection),
    TimeWait(TimeWait),
    Gone,
}

impl Side {
    pub(super) fn new(config: &Config, iss: u32, seed: u64) -> Self {
        Self {
            config: config.clone(),
            shared: Shared::new(seed),
            mss: 1460,
            segment_bytes_max: 1460,
            memory_left_bytes: 1 << 30,
            iss: SeqNumber(iss),
            peer: Peer::Listening,
            queue: VecDeque::new(),
            received: Vec::new(),
            reads: true,
            events: Events::default(),
            rounds_down: false,
            edge: None,
        }
    }
}
