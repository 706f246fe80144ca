//! The device between the peer and the stack.

use super::frame::OUR_MAC;
use mill_stack::link::{Burst, FrameId, Link, LinkProperties, Offload, Received, ReceivedChecksum};
use std::collections::VecDeque;

/// Frames wait in queues, and lie where the stack can read them until it gives them back.
pub(super) struct Device {
    properties: LinkProperties,
    pub(super) arrived: VecDeque<Vec<u8>>,
    held: Vec<Option<Vec<u8>>>,
    room: Vec<u8>,
    pub(super) sent: Vec<Vec<u8>>,
}

impl Device {
    pub(super) fn new() -> Self {
        Self {
            properties: LinkProperties {
                address: OUR_MAC,
                mtu: 1500,
                completes_checksums: false,
                segment_bytes_max: 1500,
            },
            arrived: VecDeque::new(),
            held: Vec::new(),
            room: vec![0; 1514],
            sent: Vec::new(),
        }
    }

    /// Frames that the stack has not given back.
    pub(super) fn lying(&self) -> usize {
        self.held.iter().flatten().count()
    }
}

impl Link for Device {
    fn properties(&self) -> &LinkProperties {
        &self.properties
    }

    fn receive(&mut self, burst: &mut Burst) {
        while burst.room() > 0
            && let Some(frame) = self.arrived.pop_front()
        {
            let index = self.held.iter().position(Option::is_none);
            let index = index.unwrap_or(self.held.len());
            if index == self.held.len() {
                self.held.push(None);
            }
            self.held[index] = Some(frame);
            burst.push(Received {
                id: FrameId(u32::try_from(index).expect("few frames lie here")),
                checksum: ReceivedChecksum::Unverified,
                merged: 1,
            });
        }
    }

    fn frame(&mut self, id: FrameId) -> &mut [u8] {
        self.held[id.0 as usize].as_mut().expect("a held frame")
    }

    fn release(&mut self, id: FrameId) {
        let frame = self.held[id.0 as usize].take();
        assert!(frame.is_some(), "a frame is released once");
    }

    fn reserve(&mut self, len_max: usize) -> Option<&mut [u8]> {
        self.room.get_mut(..len_max)
    }

    fn transmit(&mut self, len: usize, offload: Offload) {
        assert_eq!(
            offload,
            Offload::default(),
            "this device does nothing for others"
        );
        self.sent.push(self.room[..len].to_vec());
    }

    fn flush(&mut self) {}
}
