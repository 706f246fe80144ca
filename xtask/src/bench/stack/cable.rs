//! Two devices joined back to back in memory: the cost of the stack without that of a device.

use std::collections::VecDeque;

use mill_stack::link::{
    Burst, ExternalBytes, ExternalSent, FrameId, Link, LinkProperties, Offload, Received,
    ReceivedChecksum, Stray,
};

/// Bytes of a frame's room: an MTU of 1500 and Ethernet's header, rounded up.
const FRAME_BYTES: usize = 2048;

/// Frames that a device takes before it is full: as many as one burst of a ring.
const OUTBOX_MAX: usize = 64;

type Frame = (Box<[u8]>, usize);

/// One end. Frames move to the other end when the measurement calls for it, outside of the timed part.
pub(super) struct Port {
    properties: LinkProperties,
    inbox: VecDeque<Frame>,
    outbox: VecDeque<Frame>,
    lying: Vec<Option<Frame>>,
    vacant: Vec<u32>,
    spare: Vec<Box<[u8]>>,
    reserved: Option<Box<[u8]>>,
}

impl Port {
    /// `offload`: checksums are neither made nor verified, as where a device does it.
    pub(super) fn new(address: u8, offload: bool) -> Self {
        Self {
            properties: LinkProperties {
                address: [2, 0, 0, 0, 0, address],
                mtu: 1500,
                completes_checksums: offload,
                segment_bytes_max: 1500,
                cut_bytes_min: 0,
                sends_external: false,
                frames_per_turn: usize::MAX,
            },
            inbox: VecDeque::new(),
            outbox: VecDeque::new(),
            lying: Vec::new(),
            vacant: Vec::new(),
            spare: Vec::new(),
            reserved: None,
        }
    }

    pub(super) fn sent(&self) -> usize {
        self.outbox.len()
    }

    pub(super) fn has_arrived(&self) -> bool {
        !self.inbox.is_empty()
    }

    /// Moves all sent frames to `other`, and empty frames back.
    pub(super) fn carry(&mut self, other: &mut Self) {
        other.inbox.append(&mut self.outbox);
        while self.spare.len() < other.spare.len() {
            self.spare.extend(other.spare.pop());
        }
    }
}

impl Link for Port {
    fn properties(&self) -> &LinkProperties {
        &self.properties
    }

    fn receive(&mut self, burst: &mut Burst) {
        while burst.room() > 0 {
            let Some(frame) = self.inbox.pop_front() else {
                return;
            };
            let index = self.vacant.pop().unwrap_or_else(|| {
                self.lying.push(None);
                u32::try_from(self.lying.len() - 1).expect("a burst is short")
            });
            self.lying[index as usize] = Some(frame);
            burst.push(Received {
                id: FrameId(index),
                checksum: if self.properties.completes_checksums {
                    ReceivedChecksum::Verified
                } else {
                    ReceivedChecksum::Unverified
                },
                merged: 1,
            });
        }
    }

    fn frame(&mut self, id: FrameId) -> &mut [u8] {
        match self.lying.get_mut(id.0 as usize) {
            Some(Some((bytes, len))) => &mut bytes[..*len],
            _ => &mut [],
        }
    }

    fn release(&mut self, id: FrameId) {
        if let Some((bytes, _)) = self.lying.get_mut(id.0 as usize).and_then(Option::take) {
            self.spare.push(bytes);
            self.vacant.push(id.0);
        }
    }

    fn reserve(&mut self, len_max: usize) -> Option<&mut [u8]> {
        if self.outbox.len() >= OUTBOX_MAX || len_max > FRAME_BYTES {
            return None;
        }
        let spare = &mut self.spare;
        let room = self
            .reserved
            .get_or_insert_with(|| spare.pop().unwrap_or_else(|| vec![0; FRAME_BYTES].into()));
        Some(&mut room[..len_max])
    }

    fn transmit(&mut self, len: usize, _: Offload) {
        self.outbox
            .extend(self.reserved.take().map(|bytes| (bytes, len)));
    }

    fn transmit_external(&mut self, _: usize, _: Offload, _: ExternalBytes<'_>) -> ExternalSent {
        ExternalSent::Unable
    }

    fn flush(&mut self) -> bool {
        false
    }

    fn hand_over(&mut self, _frame: &Received, _stray: &Stray<'_>) -> bool {
        false
    }
}
