//! A TAP device: a frame is a read or a write, up to 64 KiB long.
//!
//! The interface's other end is a descriptor. Frames from this machine arrive with partial checksums and unsegmented,
//! and frames to it may be so too, so that one system call carries up to 44 segments of 1500 bytes.

use crate::frames::Frames;
use crate::vnet::VnetHeader;
use mill_stack::link::{
    Burst, ExternalBytes, ExternalSent, FRAMES_HELD_MAX, FrameId, Link, LinkProperties, Offload,
    Received, Stray,
};
use mill_sys::file;
use mill_sys::tap::{self, VNET_HEADER_LEN};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The link of a TAP device.
pub struct TapLink {
    device: OwnedFd,
    properties: LinkProperties,
    frames: Frames,
    /// The next frame to be sent, after its header.
    room: Box<[u8]>,
    /// Frames with their headers for which the kernel had no room, in order.
    waiting: VecDeque<Vec<u8>>,
    /// Buffers of such frames, for reuse.
    spare: Vec<Vec<u8>>,
    counters: TapCounters,
    /// The interface was deleted.
    is_gone: bool,
    /// Called once, when the interface is deleted.
    on_gone: Option<Box<dyn FnOnce() + Send>>,
}

/// Counters of frames, not segments: a frame may stand for many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TapCounters {
    pub received: u64,
    pub received_bytes: u64,
    pub transmitted: u64,
    pub transmitted_bytes: u64,
    /// Times that the kernel had no room and a frame had to wait.
    pub waited: u64,
    /// Frames that the kernel refused: the interface is down, or a header is invalid.
    pub refused: u64,
}

impl TapLink {
    /// The link of a TAP device's descriptor. `segments` says whether the device segments frames and completes
    /// checksums.
    pub fn new(device: OwnedFd, address: [u8; 6], mtu: u16, segments: bool) -> Self {
        Self {
            device,
            properties: Self::properties_of(address, mtu, segments),
            frames: Frames::new(FRAMES, PLACE_BYTES),
            room: vec![0; PLACE_BYTES].into_boxed_slice(),
            waiting: VecDeque::new(),
            spare: Vec::new(),
            counters: TapCounters::default(),
            is_gone: false,
            on_gone: None,
        }
    }

    /// The properties of such a link.
    pub(crate) fn properties_of(address: [u8; 6], mtu: u16, segments: bool) -> LinkProperties {
        LinkProperties {
            address,
            mtu,
            completes_checksums: segments,
            segment_bytes_max: if segments {
                SEGMENT_BYTES_MAX
            } else {
                u32::from(mtu)
            },
            cut_bytes_min: 0,
            sends_external: segments,
            frames_per_turn: usize::MAX,
        }
    }

    /// Has `on_gone` called once, when the interface is deleted and no frames pass any more.
    #[must_use]
    pub fn on_gone(self, on_gone: impl FnOnce() + Send + 'static) -> Self {
        Self {
            on_gone: Some(Box::new(on_gone)),
            ..self
        }
    }

    /// Whether the interface was deleted: the descriptor is readable from then on, and no frames come.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone
    }

    pub fn counters(&self) -> TapCounters {
        self.counters
    }

    /// Whether frames wait for the kernel; then the descriptor should also be watched for writability.
    pub fn is_full(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Writes the waiting frames in order, until the kernel has no room again.
    fn write_waiting(&mut self) {
        while let Some(frame) = self.waiting.pop_front() {
            if let Wrote::Full = self.write(&frame) {
                self.waiting.push_front(frame);
                return;
            }
            self.spare.push(frame);
        }
    }

    fn write(&mut self, frame: &[u8]) -> Wrote {
        loop {
            let wrote = tap::write(self.device.as_fd(), frame);
            let is_interrupted = |error: &io::Error| error.kind() == io::ErrorKind::Interrupted;
            if !wrote.as_ref().is_err_and(is_interrupted) {
                return self.count(wrote, frame.len() - VNET_HEADER_LEN);
            }
        }
    }

    /// Counts a frame of `len` bytes, and says what became of it.
    fn count(&mut self, wrote: io::Result<()>, len: usize) -> Wrote {
        match wrote {
            Ok(()) => {
                self.counters.transmitted += 1;
                self.counters.transmitted_bytes += len as u64;
                Wrote::Done
            }
            Err(error) => match (error.kind(), error.raw_os_error()) {
                (io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted, _) => Wrote::Full,
                (_, Some(EFAULT)) => Wrote::Vanished,
                _ => {
                    self.counters.refused += 1;
                    Wrote::Done
                }
            },
        }
    }

    fn queue(&mut self, end: usize) {
        self.counters.waited += 1;
        let mut frame = self.spare.pop().unwrap_or_default();
        frame.clear();
        frame.extend_from_slice(self.room.get(..end).unwrap_or_default());
        self.waiting.push_back(frame);
        debug_assert!(self.waiting.len() <= WAITING_MAX);
    }
}

/// The result of a write.
enum Wrote {
    /// The frame was sent, or dropped.
    Done,
    Full,
    /// What was to be sent lies in a mapped file that has become shorter.
    Vanished,
}

impl Link for TapLink {
    fn properties(&self) -> &LinkProperties {
        &self.properties
    }

    fn receive(&mut self, burst: &mut Burst) {
        while burst.room() > 0 {
            let device = self.device.as_fd();
            let filled = self.frames.fill(|place| read(device, place));
            let id = match filled {
                Some(Ok(id)) => id,
                Some(Err(NoFrame::Gone)) => {
                    self.is_gone = true;
                    if let Some(on_gone) = self.on_gone.take() {
                        on_gone();
                    }
                    return;
                }
                Some(Err(NoFrame::Now)) | None => return,
            };
            let place = self.frames.frame(id);
            let Some((header, frame)) = place.split_first_chunk() else {
                return self.frames.release(id);
            };
            let header = VnetHeader::parse(header);
            self.counters.received += 1;
            self.counters.received_bytes += frame.len() as u64;
            burst.push(Received {
                id,
                checksum: header.checksum(),
                merged: header.merged(frame),
            });
        }
    }

    fn frame(&mut self, id: FrameId) -> &mut [u8] {
        let place = self.frames.frame(id);
        place.get_mut(VNET_HEADER_LEN..).unwrap_or_default()
    }

    fn release(&mut self, id: FrameId) {
        self.frames.release(id);
    }

    fn hand_over(&mut self, _frame: &Received, _stray: &Stray<'_>) -> bool {
        false
    }

    fn reserve(&mut self, len_max: usize) -> Option<&mut [u8]> {
        if self.waiting.len() >= WAITING_MAX {
            self.write_waiting();
            if self.waiting.len() >= WAITING_MAX {
                return None;
            }
        }
        let room = self.room.get_mut(VNET_HEADER_LEN..)?.get_mut(..len_max);
        debug_assert!(room.is_some(), "no frame is {len_max} bytes long");
        room
    }

    /// Writes at once: the frame is in the processor's cache now, and each costs a system call anyway.
    fn transmit(&mut self, len: usize, offload: Offload) {
        let end = VNET_HEADER_LEN + len;
        let Some((header, frame)) = self
            .room
            .get_mut(..end)
            .and_then(<[u8]>::split_first_chunk_mut::<VNET_HEADER_LEN>)
        else {
            debug_assert!(false, "no frame is {len} bytes long");
            return;
        };
        *header = VnetHeader::of_transmitted(frame, offload).emit();
        if !self.waiting.is_empty() {
            return self.queue(end);
        }
        let room = std::mem::take(&mut self.room);
        let wrote = self.write(room.get(..end).unwrap_or_default());
        self.room = room;
        if let Wrote::Full = wrote {
            self.queue(end);
        }
    }

    fn transmit_external(
        &mut self,
        len: usize,
        offload: Offload,
        payload: ExternalBytes<'_>,
    ) -> ExternalSent {
        self.write_waiting();
        let end = VNET_HEADER_LEN + len;
        let head = self.room.get_mut(..end);
        let Some((header, frame)) = head
            .filter(|_| self.waiting.is_empty())
            .and_then(<[u8]>::split_first_chunk_mut::<VNET_HEADER_LEN>)
        else {
            return ExternalSent::Full;
        };
        *header = VnetHeader::of_transmitted(frame, offload).emit();
        let pieces = [IoSlice::new(header), IoSlice::new(frame)];
        let place = (payload.address(), payload.len());
        let wrote = file::write_mapped(self.device.as_fd(), pieces, place);
        match self.count(wrote, len + payload.len()) {
            Wrote::Done => ExternalSent::Yes,
            Wrote::Full => ExternalSent::Full,
            Wrote::Vanished => ExternalSent::Vanished,
        }
    }

    /// Frames that wait are written again by each turn that has something to send.
    fn flush(&mut self) -> bool {
        self.write_waiting();
        false
    }
}

impl AsFd for TapLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// Reads one frame with its header.
fn read(device: BorrowedFd<'_>, place: &mut [u8]) -> Result<usize, NoFrame> {
    loop {
        match tap::read(device, place) {
            Ok(len) if len > VNET_HEADER_LEN => return Ok(len),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.raw_os_error() == Some(EBADFD) => return Err(NoFrame::Gone),
            Ok(_) | Err(_) => return Err(NoFrame::Now),
        }
    }
}

#[derive(Debug)]
enum NoFrame {
    /// No frame waits, or the interface is down, which the next poll shows again.
    Now,
    /// The interface was deleted.
    Gone,
}

impl std::fmt::Debug for TapLink {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("TapLink")
            .field("device", &self.device)
            .field("properties", &self.properties)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

/// "Bad address" (asm-generic/errno.h): a mapped file has become shorter.
const EFAULT: i32 = 14;

/// "File descriptor in bad state" (asm-generic/errno.h): a TAP descriptor without its interface.
const EBADFD: i32 = 77;

/// Bytes of the largest IP packet: the limit of its length field (RFC 791 3.1).
const SEGMENT_BYTES_MAX: u32 = 65535;

/// Bytes of a slot: the header, an Ethernet header with two tags, an IP packet of 64 KiB; rounded up to full cache
/// lines.
const PLACE_BYTES: usize = (VNET_HEADER_LEN + 22 + 65536_usize).next_multiple_of(64);

/// Frames received and not released yet: two bursts. 8 MiB when all of them have the maximum size.
const FRAMES: u32 = 128;

const _: () = assert!(FRAMES > FRAMES_HELD_MAX);

/// Frames that wait for the kernel before the device counts as full. 1 MiB when all have the maximum size.
const WAITING_MAX: usize = 16;

#[cfg(test)]
mod tests;
