//! The second way out of an interface: segments that its device cuts.
//!
//! AF_XDP takes frames of the MTU. A packet socket takes segments of TCP of 64 KiB with a header that leaves cutting and checksum to the
//! device, which a card does itself, and which between two interfaces of one machine (veth) nothing does: the receiver takes them whole.
//! If the device stops doing that (ethtool -K, or a program at the other end of a veth pair), the kernel cuts them. So what is longer than
//! some frames leaves by this way. Frames that were sent before leave before: [`crate::queues`] sees to that.

use crate::af_xdp::XdpCounters;
use crate::vnet::VnetHeader;
use mill_stack::link::{ExternalBytes, ExternalSent, Offload};
use mill_sys::file;
use mill_sys::packet::{self, VNET_HEADER_LEN};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, OwnedFd};

/// A packet socket, and the segment that is being written.
#[derive(Debug)]
pub(crate) struct Outlet {
    socket: OwnedFd,
    room: Box<[u8]>,
    header: [u8; VNET_HEADER_LEN],
    /// Bytes of the segment in `room` for which the device had no room.
    waiting: Option<usize>,
    counters: XdpCounters,
}

impl Outlet {
    /// Over a socket of [`packet::create`].
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            room: vec![0; FRAME_BYTES_MAX].into_boxed_slice(),
            header: [0; VNET_HEADER_LEN],
            waiting: None,
            counters: XdpCounters::default(),
        }
    }

    /// What it has sent, as frames of the link.
    pub(crate) fn counters(&self) -> XdpCounters {
        self.counters
    }

    /// Whether a segment waits for room; nothing may be sent before it.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Room for a segment. None may wait.
    pub(crate) fn reserve(&mut self, len_max: usize) -> Option<&mut [u8]> {
        debug_assert!(!self.is_waiting());
        let room = self.room.get_mut(..len_max);
        debug_assert!(room.is_some(), "no frame is {len_max} bytes long");
        room
    }

    /// Sends the first `len` bytes of the room.
    pub(crate) fn transmit(&mut self, len: usize, offload: Offload) {
        let frame = self.room.get(..len).unwrap_or_default();
        self.header = VnetHeader::of_transmitted(frame, offload).emit();
        if !self.send(len) {
            self.counters.waited += 1;
            self.waiting = Some(len);
        }
    }

    /// Sends the segment that waits, if there is one.
    pub(crate) fn flush(&mut self) {
        if let Some(len) = self.waiting
            && self.send(len)
        {
            self.waiting = None;
        }
    }

    /// Whether it has left, or was refused for good.
    fn send(&mut self, len: usize) -> bool {
        let frame = self.room.get(..len).unwrap_or_default();
        let pieces = [IoSlice::new(&self.header), IoSlice::new(frame)];
        let sent = packet::send(self.socket.as_fd(), &pieces);
        self.count(sent, len) != ExternalSent::Full
    }

    /// Sends the first `len` bytes of the room, and the payload from where it lies. What has no room does not wait here: its bytes may
    /// not be copied.
    pub(crate) fn transmit_external(
        &mut self,
        len: usize,
        offload: Offload,
        payload: ExternalBytes<'_>,
    ) -> ExternalSent {
        let head = self.room.get(..len).unwrap_or_default();
        self.header = VnetHeader::of_transmitted(head, offload).emit();
        let pieces = [IoSlice::new(&self.header), IoSlice::new(head)];
        let place = (payload.address(), payload.len());
        let sent = file::write_mapped(self.socket.as_fd(), pieces, place);
        let is_sent = self.count(sent, len + payload.len());
        self.counters.waited += u64::from(is_sent == ExternalSent::Full);
        is_sent
    }

    /// Counts a segment of `len` bytes, and says what became of it.
    fn count(&mut self, sent: io::Result<()>, len: usize) -> ExternalSent {
        let Err(error) = sent else {
            self.counters.transmitted += 1;
            self.counters.segments += 1;
            self.counters.transmitted_bytes += len as u64;
            return ExternalSent::Yes;
        };
        match (error.kind(), error.raw_os_error()) {
            (io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted, _) => ExternalSent::Full,
            (_, Some(EFAULT)) => ExternalSent::Vanished,
            (_, Some(ENOBUFS)) => {
                self.counters.lost += 1;
                ExternalSent::Yes
            }
            _ => {
                self.counters.refused += 1;
                ExternalSent::Yes
            }
        }
    }
}

/// Bytes of the longest IP packet that leaves by this way.
pub(crate) const SEGMENT_BYTES_MAX: u32 = 65535;

/// Bytes of payload from which on a segment leaves by this way: fewer are cheaper as frames.
pub(crate) const CUT_BYTES_MIN: u32 = 2 * 1448 + 1;

/// An Ethernet header with two VLAN tags, and the packet.
const FRAME_BYTES_MAX: usize = 22 + SEGMENT_BYTES_MAX as usize;

/// "No buffer space available" (asm-generic/errno.h): the device's queue was full, and the kernel has dropped the segment.
const ENOBUFS: i32 = 105;

/// "Bad address": a mapped file has become shorter.
const EFAULT: i32 = 14;
