//! Frames that are with the host, by number.

use mill_stack::link::FrameId;
use mill_sys::dpdk::packet::Packet;

/// The frames. As many places as were used at once.
#[derive(Debug, Default)]
pub(super) struct Held {
    places: Vec<Place>,
    vacant: Vec<u32>,
}

#[derive(Debug, Default)]
struct Place {
    packet: Option<Packet>,
    /// A frame of several pieces, put together; empty for others. The memory is used again.
    gathered: Vec<u8>,
}

impl Held {
    pub(super) fn put(&mut self, packet: Packet) -> FrameId {
        let number = self.vacant.pop().unwrap_or_else(|| {
            self.places.push(Place::default());
            u32::try_from(self.places.len() - 1).unwrap_or_default()
        });
        if let Some(place) = self.places.get_mut(number as usize) {
            place.gathered.clear();
            if !packet.is_whole() {
                packet.gather(&mut place.gathered);
            }
            place.packet = Some(packet);
        }
        FrameId(number)
    }

    /// The bytes of a frame; none if there is no such frame.
    pub(super) fn frame(&mut self, id: FrameId) -> &mut [u8] {
        match self.places.get_mut(id.0 as usize) {
            Some(place) if !place.gathered.is_empty() => &mut place.gathered,
            Some(place) => place
                .packet
                .as_mut()
                .map(Packet::bytes_mut)
                .unwrap_or_default(),
            None => &mut [],
        }
    }

    pub(super) fn take(&mut self, id: FrameId) -> Option<Packet> {
        let place = self.places.get_mut(id.0 as usize)?;
        let packet = place.packet.take();
        debug_assert!(packet.is_some(), "{id:?} was released already");
        if packet.is_some() {
            self.vacant.push(id.0);
        }
        packet
    }
}
