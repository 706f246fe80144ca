//! What a segment or a timer meant to the owner of the connection.

use core::ops::{BitOr, BitOrAssign, Range};

/// What the owner has to do now. Whatever it says, `next_segment` is to be asked afterwards, also of a connection that
/// is Closed now: a last acknowledgement or RST may be due.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrived {
    /// The part of the segment's payload that is next in order: to be given to the reader. Afterwards
    /// `Connection::next_reassembled` is to be asked for what followed it and was here already.
    pub deliver: Range<usize>,
    /// Bytes at the front of the owner's queue that are acknowledged: it can forget them.
    pub acked: u32,
    pub events: Events,
    /// The segment was of no use, and why.
    pub dropped: Option<SegmentDrop>,
}

impl Arrived {
    pub(crate) fn dropped(why: SegmentDrop) -> Self {
        Self {
            dropped: Some(why),
            ..Self::default()
        }
    }

    pub(crate) fn with(events: Events) -> Self {
        Self {
            events,
            ..Self::default()
        }
    }
}

/// What changed, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events(pub u16);

impl Events {
    /// Bytes to read.
    pub const READABLE: Self = Self(1);
    /// The handshake is complete.
    pub const ESTABLISHED: Self = Self(1 << 1);
    /// The peer has sent FIN: nothing follows what was delivered, that of `next_reassembled` included.
    pub const FINISHED: Self = Self(1 << 2);
    /// The peer reset the connection. It is Closed: the owner forgets it.
    pub const RESET: Self = Self(1 << 3);
    /// The peer refused our SYN. Closed.
    pub const REFUSED: Self = Self(1 << 4);
    /// The peer answers no more (RFC 9293 3.8.3 R2, user timeout, keep-alive). Closed.
    pub const TIMED_OUT: Self = Self(1 << 5);
    /// Both sides have finished, and this side waits: the owner makes a `TimeWait` of it. Closed.
    pub const TIME_WAIT: Self = Self(1 << 6);
    /// Both sides have finished and there is no wait. Closed.
    pub const CLOSED: Self = Self(1 << 7);
    /// Everything that was sent is acknowledged.
    pub const ALL_ACKED: Self = Self(1 << 8);
    /// `Connection::take_path_news` has something (RFC 4821).
    pub const PATH_MTU: Self = Self(1 << 9);
    /// The SYN had to be repeated without the text that it had carried (RFC 7413), and only then was answered.
    pub const SYN_TEXT_LOST: Self = Self(1 << 10);

    /// The connection is Closed.
    pub const ENDS: Self = Self(
        Self::RESET.0 | Self::REFUSED.0 | Self::TIMED_OUT.0 | Self::TIME_WAIT.0 | Self::CLOSED.0,
    );

    pub const fn has_any(self, events: Self) -> bool {
        self.0 & events.0 != 0
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl BitOr for Events {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Events {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

/// Why a segment, or all it carried, was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SegmentDrop {
    /// Outside the receive window (RFC 9293 3.10.7.4, first).
    OutsideWindow,
    /// An old timestamp (RFC 7323 5.2), or none although every segment has to have one (RFC 7323 3.2).
    Paws,
    /// RST in the window, but not next in order (RFC 5961 3.2).
    BlindReset,
    /// SYN in a synchronized state (RFC 5961 4.2).
    BlindSyn,
    /// An acknowledgement of what was never sent, or long ago (RFC 5961 5.2).
    BadAck,
    /// No ACK where one has to be.
    NoAck,
    /// A whole duplicate.
    Duplicate,
    /// Out of order, and the room for such data is used up.
    ReassemblyFull,
    /// Beyond the memory that the connection may use.
    NoBuffer,
    /// Data after the application closed (RFC 9293 3.10.7.1): answered with RST.
    AfterClose,
    /// No connection, and no listener wants it.
    NoConnection,
}
