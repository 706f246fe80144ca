//! What carries frames, seen from above: `Link` is all that a host needs. What only a device has that is shared with the
//! kernel, other processes or other workers is in `FlowSteering`, `LinkMonitor`, `LinkSuccession` and `LinkLedger`.
//!
//! But for `Link::pass_to` and `Link::give_back`, which only links of shared devices have, none of their methods has a default: a link
//! around another forwards all of them, or does not compile.

use crate::flow::Flow;
use alloc::vec::Vec;

/// Which frames come to a link.
mod flow_steering;

/// What changes around a link.
mod monitor;

/// Which process has the device.
mod succession;

/// Payload that is sent from where it lies, without a copy.
mod external_bytes;

/// A record of a host's connections that outlives its process.
mod ledger;

pub use external_bytes::{ExternalBytes, ExternalSent};
pub use flow_steering::{FlowSteering, Service};
pub use ledger::LinkLedger;
pub use monitor::{LinkChange, LinkMonitor};
pub use succession::LinkSuccession;

/// A device: bursts of Ethernet frames in, bursts out. The packet memory is the device's; a frame is a number.
///
/// Received frames stay the caller's until `release`. To send: `reserve` a frame, fill it, `transmit` it; `flush` once
/// all of a turn's frames are there, which is when system calls happen. Nothing here waits.
pub trait Link {
    fn properties(&self) -> &LinkProperties;

    /// Takes frames that have arrived, as many as `burst` has room for.
    fn receive(&mut self, burst: &mut Burst);

    /// The bytes of a received frame, from the Ethernet header on.
    fn frame(&mut self, id: FrameId) -> &mut [u8];

    /// Gives a received frame's memory back.
    fn release(&mut self, id: FrameId);

    /// Room for one frame of up to `len_max` bytes, Ethernet header included; `None` while the device is full. The
    /// contents are undefined. Reserving again before `transmit` gives the same room.
    fn reserve(&mut self, len_max: usize) -> Option<&mut [u8]>;

    /// Sends the first `len` bytes of the room that was reserved last.
    fn transmit(&mut self, len: usize, offload: Offload);

    /// Sends the first `len` bytes of the room that was reserved last, and `payload` behind them, as one segment that the device
    /// cuts. Unless that is done, the room stays reserved.
    fn transmit_external(
        &mut self,
        len: usize,
        offload: Offload,
        payload: ExternalBytes<'_>,
    ) -> ExternalSent;

    /// Everything of this turn has been transmitted. Returns whether frames are left that only another flush sends: nothing
    /// tells when there is room for them.
    fn flush(&mut self) -> bool;

    /// Offers a received frame of which this host knows nothing to the worker or process that has or may have its flow. It gets a
    /// copy, and answers. `false` if there is none; without room on the way the frame is lost.
    fn hand_over(&mut self, frame: &Received, stray: &Stray<'_>) -> bool;

    /// Gives a copy of a received frame to a process that shares the device, by its number, which answers. `false` if there is no way
    /// to it from here; without room on the way the frame is lost.
    fn pass_to(&mut self, _frame: &Received, _process: u64) -> bool {
        false
    }

    /// Gives a copy of a received frame back to the process that has given it to this one, and that looks again whose it is: the connection or
    /// listener that it is for was here until a moment ago. `false` if it has not come from another process, or that is gone, or if it has
    /// come back too often; without room on the way the frame is lost.
    fn give_back(&mut self, _frame: &Received) -> bool {
        false
    }
}

/// What a frame is about of which a host knows nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stray<'a> {
    /// A segment of a flow that has no connection here.
    Segment(&'a Flow),
    /// The same with a SYN: a connection of another process that has ended and waits does not count.
    Opening(&'a Flow),
    /// All that share the device are to have it: what neighbours answer, and errors about their packets.
    Shared,
}

/// A link whose device has no other user: all frames for its host come by it, and nothing around it changes.
pub trait ExclusiveLink: Link {}

/// Frames that a host holds for its readers at once, until the turn ends; beyond, it copies their bytes and gives them
/// back. Every device has more, so that it goes on receiving within a turn.
pub const FRAMES_HELD_MAX: u32 = 96;

/// What a device is and can do; constant while the host uses it, but for what a [`LinkChange`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkProperties {
    /// Ethernet address.
    pub address: [u8; 6],
    /// Bytes of IP packet in a frame on the wire.
    pub mtu: u16,
    /// The device completes checksums of TCP and UDP whose field holds the pseudo header's sum. Those of packets that it cuts
    /// it completes in any case.
    pub completes_checksums: bool,
    /// Bytes of the largest IP packet that the device takes and cuts into segments itself; `mtu` if it does not.
    pub segment_bytes_max: u32,
    /// Bytes of payload from which on that is cheaper than to send each segment by itself.
    pub cut_bytes_min: u32,
    /// The payload of what the device cuts may be sent from where it lies (`transmit_external`).
    pub sends_external: bool,
    /// Frames that a turn takes at most; a call of `receive` that gave so many has perhaps left some. `usize::MAX` unless
    /// the other end works on what a turn has answered while the next turn goes on.
    pub frames_per_turn: usize,
}

/// A frame's place in its device's packet memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameId(pub u32);

/// A frame that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    pub id: FrameId,
    pub checksum: ReceivedChecksum,
    /// How many segments the device merged into this one; 1 if none.
    pub merged: u16,
}

/// What is known of the checksum of a frame's TCP or UDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReceivedChecksum {
    /// Nothing: it has to be verified.
    #[default]
    Unverified,
    /// The device verified it, or the frame never left this machine and has none yet.
    Verified,
    /// It may hold no more than the pseudo header's sum, because the sender is on this machine (veth): such frames
    /// are taken, others are verified.
    MaybePartial,
}

/// What is left to the device for one frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    pub checksum: Option<PartialChecksum>,
    pub segmentation: Option<Segmentation>,
}

/// Where the device has to complete a checksum: it sums from `start` to the end of the frame and stores the result
/// `offset` bytes behind `start`, where the pseudo header's sum lies now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialChecksum {
    /// Bytes from the beginning of the frame.
    pub start: u16,
    pub offset: u16,
}

/// How the device has to cut a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segmentation {
    /// Payload bytes of each piece but the last.
    pub mss: u16,
    /// Bytes before the payload: Ethernet, IP and TCP headers, repeated before each piece.
    pub header_len: u16,
    pub is_ipv6: bool,
}

/// Frames that were received together.
#[derive(Debug)]
pub struct Burst {
    frames: Vec<Received>,
    count_max: usize,
}

impl Burst {
    pub fn new(count_max: usize) -> Self {
        Self {
            frames: Vec::with_capacity(count_max),
            count_max,
        }
    }

    /// How many more frames there is room for.
    pub fn room(&self) -> usize {
        self.count_max - self.frames.len()
    }

    /// Appends a frame; the caller has asked for room.
    pub fn push(&mut self, frame: Received) {
        debug_assert!(
            self.room() > 0,
            "a burst takes no more frames than it has room for"
        );
        self.frames.push(frame);
    }

    pub fn as_slice(&self) -> &[Received] {
        &self.frames
    }

    /// For a device of several parts, whose frames have numbers of their own in each.
    pub fn as_mut_slice(&mut self) -> &mut [Received] {
        &mut self.frames
    }

    pub fn clear(&mut self) {
        self.frames.clear();
    }
}
