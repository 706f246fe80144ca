//! Tags of virtual networks between the addresses and the EtherType of a frame (IEEE 802.1Q 9).
//!
//! ```text
//! | target, 6 | source, 6 | 88a8, tag | 8100, tag | EtherType, 2 | payload
//!                          provider's   customer's    each of them may be absent
//! ```

use crate::Malformed;
use crate::ethernet::{EtherType, EthernetHeader, MacAddress};

/// Bytes of one tag, its EtherType included.
pub const TAG_BYTES: usize = 4;

/// Bytes of the longest header: both tags.
pub const HEADER_BYTES_MAX: usize = crate::ethernet::HEADER_BYTES + 2 * TAG_BYTES;

/// An Ethernet header with the tags that it may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkHeader {
    pub target: MacAddress,
    pub source: MacAddress,
    /// The provider's tag (802.1ad), the outer one.
    pub service: Option<VlanTag>,
    /// The customer's tag (802.1Q).
    pub tag: Option<VlanTag>,
    /// Of the payload. Another tag behind the customer's is not looked into: it is the EtherType then.
    pub ether_type: EtherType,
}

/// What a tag says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct VlanTag {
    /// 0 to 7 (802.1Q 6.9.3).
    pub priority: u8,
    /// Among the first to be dropped when there is no room.
    pub drop_eligible: bool,
    /// 12 bits; 0 is no network, only a priority, and 4095 is reserved.
    pub id: u16,
}

impl LinkHeader {
    /// The header and its length in bytes, tags included.
    #[inline]
    pub fn parse(frame: &[u8]) -> Result<(Self, usize), Malformed> {
        let (ethernet, mut len) = EthernetHeader::parse(frame)?;
        let mut header = Self {
            target: ethernet.target,
            source: ethernet.source,
            service: None,
            tag: None,
            ether_type: ethernet.ether_type,
        };
        if header.ether_type == EtherType::SERVICE_VLAN {
            header.service = Some(header.take_tag(frame, &mut len)?);
        }
        if header.ether_type == EtherType::VLAN {
            header.tag = Some(header.take_tag(frame, &mut len)?);
        }
        Ok((header, len))
    }

    fn take_tag(&mut self, frame: &[u8], len: &mut usize) -> Result<VlanTag, Malformed> {
        let &[a, b, c, d] = frame
            .get(*len..)
            .and_then(|rest| rest.first_chunk::<TAG_BYTES>())
            .ok_or(Malformed::Short)?;
        self.ether_type = EtherType(u16::from_be_bytes([c, d]));
        *len += TAG_BYTES;
        Ok(VlanTag::from_bits(u16::from_be_bytes([a, b])))
    }

    /// Bytes that [`LinkHeader::emit`] writes.
    pub fn len(&self) -> usize {
        let tags = usize::from(self.service.is_some()) + usize::from(self.tag.is_some());
        crate::ethernet::HEADER_BYTES + tags * TAG_BYTES
    }

    /// Never; a header has bytes.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Writes the header; returns its length in bytes.
    ///
    /// # Panics
    /// If `into` is shorter than [`LinkHeader::len`].
    #[inline]
    pub fn emit(&self, into: &mut [u8]) -> usize {
        let tags = [
            (EtherType::SERVICE_VLAN, self.service),
            (EtherType::VLAN, self.tag),
        ];
        let mut ether_types = tags
            .iter()
            .filter(|(_, tag)| tag.is_some())
            .map(|(ether_type, _)| *ether_type)
            .chain([self.ether_type]);
        let ethernet = EthernetHeader {
            target: self.target,
            source: self.source,
            ether_type: ether_types.next().unwrap_or(self.ether_type),
        };
        let mut len = ethernet.emit(into);
        for tag in [self.service, self.tag].into_iter().flatten() {
            let next = ether_types.next().unwrap_or(self.ether_type);
            let bytes = into
                .get_mut(len..)
                .and_then(|rest| rest.first_chunk_mut::<TAG_BYTES>())
                .expect("the caller reserves room for the tags");
            bytes[0..2].copy_from_slice(&tag.to_bits().to_be_bytes());
            bytes[2..4].copy_from_slice(&next.0.to_be_bytes());
            len += TAG_BYTES;
        }
        len
    }
}

impl VlanTag {
    pub const fn from_bits(bits: u16) -> Self {
        let [high, _] = bits.to_be_bytes();
        Self {
            priority: high >> 5,
            drop_eligible: high & 0x10 != 0,
            id: bits & 0xfff,
        }
    }

    pub const fn to_bits(self) -> u16 {
        debug_assert!(self.priority < 8 && self.id < 4096);
        u16::from_be_bytes([(self.priority << 5) | ((self.drop_eligible as u8) << 4), 0])
            | (self.id & 0xfff)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Random, round_trip};

    #[test]
    fn headers_with_and_without_tags_are_read_as_they_were_written() {
        let mut random = Random::new(1);
        let tag = |random: &mut Random| {
            let bits = random.word();
            random.flag().then(|| VlanTag::from_bits(bits))
        };
        for _ in 0..200 {
            let header = LinkHeader {
                target: MacAddress(random.bytes()),
                source: MacAddress(random.bytes()),
                service: tag(&mut random),
                tag: tag(&mut random),
                ether_type: EtherType::IPV4,
            };
            round_trip(&header, header.len(), LinkHeader::emit, LinkHeader::parse);
        }
    }

    #[test]
    fn a_tag_has_three_fields() {
        let tag = VlanTag {
            priority: 5,
            drop_eligible: true,
            id: 0xabc,
        };
        assert_eq!(tag.to_bits(), 0xbabc);
        assert_eq!(VlanTag::from_bits(0xbabc), tag);
    }

    #[test]
    fn a_third_tag_is_left_as_payload() {
        let mut frame = [0; 22];
        frame[12..14].copy_from_slice(&[0x81, 0]);
        frame[16..18].copy_from_slice(&[0x81, 0]);
        let (header, len) = LinkHeader::parse(&frame).unwrap();
        assert_eq!((header.ether_type, len), (EtherType::VLAN, 18));
    }
}
