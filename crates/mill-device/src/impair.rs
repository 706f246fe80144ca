//! An impaired wire: a link around a TAP device that drops, reorders, duplicates and corrupts frames, at random but the
//! same way for the same seed and frames.
//!
//! Impairments apply to packets as they are on a wire. So nothing is offloaded to the device: frames must not be longer
//! than the MTU, and all checksums must be complete.

use crate::frames::Frames;
use crate::tap::TapLink;
use mill_stack::link::{
    Burst, ExternalBytes, ExternalSent, FrameId, Link, LinkProperties, Offload, Received,
    ReceivedChecksum, Stray,
};
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};

/// The impairments, the same in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Impairment {
    /// Frames of a million that are dropped.
    pub loss_ppm: u32,
    /// … that are overtaken by some of the following ones.
    pub reorder_ppm: u32,
    /// … that are duplicated.
    pub duplicate_ppm: u32,
    /// … in which one bit is inverted.
    pub corrupt_ppm: u32,
    pub seed: u64,
}

/// Counters of the impairments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImpairCounters {
    pub lost: u64,
    pub reordered: u64,
    pub duplicated: u64,
    pub corrupted: u64,
}

impl Impairment {
    /// Whether nothing is impaired.
    pub fn is_none(&self) -> bool {
        let Self {
            loss_ppm,
            reorder_ppm,
            duplicate_ppm,
            corrupt_ppm,
            seed: _,
        } = *self;
        [loss_ppm, reorder_ppm, duplicate_ppm, corrupt_ppm] == [0; 4]
    }
}

/// A TAP device over an impaired wire.
#[derive(Debug)]
pub struct ImpairedLink {
    link: TapLink,
    properties: LinkProperties,
    impairment: Impairment,
    random: Random,
    /// Frames that the inner link has received.
    inner: Burst,
    /// Received frames under way, without those that are being overtaken.
    arriving: VecDeque<Received>,
    overtaken: Vec<Late<Received>>,
    /// Second copies of received frames; their ids have [`COPY_BIT`].
    copies: Frames,
    /// Frames that will be sent after others.
    leaving: Vec<Late<Vec<u8>>>,
    spare: Vec<Vec<u8>>,
    counters: ImpairCounters,
}

/// A frame that waits until this many others have overtaken it.
#[derive(Debug)]
struct Late<T> {
    behind: u32,
    what: T,
}

impl ImpairedLink {
    pub fn new(link: TapLink, impairment: Impairment) -> Self {
        let properties = LinkProperties {
            completes_checksums: false,
            segment_bytes_max: u32::from(link.properties().mtu),
            ..*link.properties()
        };
        Self {
            link,
            properties,
            impairment,
            random: Random::new(impairment.seed),
            inner: Burst::new(INNER_BURST),
            arriving: VecDeque::new(),
            overtaken: Vec::new(),
            copies: Frames::new(COPIES, COPY_BYTES),
            leaving: Vec::new(),
            spare: Vec::new(),
            counters: ImpairCounters::default(),
        }
    }

    pub fn inner(&self) -> &TapLink {
        &self.link
    }

    pub fn counters(&self) -> ImpairCounters {
        self.counters
    }

    fn arrive(&mut self, received: Received) {
        if self.random.happens(self.impairment.loss_ppm) {
            self.counters.lost += 1;
            return self.link.release(received.id);
        }
        if self.random.happens(self.impairment.corrupt_ppm) {
            self.counters.corrupted += 1;
            self.random.turn_a_bit(self.link.frame(received.id));
        }
        let copy = self
            .random
            .happens(self.impairment.duplicate_ppm)
            .then(|| self.copy(received));
        if self.random.happens(self.impairment.reorder_ppm) && self.overtaken.len() < LATE_MAX {
            self.counters.reordered += 1;
            let behind = self.random.up_to(BEHIND_MAX);
            self.overtaken.push(Late {
                behind,
                what: received,
            });
        } else {
            self.arriving.push_back(received);
            let arriving = &mut self.arriving;
            overtake(&mut self.overtaken, |late| arriving.push_back(late));
        }
        if let Some(Some(copy)) = copy {
            self.counters.duplicated += 1;
            self.arriving.push_back(copy);
        }
    }

    /// A second copy of a frame; `None` if there is no memory for it.
    fn copy(&mut self, received: Received) -> Option<Received> {
        let frame = self.link.frame(received.id);
        let filled = self.copies.fill(|place| {
            let room = place.get_mut(..frame.len()).ok_or(())?;
            room.copy_from_slice(frame);
            Ok::<_, ()>(frame.len())
        });
        let id = filled?.ok()?;
        Some(Received {
            id: FrameId(id.0 | COPY_BIT),
            ..received
        })
    }

    /// Keeps a copy of the reserved frame, to be sent when others have overtaken it.
    fn hold_back(&mut self, len: usize) {
        let mut late = self.spare.pop().unwrap_or_default();
        late.clear();
        if let Some(frame) = self.link.reserve(len) {
            late.extend_from_slice(frame);
        }
        let behind = self.random.up_to(BEHIND_MAX);
        self.leaving.push(Late { behind, what: late });
    }

    fn send_late(&mut self, frame: Vec<u8>) {
        match self.link.reserve(frame.len()) {
            Some(room) => {
                room.copy_from_slice(&frame);
                self.link.transmit(frame.len(), Offload::default());
            }
            None => self.counters.lost += 1,
        }
        self.spare.push(frame);
    }
}

/// The id of a second copy among the copies; `None` for a frame of the device.
fn copy_of(id: FrameId) -> Option<FrameId> {
    let is_copy = id.0 & COPY_BIT != 0;
    is_copy.then_some(FrameId(id.0 & !COPY_BIT))
}

/// Counts one more passing frame; `release` gets those that have been overtaken often enough.
fn overtake<T>(late: &mut Vec<Late<T>>, mut release: impl FnMut(T)) {
    let mut index = 0;
    while let Some(one) = late.get_mut(index) {
        one.behind = one.behind.saturating_sub(1);
        if one.behind == 0 {
            release(late.swap_remove(index).what);
        } else {
            index += 1;
        }
    }
}

impl Link for ImpairedLink {
    fn properties(&self) -> &LinkProperties {
        &self.properties
    }

    fn receive(&mut self, burst: &mut Burst) {
        if self.arriving.is_empty() {
            let mut inner = std::mem::replace(&mut self.inner, Burst::new(0));
            inner.clear();
            self.link.receive(&mut inner);
            for received in inner.as_slice() {
                self.arrive(*received);
            }
            if inner.as_slice().is_empty() {
                // No frame is left to overtake them.
                let late = self.overtaken.drain(..).map(|late| late.what);
                self.arriving.extend(late);
            }
            self.inner = inner;
        }
        while burst.room() > 0
            && let Some(received) = self.arriving.pop_front()
        {
            burst.push(Received {
                checksum: ReceivedChecksum::Unverified,
                ..received
            });
        }
    }

    fn frame(&mut self, id: FrameId) -> &mut [u8] {
        match copy_of(id) {
            Some(copy) => self.copies.frame(copy),
            None => self.link.frame(id),
        }
    }

    fn release(&mut self, id: FrameId) {
        match copy_of(id) {
            Some(copy) => self.copies.release(copy),
            None => self.link.release(id),
        }
    }

    fn reserve(&mut self, len_max: usize) -> Option<&mut [u8]> {
        self.link.reserve(len_max)
    }

    fn transmit(&mut self, len: usize, offload: Offload) {
        debug_assert_eq!(
            offload,
            Offload::default(),
            "an impaired wire has no offloads"
        );
        if self.random.happens(self.impairment.loss_ppm) {
            self.counters.lost += 1;
            return;
        }
        if self.random.happens(self.impairment.corrupt_ppm)
            && let Some(frame) = self.link.reserve(len)
        {
            self.counters.corrupted += 1;
            self.random.turn_a_bit(frame);
        }
        if self.random.happens(self.impairment.duplicate_ppm) && self.leaving.len() < LATE_MAX {
            self.counters.duplicated += 1;
            self.hold_back(len);
        }
        if self.random.happens(self.impairment.reorder_ppm) && self.leaving.len() < LATE_MAX {
            self.counters.reordered += 1;
            return self.hold_back(len);
        }
        self.link.transmit(len, offload);
        if !self.leaving.is_empty() {
            let mut due = Vec::new();
            overtake(&mut self.leaving, |frame| due.push(frame));
            for frame in due {
                self.send_late(frame);
            }
        }
    }

    fn transmit_external(&mut self, _: usize, _: Offload, _: ExternalBytes<'_>) -> ExternalSent {
        ExternalSent::Unable
    }

    fn flush(&mut self) -> bool {
        // No frame is left to overtake them.
        while let Some(late) = self.leaving.pop() {
            self.send_late(late.what);
        }
        self.link.flush()
    }

    /// Such a wire has one worker.
    fn hand_over(&mut self, _frame: &Received, _stray: &Stray<'_>) -> bool {
        false
    }
}

impl AsFd for ImpairedLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.link.as_fd()
    }
}

/// xorshift64* (Vigna 2016).
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        // Zero would stay zero; adjacent seeds are spread apart.
        Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn happens(&mut self, ppm: u32) -> bool {
        ppm > 0 && self.next() % 1_000_000 < u64::from(ppm)
    }

    /// From 1 to `most`.
    fn up_to(&mut self, most: u32) -> u32 {
        u32::try_from(self.next() % u64::from(most)).unwrap_or(0) + 1
    }

    fn turn_a_bit(&mut self, frame: &mut [u8]) {
        let bit = self.next() % (8 * frame.len().max(1) as u64);
        let at = usize::try_from(bit / 8).unwrap_or(0);
        if let Some(byte) = frame.get_mut(at) {
            *byte ^= 1 << (bit % 8);
        }
    }
}

/// Frames taken from the inner link at once.
const INNER_BURST: usize = 32;

/// The number of frames that overtake one, at most.
const BEHIND_MAX: u32 = 8;

/// Frames of one direction that may be waiting to be overtaken.
const LATE_MAX: usize = 32;

/// Second copies that may be received and not released, and the bytes of each: a frame of MTU 9000, rounded up.
const COPIES: u32 = 128;
const COPY_BYTES: usize = 9216;

/// Marks the ids of copies. A device has fewer than 2^30 frames, and the bit above marks frames that another worker has
/// forwarded.
const COPY_BIT: u32 = 1 << 30;

#[cfg(test)]
mod tests;
