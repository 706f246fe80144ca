//! A queue of an interface by AF_XDP: frames lie in memory that is shared with the kernel, and are copied here only if
//! they are longer than a slot.
//!
//! Receiving takes no system call. Sending takes one a turn, or one for every 64 frames, where the kernel copies.

use crate::frames::Frames;
use filling::Filling;
use mill_stack::link::{
    Burst, ExternalBytes, ExternalSent, FrameId, Link, LinkProperties, Offload, Received,
    ReceivedChecksum, Stray,
};
use mill_sys::xsk::{Kicked, Piece, Recovered, Xsk, XskStatistics};
use slots::Slots;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Makes the socket and its memory, in the process that has the privileges.
pub mod setup;

/// How many slots the fill ring holds.
mod filling;

/// The memory of frames to be sent.
mod slots;

/// Counters and faults of a link.
mod report;

pub use report::{XdpCounters, XdpTrouble};

/// The link of one queue.
pub struct XdpLink {
    xsk: Xsk,
    properties: LinkProperties,
    checksum: ReceivedChecksum,
    /// Where each received frame begins in its slot, and its length.
    extents: Box<[Extent]>,
    /// The pieces of a frame whose last one has not arrived, and frames that were assembled of pieces.
    pieces: Vec<Piece>,
    gathered: Frames,
    filling: Filling,
    slots: Slots,
    /// Slots of transmitted frames that are not in the kernel's ring yet.
    unpublished: u32,
    /// After the last flush the kernel had not processed all frames.
    is_waiting: bool,
    counters: XdpCounters,
    on_trouble: Option<Box<dyn FnMut(XdpTrouble) + Send>>,
    told: [bool; 2],
}

/// What a link has to know of its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XdpLinkOptions {
    /// The interface's Ethernet address.
    pub address: [u8; 6],
    /// Bytes of IP packet in a frame.
    pub mtu: u16,
    /// Frames may come from this machine without a checksum (veth, and interfaces on top of one).
    pub peer_may_be_local: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    offset: u16,
    len: u16,
}

impl XdpLink {
    /// A link over a socket that [`setup::socket`] has made with [`setup::xsk_options`] of at least this MTU.
    pub fn new(mut xsk: Xsk, options: XdpLinkOptions) -> Self {
        let senders = xsk.senders();
        let frame_bytes = xsk.frame_bytes();
        let slots = Slots::new(senders.clone(), frame_bytes, options.mtu, |number| {
            xsk.is_ours(number)
        });
        let (vacant, share) = xsk.take_vacant();
        let filling = Filling::new(share, vacant, xsk.receivers());
        let mut link = Self {
            properties: LinkProperties {
                address: options.address,
                mtu: options.mtu,
                completes_checksums: false,
                segment_bytes_max: u32::from(options.mtu),
                cut_bytes_min: 0,
                sends_external: false,
                frames_per_turn: usize::MAX,
            },
            checksum: if options.peer_may_be_local {
                ReceivedChecksum::MaybePartial
            } else {
                ReceivedChecksum::Unverified
            },
            extents: vec![Extent::default(); xsk.receivers() as usize].into_boxed_slice(),
            pieces: Vec::with_capacity(PIECES_MAX),
            gathered: Frames::new(GATHERED, frame_len_max(u16::MAX)),
            filling,
            slots,
            unpublished: 0,
            is_waiting: false,
            counters: XdpCounters::default(),
            on_trouble: None,
            told: [false; 2],
            xsk,
        };
        link.fill();
        link.wake();
        link
    }

    /// Has `on_trouble` called, once for each kind.
    #[must_use]
    pub fn on_trouble(self, on_trouble: impl FnMut(XdpTrouble) + Send + 'static) -> Self {
        Self {
            on_trouble: Some(Box::new(on_trouble)),
            ..self
        }
    }

    pub fn counters(&self) -> XdpCounters {
        self.counters
    }

    /// The kernel's counters; a system call.
    pub fn statistics(&self) -> io::Result<XskStatistics> {
        self.xsk.statistics()
    }

    /// Whether the driver uses the memory directly, without copies.
    pub fn is_zero_copy(&self) -> bool {
        self.xsk.is_zero_copy()
    }

    /// Has a driver without copies process the rings, which it may have stopped to do while the interface was down.
    pub fn wake(&self) {
        self.xsk.wake();
    }

    /// Pieces that wait to be received, slots that wait to be sent, as far as is known, and the total number of slots
    /// for sending.
    pub fn ring_depths(&mut self) -> (u32, u32, u32) {
        let senders = self.xsk.senders();
        (
            self.xsk.waiting(),
            self.xsk.unsent(),
            senders.end - senders.start,
        )
    }

    /// What was recovered from the link that used the socket before.
    pub fn recovered(&self) -> Recovered {
        self.xsk.recovered()
    }

    /// Whether frames wait for the kernel; then the descriptor should also be watched for writability.
    pub fn is_full(&self) -> bool {
        self.is_waiting || self.slots.is_empty()
    }

    /// Whether frames wait for the next flush.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        self.unpublished > 0 || self.is_waiting
    }

    /// Changes the MTU. `false`, without effect, if the slots are too small for it.
    pub fn set_mtu(&mut self, mtu: u16) -> bool {
        let is_possible = frame_len_max(mtu) <= self.slots.bytes();
        if is_possible {
            self.properties.mtu = mtu;
            self.properties.segment_bytes_max = u32::from(mtu);
        }
        is_possible
    }

    /// Length of the longest frame that can be sent.
    pub fn frame_len_max(&self) -> usize {
        frame_len_max(self.properties.mtu)
    }

    /// Leaves the rings in the state in which the next process expects them. No frame may be held.
    pub fn leave(&mut self) {
        self.flush();
        let mut pieces = std::mem::take(&mut self.pieces);
        for piece in pieces.drain(..) {
            self.filling.release(piece.number);
        }
        self.fill();
    }

    /// Whether the piece is as large as a frame's pieces can be.
    #[inline]
    fn is_full_piece(&self, piece: &Piece) -> bool {
        let is_one_of_several = piece.continues || !self.pieces.is_empty();
        is_one_of_several || piece.len >= u32::from(self.properties.mtu)
    }

    /// Accepts a frame of a single piece, or a piece of a longer one.
    fn take(&mut self, piece: Piece) -> Option<FrameId> {
        if piece.continues || !self.pieces.is_empty() {
            return self.gather(piece);
        }
        let extent = self.extents.get_mut(piece.number as usize)?;
        // A slot has 4096 bytes at most, and the kernel's offset is within it.
        extent.offset = u16::try_from(piece.offset).unwrap_or_default();
        extent.len = u16::try_from(piece.len).unwrap_or_default();
        self.counters.received_bytes += u64::from(piece.len);
        Some(FrameId(piece.number))
    }

    /// Adds a piece; the last one completes the frame.
    #[cold]
    fn gather(&mut self, piece: Piece) -> Option<FrameId> {
        // Only a frame beyond the MTU has so many pieces; they are skipped up to the last one.
        if self.pieces.len() < PIECES_MAX {
            self.pieces.push(piece);
        } else {
            self.filling.release(piece.number);
        }
        if piece.continues {
            return None;
        }
        let mut pieces = std::mem::take(&mut self.pieces);
        let (xsk, gathered) = (&mut self.xsk, &mut self.gathered);
        let is_whole = !pieces.last().is_some_and(|last| last.continues);
        let filled = gathered.fill(|place| {
            let mut len = 0;
            for piece in &pieces {
                let from = xsk.part(piece.number, piece.offset as usize, piece.len as usize);
                let from = from.ok_or(())?;
                let to = place
                    .get_mut(len..)
                    .and_then(|rest| rest.get_mut(..from.len()));
                to.ok_or(())?.copy_from_slice(from);
                len += from.len();
            }
            if is_whole { Ok(len) } else { Err(()) }
        });
        for piece in pieces.drain(..) {
            self.filling.release(piece.number);
        }
        self.pieces = pieces;
        let Some(Ok(FrameId(number))) = filled else {
            self.counters.dropped += 1;
            return None;
        };
        let id = FrameId(number + self.first_gathered());
        self.counters.gathered += 1;
        self.counters.received_bytes += self.gathered.frame(FrameId(number)).len() as u64;
        Some(id)
    }

    /// The number of segments that a frame stands for: one in driver mode, perhaps more in generic mode.
    #[inline]
    fn merged(&self, id: FrameId) -> u16 {
        if id.0 < self.first_gathered() {
            return 1;
        }
        let len = self.gathered.len(FrameId(id.0 - self.first_gathered()));
        let longest = frame_len_max(self.properties.mtu);
        u16::try_from(len.div_ceil(longest)).unwrap_or(1)
    }

    /// The ids of assembled frames follow those of the receive slots.
    fn first_gathered(&self) -> u32 {
        self.xsk.receivers()
    }

    /// Fills the fill ring up to its target, and releases what was received.
    fn fill(&mut self) {
        if let Some(filled) = self.xsk.filled_by_all() {
            self.filling.set_filled(filled);
        }
        while let Some(number) = self.filling.next() {
            self.xsk.fill(number);
        }
        self.xsk.publish_received();
    }

    /// Takes back the slots of frames that were sent.
    fn complete(&mut self) {
        while let Some(number) = self.xsk.complete() {
            self.slots.complete(number);
        }
    }

    /// Has the kernel send until it makes no more progress: before Linux 6.17 a call sends 32 pieces.
    fn send(&mut self) {
        loop {
            match self.xsk.kick() {
                Kicked::All => {
                    self.counters.kicks += 1;
                    return;
                }
                Kicked::Some { took } => {
                    self.counters.kicks += 1;
                    if took == 0 {
                        self.counters.waited += 1;
                        return;
                    }
                }
                Kicked::Lost { took } => {
                    self.counters.kicks += 1;
                    self.counters.lost += 1;
                    if took == 0 {
                        return;
                    }
                }
                Kicked::Ignored => {
                    self.counters.waited += 1;
                    return self.tell(XdpTrouble::QueueSendsNothing);
                }
                Kicked::Refused { errno } => {
                    self.counters.refused += 1;
                    if errno == ENXIO {
                        self.tell(XdpTrouble::DeviceGone);
                    }
                    return;
                }
            }
        }
    }

    fn tell(&mut self, trouble: XdpTrouble) {
        let told = match trouble {
            XdpTrouble::DeviceGone => &mut self.told[0],
            XdpTrouble::QueueSendsNothing => &mut self.told[1],
        };
        if !std::mem::replace(told, true)
            && let Some(on_trouble) = &mut self.on_trouble
        {
            on_trouble(trouble);
        }
    }
}

impl Link for XdpLink {
    fn properties(&self) -> &LinkProperties {
        &self.properties
    }

    fn receive(&mut self, burst: &mut Burst) {
        let mut taken = 0;
        while burst.room() > 0 {
            let Some(piece) = self.xsk.receive() else {
                break;
            };
            taken += 1;
            let is_full = self.is_full_piece(&piece);
            self.filling.taken(is_full);
            if let Some(id) = self.take(piece) {
                self.counters.received += 1;
                let merged = self.merged(id);
                burst.push(Received {
                    id,
                    checksum: self.checksum,
                    merged,
                });
            }
        }
        self.filling.note_waited(taken + self.xsk.waiting());
        self.fill();
    }

    fn frame(&mut self, id: FrameId) -> &mut [u8] {
        match self.extents.get(id.0 as usize) {
            Some(Extent { offset, len }) => {
                let bytes = self.xsk.part(id.0, (*offset).into(), (*len).into());
                debug_assert!(bytes.is_some(), "{id:?} is not held");
                bytes.unwrap_or_default()
            }
            None => self.gathered.frame(FrameId(id.0 - self.first_gathered())),
        }
    }

    fn release(&mut self, id: FrameId) {
        if (id.0 as usize) < self.extents.len() {
            self.filling.release(id.0);
        } else {
            self.gathered.release(FrameId(id.0 - self.first_gathered()));
        }
    }

    fn reserve(&mut self, len_max: usize) -> Option<&mut [u8]> {
        if self.slots.is_empty() {
            self.complete();
            if self.slots.is_empty() {
                // All slots are queued: after a flush the kernel may return some.
                self.flush();
                self.complete();
            }
        }
        let slot = self.slots.first()?;
        let room = self.xsk.run(slot, self.slots.pieces())?.get_mut(..len_max);
        debug_assert!(room.is_some(), "no frame is {len_max} bytes long");
        room
    }

    fn transmit(&mut self, len: usize, offload: Offload) {
        debug_assert_eq!(offload, Offload::default(), "AF_XDP offloads nothing");
        let frame_bytes = self.xsk.frame_bytes();
        let Some(slot) = self.slots.take(len) else {
            debug_assert!(false, "{len} bytes were not reserved");
            return;
        };
        let mut left = len;
        self.unpublished += slot.end - slot.start;
        for number in slot {
            let piece = left.min(frame_bytes);
            left -= piece;
            let piece = u32::try_from(piece).unwrap_or_default();
            self.xsk.transmit(number, piece, left > 0);
        }
        self.counters.transmitted += 1;
        self.counters.transmitted_bytes += len as u64;
        if self.unpublished >= UNPUBLISHED_MAX {
            self.flush();
        }
    }

    fn transmit_external(&mut self, _: usize, _: Offload, _: ExternalBytes<'_>) -> ExternalSent {
        ExternalSent::Unable
    }

    fn flush(&mut self) -> bool {
        if self.unpublished > 0 {
            self.unpublished = 0;
            self.xsk.publish_transmit();
        }
        if self.xsk.unsent() > 0 {
            self.send();
            // Where the kernel copies, most frames are complete now, and their memory is still in the processor's
            // cache.
            self.complete();
        }
        // A driver without copies sends soon after the call, and goes on by itself when its own ring was full.
        self.is_waiting = !self.xsk.is_zero_copy() && self.xsk.unsent() > 0;
        self.is_waiting
    }

    fn hand_over(&mut self, _frame: &Received, _stray: &Stray<'_>) -> bool {
        false
    }
}

impl AsFd for XdpLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.xsk.as_fd()
    }
}

impl std::fmt::Debug for XdpLink {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("XdpLink")
            .field("properties", &self.properties)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

/// Length of the longest frame: an Ethernet header with two VLAN tags, and the packet.
fn frame_len_max(mtu: u16) -> usize {
    22 + usize::from(mtu)
}

/// "No such device or address" (asm-generic/errno-base.h): the socket's interface was deleted.
const ENXIO: i32 = 6;

/// Pieces of one frame: enough for the longest packet in slots of 4096 bytes with headroom; the kernel makes no more
/// (MAX_SKB_FRAGS and one).
const PIECES_MAX: usize = 18;

/// Slots whose frames wait for a system call together: few enough that their bytes are still in the processor's nearer
/// caches when the kernel copies them and when they are written again, and enough that the call costs little for each.
const UNPUBLISHED_MAX: u32 = 64;

/// Frames of several pieces received and not released yet: two bursts.
const GATHERED: u32 = 128;

#[cfg(test)]
mod tests;
