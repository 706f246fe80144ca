//! The link that a host or an engine uses.

use super::ethernet::Station;
use super::flying::Flying;
use crate::network::Net;
use mill_stack::link::{
    Burst, ExclusiveLink, ExternalBytes, ExternalSent, FrameId, Link, LinkProperties, Offload,
    Received, ReceivedChecksum, Stray,
};
use std::rc::Rc;

/// A station's card, as its host sees it.
#[derive(Debug)]
pub struct SimLink {
    net: Net,
    station: usize,
    properties: LinkProperties,
    /// The memory of received frames by number; `None` where the number is free.
    frames: Vec<Option<Vec<u8>>>,
    free: Vec<u32>,
    /// The frame that is being filled.
    reserved: Vec<u8>,
}

impl SimLink {
    pub(super) const fn new(net: Net, station: usize, properties: LinkProperties) -> Self {
        Self {
            net,
            station,
            properties,
            frames: Vec::new(),
            free: Vec::new(),
            reserved: Vec::new(),
        }
    }

    /// The station, for the test that observes it while a host has the link.
    pub fn station(&self) -> Station {
        Station::new(Rc::clone(&self.net), self.station)
    }

    /// Whether frames have come that the host has not taken.
    pub fn has_frames(&self) -> bool {
        !self.net.borrow().packets.stations[self.station]
            .ring
            .is_empty()
    }

    fn store(&mut self, bytes: Vec<u8>) -> FrameId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.frames.push(None);
            u32::try_from(self.frames.len() - 1).expect("fewer than 2^32 frames fit in memory")
        });
        self.frames[id as usize] = Some(bytes);
        FrameId(id)
    }
}

impl Link for SimLink {
    fn properties(&self) -> &LinkProperties {
        &self.properties
    }

    fn receive(&mut self, burst: &mut Burst) {
        while burst.room() > 0 {
            let (frame, vouches) = {
                let mut net = self.net.borrow_mut();
                let station = &mut net.packets.stations[self.station];
                let Some(frame) = station.ring.pop_front() else {
                    return;
                };
                station.held += 1;
                (frame, station.options.vouches)
            };
            let checksum = told(&frame, vouches);
            let merged = frame.segments();
            let id = self.store(frame.bytes);
            burst.push(Received {
                id,
                checksum,
                merged,
            });
        }
    }

    fn frame(&mut self, id: FrameId) -> &mut [u8] {
        self.frames[id.0 as usize]
            .as_mut()
            .expect("a frame is used before it is released")
    }

    fn release(&mut self, id: FrameId) {
        let bytes = self.frames[id.0 as usize]
            .take()
            .expect("a frame is released once");
        self.free.push(id.0);
        let mut net = self.net.borrow_mut();
        net.packets.give_buffer(bytes);
        net.packets.stations[self.station].held -= 1;
    }

    fn reserve(&mut self, len_max: usize) -> Option<&mut [u8]> {
        let mut net = self.net.borrow_mut();
        if !net.card_has_room(self.station) {
            return None;
        }
        drop(net);
        if self.reserved.len() < len_max {
            // Not zeros, as little as on a real device.
            self.reserved.resize(len_max, 0xdb);
        }
        self.reserved.get_mut(..len_max)
    }

    fn transmit(&mut self, len: usize, offload: Offload) {
        let reserved = self.reserved.get(..len);
        let filled = reserved.expect("no more is sent than was reserved");
        let mut net = self.net.borrow_mut();
        let mut frame = net.packets.take_buffer();
        frame.extend_from_slice(filled);
        net.transmit(self.station, frame, offload);
    }

    fn transmit_external(
        &mut self,
        len: usize,
        offload: Offload,
        payload: ExternalBytes<'_>,
    ) -> ExternalSent {
        let Some(bytes) = payload.as_slice() else {
            return ExternalSent::Unable;
        };
        let filled = self.reserved.get(..len);
        let filled = filled.expect("no more is sent than was reserved");
        let mut net = self.net.borrow_mut();
        let mut frame = net.packets.take_buffer();
        frame.extend_from_slice(filled);
        frame.extend_from_slice(bytes);
        net.transmit(self.station, frame, offload);
        ExternalSent::Yes
    }

    fn flush(&mut self) -> bool {
        false
    }

    fn hand_over(&mut self, _frame: &Received, _stray: &Stray<'_>) -> bool {
        false
    }
}

impl ExclusiveLink for SimLink {}

impl Drop for SimLink {
    fn drop(&mut self) {
        // While a test fails the network may be borrowed further up; then nothing reads it any more.
        if let Ok(mut net) = self.net.try_borrow_mut() {
            net.packets.stations[self.station].engine = None;
        }
    }
}

/// What a card says of a frame's checksum: nothing of a wrong one, and never that a missing one is right unless it
/// takes such frames.
fn told(frame: &Flying, vouches: ReceivedChecksum) -> ReceivedChecksum {
    match (frame.is_corrupt, frame.is_complete) {
        (true, _) => ReceivedChecksum::Unverified,
        (false, true) => vouches,
        (false, false) if vouches == ReceivedChecksum::Verified => ReceivedChecksum::Verified,
        (false, false) => ReceivedChecksum::MaybePartial,
    }
}
