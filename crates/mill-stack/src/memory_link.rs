//! Two links joined back to back in memory, for tests and benchmarks: no device, no loss, no delay.

use crate::link::{
    Burst, ExclusiveLink, ExternalBytes, ExternalSent, FrameId, Link, LinkProperties, Offload,
    Received, ReceivedChecksum, Stray,
};
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// One end. Frames that it sends lie in `sent` until [`MemoryLink::carry`] moves them to the other end; a test may
/// read, drop or change them before.
#[derive(Debug)]
pub struct MemoryLink {
    properties: LinkProperties,
    /// Frames that were transmitted and not moved on.
    pub sent: VecDeque<Frame>,
    /// Frames that have arrived and were not received.
    pub arrived: VecDeque<Frame>,
    /// Frames that may lie in `sent` before the link is full.
    pub sent_max: usize,
    /// Frames that may be received and not released.
    pub held_max: usize,
    /// What becomes of segments with external payload.
    pub external: ExternalSent,
    /// Copies of frames that the host handed over, if there is another host that takes them.
    pub handed: Option<VecDeque<Frame>>,
    /// Copies of frames that the host gave back, if they came from another host.
    pub given_back: Option<VecDeque<Frame>>,
    received: Vec<Option<Frame>>,
    vacant: Vec<u32>,
    room: Vec<u8>,
    spare: Vec<Vec<u8>>,
}

/// A frame with what its sender left to the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub bytes: Vec<u8>,
    pub offload: Offload,
}

impl MemoryLink {
    pub const fn new(properties: LinkProperties) -> Self {
        Self {
            properties,
            sent: VecDeque::new(),
            arrived: VecDeque::new(),
            sent_max: usize::MAX,
            held_max: usize::MAX,
            external: ExternalSent::Yes,
            handed: None,
            given_back: None,
            received: Vec::new(),
            vacant: Vec::new(),
            room: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// A link of Ethernet's MTU whose device has no offloads; `number` distinguishes it from others.
    pub const fn ethernet(number: u8) -> Self {
        Self::new(LinkProperties {
            address: [2, 0, 0, 0, 0, number],
            mtu: 1500,
            completes_checksums: false,
            segment_bytes_max: 1500,
            cut_bytes_min: 0,
            sends_external: true,
            frames_per_turn: usize::MAX,
        })
    }

    /// Takes everything that was sent to the other end; says how many frames.
    pub fn carry(&mut self, other: &mut Self) -> usize {
        let count = self.sent.len();
        other.arrived.append(&mut self.sent);
        self.spare.append(&mut other.spare);
        count
    }

    /// Frames that were received and not released.
    pub fn held(&self) -> usize {
        self.received.iter().flatten().count()
    }
}

impl Link for MemoryLink {
    fn properties(&self) -> &LinkProperties {
        &self.properties
    }

    fn receive(&mut self, burst: &mut Burst) {
        while burst.room() > 0 && self.received.len() - self.vacant.len() < self.held_max {
            let Some(frame) = self.arrived.pop_front() else {
                return;
            };
            let checksum = if frame.offload.checksum.is_some() {
                ReceivedChecksum::MaybePartial
            } else {
                ReceivedChecksum::Unverified
            };
            let merged = merged(&frame);
            let index = self.vacant.pop().unwrap_or_else(|| {
                self.received.push(None);
                u32::try_from(self.received.len() - 1).unwrap_or(u32::MAX)
            });
            if let Some(place) = self.received.get_mut(index as usize) {
                *place = Some(frame);
            }
            burst.push(Received {
                id: FrameId(index),
                checksum,
                merged,
            });
        }
    }

    fn frame(&mut self, id: FrameId) -> &mut [u8] {
        match self.received.get_mut(id.0 as usize) {
            Some(Some(frame)) => &mut frame.bytes,
            _ => &mut [],
        }
    }

    fn release(&mut self, id: FrameId) {
        let frame = self.received.get_mut(id.0 as usize).and_then(Option::take);
        debug_assert!(frame.is_some(), "{id:?} is released once");
        if let Some(frame) = frame {
            self.vacant.push(id.0);
            self.spare.push(frame.bytes);
        }
    }

    fn reserve(&mut self, len_max: usize) -> Option<&mut [u8]> {
        if self.sent.len() >= self.sent_max {
            return None;
        }
        if self.room.len() < len_max {
            self.room.resize(len_max, 0xee);
        }
        self.room.get_mut(..len_max)
    }

    fn transmit(&mut self, len: usize, offload: Offload) {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(self.room.get(..len).unwrap_or_default());
        self.sent.push_back(Frame { bytes, offload });
    }

    fn transmit_external(
        &mut self,
        len: usize,
        offload: Offload,
        payload: ExternalBytes<'_>,
    ) -> ExternalSent {
        if self.external != ExternalSent::Yes {
            return self.external;
        }
        let Some(behind) = payload.as_slice() else {
            return ExternalSent::Unable;
        };
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(self.room.get(..len).unwrap_or_default());
        bytes.extend_from_slice(behind);
        self.sent.push_back(Frame { bytes, offload });
        ExternalSent::Yes
    }

    fn flush(&mut self) -> bool {
        false
    }

    fn hand_over(&mut self, frame: &Received, _stray: &Stray<'_>) -> bool {
        self.pass_to(frame, 0)
    }

    fn pass_to(&mut self, frame: &Received, _process: u64) -> bool {
        let Some(handed) = &mut self.handed else {
            return false;
        };
        let received = self.received.get(frame.id.0 as usize);
        handed.extend(received.cloned().flatten());
        true
    }

    fn give_back(&mut self, frame: &Received) -> bool {
        let Some(given_back) = &mut self.given_back else {
            return false;
        };
        let received = self.received.get(frame.id.0 as usize);
        given_back.extend(received.cloned().flatten());
        true
    }
}

impl ExclusiveLink for MemoryLink {}

/// How many segments a frame holds that was not cut.
fn merged(frame: &Frame) -> u16 {
    frame.offload.segmentation.map_or(1, |segmentation| {
        let payload = frame.bytes.len() - usize::from(segmentation.header_len);
        u16::try_from(payload.div_ceil(usize::from(segmentation.mss.max(1)))).unwrap_or(u16::MAX)
    })
}

impl Frame {
    /// A frame that needs nothing from the device.
    pub fn new(bytes: &[u8]) -> Self {
        let mut all = vec![];
        all.extend_from_slice(bytes);
        Self {
            bytes: all,
            offload: Offload::default(),
        }
    }
}
