//! A port of DPDK in this process: one of its queue pairs, whose frames lie in DPDK's memory.
//!
//! Frames are taken and given by polling alone. A frame of the wire is written where the card reads it; a long segment is put together
//! elsewhere, and copied into a chain of packets, which the card cuts.

/// Frames that are with the host.
mod held;

/// Which long segments a driver cuts.
mod cutting;

/// What a driver is asked to do with a frame.
mod work;

use crate::segment;
use cutting::Cutting;
use held::Held;
use mill_stack::link::{
    Burst, ExternalBytes, ExternalSent, FRAMES_HELD_MAX, FrameId, Link, LinkProperties, Offload,
    Received, ReceivedChecksum, Stray,
};
use mill_sys::dpdk::packet::{self, Checksum, Packet};
use mill_sys::dpdk::port::Port;
use mill_sys::dpdk::queue_pair::QueuePair;
use std::collections::VecDeque;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The link of one worker.
pub struct DpdkLink {
    // Packets before the queues: they go back to a pool that is there.
    held: Held,
    /// Received, and not yet asked for.
    arrived: VecDeque<Packet>,
    /// Released, and not yet given back.
    released: Vec<Packet>,
    /// To be sent, in order.
    waiting: Vec<Packet>,
    /// The next frame to be sent, if it is one of the wire.
    reserved: Option<Packet>,
    /// Packets for the next long segment.
    pieces: Vec<Packet>,
    /// The next long segment; empty if the card cuts none.
    room: Box<[u8]>,
    is_long: bool,
    cutting: Cutting,
    /// A segment that is cut here, and a piece of it.
    whole: Vec<u8>,
    piece: Vec<u8>,
    /// Times in a row that the driver has taken none of the frames that wait.
    stuck: u32,
    queues: QueuePair,
    properties: LinkProperties,
    /// Never readable: nothing tells when frames come.
    silence: OwnedFd,
    counters: DpdkCounters,
    watch: Option<LinkWatch>,
}

/// Counters of frames that this worker's queues have carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DpdkCounters {
    pub received: u64,
    pub received_bytes: u64,
    /// Frames whose checksum the card has found right, and wrong.
    pub verified: u64,
    pub bad: u64,
    pub transmitted: u64,
    pub transmitted_bytes: u64,
    /// Segments that the card has cut, and those that were cut here, since its driver does not cut such ones.
    pub segments: u64,
    pub cut_here: u64,
    /// Times that the queue had no room and frames had to wait.
    pub waited: u64,
    /// Frames that the driver could not send, or has not taken for long.
    pub refused: u64,
    /// Frames that there was no memory for.
    pub no_memory: u64,
}

/// Looks at the link's state from time to time.
struct LinkWatch {
    is_up: bool,
    turns_left: u32,
    on_change: Box<dyn FnMut(bool) + Send>,
}

impl DpdkLink {
    /// The link of a queue pair. `address` is the stack's.
    pub(crate) fn new(queues: QueuePair, address: [u8; 6], silence: OwnedFd) -> Self {
        let settings = *queues.port().settings();
        let offloads = settings.offloads;
        let longest = match offloads.cuts {
            true => SEGMENT_BYTES_MAX,
            false => u32::from(settings.mtu),
        };
        let room = if offloads.cuts { ROOM_BYTES } else { 0 };
        Self {
            held: Held::default(),
            arrived: VecDeque::new(),
            released: Vec::with_capacity(RELEASED),
            waiting: Vec::with_capacity(WAITING_MAX),
            reserved: None,
            pieces: Vec::new(),
            room: vec![0; room].into_boxed_slice(),
            is_long: false,
            cutting: Cutting::of(&queues.port().info().driver, settings.mtu),
            whole: Vec::new(),
            piece: Vec::new(),
            stuck: 0,
            queues,
            properties: LinkProperties {
                address,
                mtu: settings.mtu,
                completes_checksums: offloads.completes,
                segment_bytes_max: longest,
                cut_bytes_min: 0,
                sends_external: offloads.cuts,
                frames_per_turn: usize::MAX,
            },
            silence,
            counters: DpdkCounters::default(),
            watch: None,
        }
    }

    /// Has `on_change` called when the port's link goes down or comes up.
    #[must_use]
    pub(crate) fn on_link_change(mut self, on_change: impl FnMut(bool) + Send + 'static) -> Self {
        self.watch = Some(LinkWatch {
            is_up: true,
            turns_left: 0,
            on_change: Box::new(on_change),
        });
        self
    }

    pub fn counters(&self) -> DpdkCounters {
        self.counters
    }

    /// The port, which all workers have.
    pub fn port(&self) -> &Port {
        self.queues.port()
    }

    /// Looks at the link's state, if it is time.
    pub(crate) fn look_at_link(&mut self) {
        let Some(watch) = &mut self.watch else { return };
        if let Some(left) = watch.turns_left.checked_sub(1) {
            watch.turns_left = left;
            return;
        }
        watch.turns_left = TURNS_BETWEEN;
        if let Some(is_up) = self.queues.port().is_up()
            && is_up != watch.is_up
        {
            watch.is_up = is_up;
            (watch.on_change)(is_up);
        }
    }

    /// Sends what waits, as far as there is room.
    fn send(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let sent = self.queues.send(&mut self.waiting);
        self.counters.transmitted += sent.count as u64;
        self.counters.refused += sent.refused as u64;
        if self.waiting.is_empty() {
            return;
        }
        self.counters.waited += 1;
        self.stuck = if sent.count == 0 { self.stuck + 1 } else { 0 };
        if self.stuck >= STUCK_MAX {
            // A full queue, or a frame that the driver never takes: its connection sends it again.
            drop(self.waiting.remove(0));
            self.counters.refused += 1;
            self.stuck = 0;
        }
    }

    fn put(&mut self, packet: Packet) {
        self.counters.transmitted_bytes += packet.total_len() as u64;
        self.waiting.push(packet);
        if self.waiting.len().is_multiple_of(SENT_AT_ONCE) {
            self.send();
        }
    }

    /// Takes as many packets as a frame of this length needs; false if there are not enough.
    fn gather_pieces(&mut self, len: usize) -> bool {
        let each = usize::from(self.queues.port().settings().room_bytes);
        while self.pieces.len() < len.div_ceil(each.max(1)) {
            match self.queues.packet() {
                Some(packet) => self.pieces.push(packet),
                None => return false,
            }
        }
        true
    }

    /// Sends a long segment whose headers are in the first of `parts`.
    fn transmit_long(&mut self, parts: [&[u8]; 2], offload: Offload) {
        let len = parts[0].len() + parts[1].len();
        match self.cutting.fitting(len, offload) {
            Some(offload) => self.transmit_chained(parts, offload),
            None => {
                let mut whole = std::mem::take(&mut self.whole);
                whole.clear();
                parts.iter().for_each(|part| whole.extend_from_slice(part));
                self.transmit_cut(&whole, offload);
                self.whole = whole;
            }
        }
    }

    /// Cuts a long segment as the device would.
    fn transmit_cut(&mut self, frame: &[u8], offload: Offload) {
        let (Some(checksum), Some(segmentation)) = (offload.checksum, offload.segmentation) else {
            return;
        };
        self.counters.cut_here += 1;
        let mut piece = std::mem::take(&mut self.piece);
        segment::cut(frame, checksum, segmentation, &mut piece, |bytes| {
            let packet = self.pieces.pop().or_else(|| self.queues.packet());
            let Some(mut packet) = packet else {
                self.counters.no_memory += 1;
                return;
            };
            if let Some(room) = packet.room_mut().get_mut(..bytes.len()) {
                room.copy_from_slice(bytes);
                packet.set_len(bytes.len());
                self.put(packet);
            }
        });
        self.piece = piece;
    }

    /// Sends a long segment in as many packets as it needs, for the driver to cut.
    fn transmit_chained(&mut self, parts: [&[u8]; 2], offload: Offload) {
        let mut left = parts.into_iter();
        let mut part: &[u8] = left.next().unwrap_or_default();
        let mut used = 0;
        for piece in &mut self.pieces {
            let room = piece.room_mut();
            let mut filled = 0;
            while filled < room.len() {
                if part.is_empty() {
                    match left.next() {
                        Some(next) => part = next,
                        None => break,
                    }
                    continue;
                }
                let count = part.len().min(room.len() - filled);
                let (now, later) = part.split_at(count);
                if let Some(place) = room.get_mut(filled..filled + count) {
                    place.copy_from_slice(now);
                }
                (part, filled) = (later, filled + count);
            }
            if filled == 0 {
                break;
            }
            piece.set_len(filled);
            used += 1;
        }
        let Some(mut packet) = Packet::chained(self.pieces.drain(..used)) else {
            return;
        };
        let len = packet.total_len();
        work::put(&mut packet, len, offload);
        self.counters.segments += u64::from(offload.segmentation.is_some());
        self.put(packet);
    }
}

impl Link for DpdkLink {
    fn properties(&self) -> &LinkProperties {
        &self.properties
    }

    fn receive(&mut self, burst: &mut Burst) {
        while burst.room() > 0 {
            if self.arrived.is_empty() && self.queues.receive(&mut self.arrived) == 0 {
                return;
            }
            let Some(packet) = self.arrived.pop_front() else {
                return;
            };
            self.counters.received += 1;
            self.counters.received_bytes += packet.total_len() as u64;
            let checksum = match packet.checksum() {
                Checksum::Good | Checksum::Absent => {
                    self.counters.verified += 1;
                    ReceivedChecksum::Verified
                }
                // What a card finds wrong is looked at again, and counted by the host.
                Checksum::Bad => {
                    self.counters.bad += 1;
                    ReceivedChecksum::Unverified
                }
                Checksum::Unknown => ReceivedChecksum::Unverified,
            };
            burst.push(Received {
                id: self.held.put(packet),
                checksum,
                merged: 1,
            });
        }
    }

    fn frame(&mut self, id: FrameId) -> &mut [u8] {
        self.held.frame(id)
    }

    fn release(&mut self, id: FrameId) {
        self.released.extend(self.held.take(id));
        if self.released.len() >= RELEASED {
            packet::release(&mut self.released);
        }
    }

    fn hand_over(&mut self, _frame: &Received, _stray: &Stray<'_>) -> bool {
        false
    }

    fn reserve(&mut self, len_max: usize) -> Option<&mut [u8]> {
        if self.waiting.len() >= WAITING_MAX {
            self.send();
            if self.waiting.len() >= WAITING_MAX {
                return None;
            }
        }
        self.is_long = len_max > usize::from(self.queues.port().settings().room_bytes);
        if self.is_long {
            return match self.gather_pieces(len_max) {
                true => self.room.get_mut(..len_max),
                false => None,
            };
        }
        if self.reserved.is_none() {
            self.reserved = self.queues.packet();
        }
        self.reserved.as_mut()?.room_mut().get_mut(..len_max)
    }

    fn transmit(&mut self, len: usize, offload: Offload) {
        if self.is_long {
            let room = std::mem::take(&mut self.room);
            self.transmit_long([room.get(..len).unwrap_or_default(), &[]], offload);
            self.room = room;
            return;
        }
        let Some(mut packet) = self.reserved.take() else {
            debug_assert!(false, "no room was reserved");
            return;
        };
        packet.set_len(len);
        work::put(&mut packet, len, offload);
        self.counters.segments += u64::from(offload.segmentation.is_some());
        self.put(packet);
    }

    /// Copies the payload once, into the card's packets.
    fn transmit_external(
        &mut self,
        len: usize,
        offload: Offload,
        payload: ExternalBytes<'_>,
    ) -> ExternalSent {
        let (true, Some(payload)) = (self.is_long, payload.as_slice()) else {
            return ExternalSent::Unable;
        };
        let room = std::mem::take(&mut self.room);
        self.transmit_long([room.get(..len).unwrap_or_default(), payload], offload);
        self.room = room;
        ExternalSent::Yes
    }

    fn flush(&mut self) -> bool {
        self.send();
        packet::release(&mut self.released);
        !self.waiting.is_empty()
    }
}

impl AsFd for DpdkLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.silence.as_fd()
    }
}

impl fmt::Debug for DpdkLink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("DpdkLink")
            .field("port", self.queues.port())
            .field("properties", &self.properties)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

/// Bytes of the largest IP packet: the limit of its length field (RFC 791 3.1).
const SEGMENT_BYTES_MAX: u32 = 65535;

/// With an Ethernet header that has a tag.
const ROOM_BYTES: usize = 65535 + 18;

/// Frames that wait for the queue before the device counts as full.
const WAITING_MAX: usize = 256;

/// Turns in which a driver takes nothing, before a frame is dropped: milliseconds, in which every device sends something.
const STUCK_MAX: u32 = 4096;

/// Frames that are given to the driver at once.
const SENT_AT_ONCE: usize = 32;

/// Frames that are given back to their pool at once.
const RELEASED: usize = 32;

/// Packets that are with a link at most, beside a burst: those that the host holds and those that were released, that have arrived, that
/// wait, and two long segments of the smallest pieces.
pub(crate) const HELD_MAX: u32 = FRAMES_HELD_MAX + 2 * 32 + 256 + 96;

/// Turns between two looks at the link's state, each of which is a call of the driver: some milliseconds while the worker spins.
const TURNS_BETWEEN: u32 = 65_535;
