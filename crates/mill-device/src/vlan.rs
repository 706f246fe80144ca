//! The tag of a virtual network (IEEE 802.1Q 9) on all frames of a stack that is a host there.
//!
//! Devices carry tagged frames; the stack knows nothing of tags. A received frame loses its tag where it lies: the two
//! addresses move over it, and the stack sees what is behind the first four bytes. A frame to be sent gets four bytes
//! of room before it, into which its addresses move.
//!
//! ```text
//! device   | target, 6 | source, 6 | 8100, tag | EtherType, 2 | payload
//! stack                | target, 6 | source, 6 | EtherType, 2 | payload
//! ```

use mill_stack::link::Offload;
use mill_wire::ethernet::EtherType;

/// The network that a stack is a host in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vlan {
    /// 1 to 4094: 0 is no network, 4095 is reserved (802.1Q 9.6).
    id: u16,
}

/// Bytes of a tag.
pub(crate) const TAG_BYTES: usize = mill_wire::vlan::TAG_BYTES;

/// Bytes of both addresses, before the tag.
const ADDRESSES_BYTES: usize = 12;

/// Bytes of an Ethernet header with a tag.
const TAGGED_BYTES: usize = ADDRESSES_BYTES + TAG_BYTES + 2;

impl Vlan {
    /// `None` for a number that no network has.
    pub const fn new(id: u16) -> Option<Self> {
        match id {
            1..=4094 => Some(Self { id }),
            _ => None,
        }
    }

    /// Its number, 1 to 4094.
    pub const fn id(self) -> u16 {
        self.id
    }

    /// Takes the tag off a received frame, which begins [`TAG_BYTES`] later from now on. A frame of another network, or
    /// of none, gets a target that no host has: the stack drops and counts it as not its own.
    pub(crate) fn strip(self, frame: &mut [u8]) {
        let Some(head) = frame.first_chunk_mut::<TAGGED_BYTES>() else {
            return;
        };
        let [.., a, b, c, d, _, _] = *head;
        let is_ours = EtherType(u16::from_be_bytes([a, b])) == EtherType::VLAN
            && u16::from_be_bytes([c, d]) & ID_MASK == self.id;
        head.copy_within(..ADDRESSES_BYTES, TAG_BYTES);
        if !is_ours {
            head[TAG_BYTES..][..6].fill(0);
        }
    }

    /// Puts the tag into a frame that begins behind [`TAG_BYTES`] of room.
    pub(crate) fn put(self, frame: &mut [u8]) {
        let Some(head) = frame.first_chunk_mut::<TAGGED_BYTES>() else {
            debug_assert!(false, "a frame has an Ethernet header");
            return;
        };
        head.copy_within(TAG_BYTES..TAG_BYTES + ADDRESSES_BYTES, 0);
        let [kind, id] = [EtherType::VLAN.0, self.id].map(u16::to_be_bytes);
        head[ADDRESSES_BYTES..][..2].copy_from_slice(&kind);
        head[ADDRESSES_BYTES + 2..][..2].copy_from_slice(&id);
    }

    /// What is left to the device for a frame that has got its tag.
    pub(crate) fn shifted(offload: Offload) -> Offload {
        let tag = u16::try_from(TAG_BYTES).expect("four");
        Offload {
            checksum: offload.checksum.map(|mut checksum| {
                checksum.start += tag;
                checksum
            }),
            segmentation: offload.segmentation.map(|mut segmentation| {
                segmentation.header_len += tag;
                segmentation
            }),
        }
    }
}

/// The lowest bits of a tag, beside priority and drop eligibility.
pub(crate) const ID_MASK: u16 = 0x0fff;

#[cfg(test)]
mod tests {
    use super::*;
    use mill_stack::link::{PartialChecksum, Segmentation};

    /// An Ethernet header with this behind the addresses, and a payload.
    fn frame(behind: &[u8]) -> Vec<u8> {
        let addresses = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9];
        [&addresses, behind, &[0x45, 1, 2, 3]].concat()
    }

    const PLAIN: [u8; 2] = [8, 0];

    #[test]
    fn numbers_of_networks_are_1_to_4094() {
        for (id, expected) in [
            (0, None),
            (1, Some(1)),
            (10, Some(10)),
            (4094, Some(4094)),
            (4095, None),
            (u16::MAX, None),
        ] {
            assert_eq!(Vlan::new(id).map(Vlan::id), expected, "{id}");
        }
    }

    #[test]
    fn a_frame_loses_its_tag_and_gets_it_again() {
        let vlan = Vlan::new(0x10a).unwrap();
        // Whatever priority the sender has given it.
        for priority in [0, 0x70, 0xf0] {
            let mut bytes = frame(&[0x81, 0, priority | 1, 0x0a, 8, 0]);
            vlan.strip(&mut bytes);
            assert_eq!(bytes[TAG_BYTES..], frame(&PLAIN));
            vlan.put(&mut bytes);
            assert_eq!(bytes, frame(&[0x81, 0, 1, 0x0a, 8, 0]));
        }
    }

    #[test]
    fn frames_of_other_networks_have_no_target() {
        let vlan = Vlan::new(10).unwrap();
        let others: [&[u8]; 6] = [
            &[8, 0, 0, 0, 0, 0],
            &[0x81, 0, 0, 11, 8, 0],
            &[0x81, 0, 0, 0, 8, 0],
            &[0x81, 0, 1, 10, 8, 0],
            // A provider's tag.
            &[0x88, 0xa8, 0, 10, 8, 0],
            &[0x86, 0xdd, 0x60, 0, 0, 0],
        ];
        for other in others {
            let mut bytes = frame(other);
            vlan.strip(&mut bytes);
            assert_eq!(bytes[TAG_BYTES..][..6], [0; 6], "{other:?}");
        }
    }

    #[test]
    fn short_frames_stay_short() {
        let vlan = Vlan::new(10).unwrap();
        for len in 0..TAGGED_BYTES {
            let mut bytes = vec![7; len];
            vlan.strip(&mut bytes);
            assert_eq!(bytes, vec![7; len]);
        }
    }

    #[test]
    fn what_is_left_to_the_device_lies_behind_the_tag() {
        let offload = Offload {
            checksum: Some(PartialChecksum {
                start: 34,
                offset: 16,
            }),
            segmentation: Some(Segmentation {
                mss: 1448,
                header_len: 66,
                is_ipv6: false,
            }),
        };
        let shifted = Vlan::shifted(offload);
        assert_eq!(
            shifted.checksum.map(|it| (it.start, it.offset)),
            Some((38, 16))
        );
        let segmentation = shifted.segmentation.map(|it| (it.mss, it.header_len));
        assert_eq!(segmentation, Some((1448, 70)));
        assert_eq!(Vlan::shifted(Offload::default()), Offload::default());
    }
}
