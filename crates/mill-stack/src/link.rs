//! What carries frames, seen from above.

use crate::config::{Prefix, Route};
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use core::ops::RangeInclusive;
use mill_wire::protocol::Protocol;

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

    /// Everything of this turn has been transmitted.
    fn flush(&mut self);

    /// Frames of an earlier flush are still to be sent, and nothing tells when that goes on: another flush tries it.
    fn is_behind(&self) -> bool {
        false
    }

    /// From now on frames for this address and port are wanted, or no longer, but for those of connections that are there
    /// until [`Self::forget`]. Of interest to a device that brings nothing else; an unspecified address stands for all that
    /// the host has.
    fn serve(&mut self, _service: Service, _on: bool) {}

    /// Of the connections that were there when this was served no longer none is left.
    fn forget(&mut self, _service: Service) {}

    /// Connections are about to be opened from these ports: frames for them are wanted from now on. Of interest to the
    /// same devices.
    fn open_ports(&mut self, _ports: RangeInclusive<u16>) {}

    /// Whether frames from this peer to this port of ours come here, as far as that is known: of several links that share
    /// a device each has flows of its own. Who opens a connection chooses its port by it.
    fn brings(&self, _remote: SocketAddr, _local_port: u16) -> bool {
        true
    }

    /// Somebody waits for a neighbour's Ethernet address, which a host does not find out itself whose neighbours are
    /// the kernel's (`Neighboring::Kernel`). The answer is a change.
    fn resolve(&mut self, _address: IpAddr) {}

    /// Somebody else may know what to do with a received frame whose segment this host has no connection or listener for:
    /// then he gets a copy of it, and answers for it. `false` if there is nobody, or no room to him.
    fn hand_over(&mut self, _frame: &Received) -> bool {
        false
    }

    /// Frames that a turn takes at most; a call of `receive` that gave so many has perhaps left some. Less than there is where
    /// the other end works on what a turn has answered while the next turn goes on.
    fn frames_per_turn(&self) -> usize {
        usize::MAX
    }

    /// Appends what has changed around the device since the last call. Called each turn: cheap while nothing has.
    fn take_changes(&mut self, _into: &mut Vec<LinkChange>) {}
}

/// Frames that a host holds for its readers at once, until the turn ends; beyond, it copies their bytes and gives them
/// back. Every device has more, so that it goes on receiving within a turn.
pub const FRAMES_HELD_MAX: u32 = 96;

/// Where somebody listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Service {
    pub address: SocketAddr,
    pub protocol: Protocol,
}

/// What can change around a device while a host uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkChange {
    /// All addresses that there are now.
    Addresses(Vec<Prefix>),
    /// All routes that there are now.
    Routes(Vec<Route>),
    /// All prefixes that other links lead to, so that shorter ones do not reach them over this link.
    Elsewhere(Vec<Prefix>),
    /// Bytes of IP packet in a frame on the wire.
    Mtu(u16),
    /// The Ethernet address of our own end.
    OwnMac([u8; 6]),
    /// A neighbour, and its Ethernet address if it has one.
    Neighbor {
        address: IpAddr,
        mac: Option<[u8; 6]>,
    },
    /// Who was at the other end of a link of two is gone, with all that it knew of connections.
    PeerGone,
    /// There is somebody at the other end.
    PeerThere,
}

/// What a device is and can do; constant while the host uses it, but for what a [`LinkChange`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkProperties {
    /// Ethernet address.
    pub address: [u8; 6],
    /// Bytes of IP packet in a frame on the wire.
    pub mtu: u16,
    /// The device completes checksums of TCP and UDP whose field holds the pseudo header's sum.
    pub completes_checksums: bool,
    /// Bytes of the largest IP packet that the device takes and cuts into segments itself; `mtu` if it does not.
    pub segment_bytes_max: u32,
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
