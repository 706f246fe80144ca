//! TIME-WAIT, in as few bytes as it needs (RFC 9293 3.6.1, 3.10.7.4; RFC 6191; RFC 1337).

use crate::arrived::SegmentDrop;
use crate::connection::Connection;
use crate::env::Env;
use crate::segment::{Segment, SegmentOut};
use crate::time::Tick;
use mill_wire::seq::SeqNumber;

/// What is left of a connection whose both sides have finished. With its key at most 64 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeWait {
    pub snd_nxt: SeqNumber,
    pub rcv_nxt: SeqNumber,
    /// Window of the last segment, not scaled again.
    pub window: u16,
    pub timestamps: bool,
    pub ts_recent: u32,
    pub ts_offset: u32,
    /// When it is over.
    pub ends_at: Tick,
}

/// What a segment meant in TIME-WAIT.
#[derive(Debug, PartialEq, Eq)]
pub enum TimeWaitOutcome {
    /// The peer's FIN again: acknowledged, and the wait begins anew.
    Answer(SegmentOut),
    /// A SYN that can't be an old one (RFC 6191, RFC 9293 3.6.1): the entry is to be forgotten and the SYN given to
    /// the listener, with an ISS beyond this.
    Reopen {
        iss_after: SeqNumber,
    },
    Dropped(SegmentDrop),
}

impl TimeWait {
    /// From a connection that said `Events::TIME_WAIT`.
    pub fn new(connection: &Connection, env: &mut Env<'_>) -> Self {
        let _ = env;
        Self {
            snd_nxt: connection.snd_nxt,
            rcv_nxt: connection.rcv_nxt,
            window: 0,
            timestamps: false,
            ts_recent: connection.ts_recent,
            ts_offset: connection.ts_offset,
            ends_at: Tick::default(),
        }
    }

    pub fn on_segment(&mut self, segment: &Segment<'_>, env: &mut Env<'_>) -> TimeWaitOutcome {
        let _ = (segment, env);
        TimeWaitOutcome::Dropped(SegmentDrop::Duplicate)
    }
}
