//! A segment that arrived, and one to send.

use mill_wire::seq::SeqNumber;
use mill_wire::tcp::Flags;
use mill_wire::tcp_option::TcpOptions;

/// The ECN field of the IP header (RFC 3168 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    #[default]
    NotCapable,
    /// ECT(1).
    Capable1,
    /// ECT(0).
    Capable0,
    /// CE: a router was congested.
    Congested,
}

/// A segment as it arrived; lengths and checksum are right, addresses and ports are the owner's business.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    pub seq: SeqNumber,
    /// Means something only with ACK.
    pub ack: SeqNumber,
    pub flags: Flags,
    /// As it stands in the header, not scaled.
    pub window: u16,
    /// Means something only with URG.
    pub urgent: u16,
    pub options: &'a TcpOptions,
    pub payload: &'a [u8],
    pub ecn: Ecn,
    /// How many segments a device merged into this one; 1 if none.
    pub merged: u16,
}

impl Segment<'_> {
    /// SEG.LEN of RFC 9293 3.3.1: payload, SYN and FIN.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a payload is shorter than 2^17 bytes"
    )]
    pub const fn len(&self) -> u32 {
        self.payload.len() as u32
            + self.flags.has(Flags::SYN) as u32
            + self.flags.has(Flags::FIN) as u32
    }

    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A segment to send. The owner adds ports, addresses and the payload, which is a range of its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentOut {
    pub seq: SeqNumber,
    pub ack: SeqNumber,
    pub flags: Flags,
    /// As it stands in the header, scaled already.
    pub window: u16,
    pub urgent: u16,
    pub options: TcpOptions,
    /// Where the payload begins in the owner's queue, whose first byte is the first unacknowledged one.
    pub offset: u32,
    /// Bytes of payload; may be many times `mss` where the device segments.
    pub len: u32,
    /// Payload bytes of each segment that the device or its edge cuts this one into.
    pub mss: u16,
    pub ecn: Ecn,
    /// Some of these bytes were sent before.
    pub is_retransmission: bool,
}
