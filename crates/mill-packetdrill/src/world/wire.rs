//! A wire without a device: the stack speaks Ethernet, packetdrill speaks IP.

use mill_stack::link::{
    Burst, ExternalBytes, ExternalSent, FrameId, Link, LinkProperties, Offload, Received,
    ReceivedChecksum, Stray,
};
use std::collections::VecDeque;

#[derive(Debug)]
pub(crate) struct Wire {
    properties: LinkProperties,
    arriving: VecDeque<Vec<u8>>,
    lent: Vec<Option<Vec<u8>>>,
    room: Vec<u8>,
    sent: VecDeque<Vec<u8>>,
}

const STACK: [u8; 6] = [2, 0, 0, 0, 0, 2];
const GATEWAY: [u8; 6] = [2, 0, 0, 0, 0, 1];
const ETHERNET_BYTES: usize = 14;
const IPV4: [u8; 2] = [0x08, 0x00];
const ARP: [u8; 2] = [0x08, 0x06];
const IPV6: [u8; 2] = [0x86, 0xdd];

impl Wire {
    pub(crate) const fn new(mtu: u16) -> Self {
        Self {
            properties: LinkProperties {
                address: STACK,
                mtu,
                completes_checksums: false,
                segment_bytes_max: mtu as u32,
                cut_bytes_min: 0,
                sends_external: false,
                frames_per_turn: usize::MAX,
            },
            arriving: VecDeque::new(),
            lent: Vec::new(),
            room: Vec::new(),
            sent: VecDeque::new(),
        }
    }

    pub(crate) const fn link(&self) -> &LinkProperties {
        &self.properties
    }

    /// An IP packet for the stack.
    pub(crate) fn push(&mut self, packet: &[u8]) {
        let is_ipv6 = packet.first().is_some_and(|first| first >> 4 == 6);
        let kind = if is_ipv6 { IPV6 } else { IPV4 };
        self.arriving.push_back(framed(kind, packet));
    }

    pub(crate) fn has_arriving(&self) -> bool {
        !self.arriving.is_empty()
    }

    /// IP packets of the stack.
    pub(crate) fn take_sent(&mut self) -> impl Iterator<Item = Vec<u8>> {
        self.sent.drain(..)
    }

    fn take(&mut self, frame: &[u8]) {
        let Some((header, packet)) = frame.split_at_checked(ETHERNET_BYTES) else {
            return;
        };
        let kind = [header[12], header[13]];
        if kind == ARP {
            self.arriving.extend(arp_reply(packet));
        } else if kind == IPV6 && is_discovery(packet) {
            self.arriving.extend(advertisement(packet));
        } else {
            self.sent.push_back(packet.to_vec());
        }
    }
}

fn framed(kind: [u8; 2], packet: &[u8]) -> Vec<u8> {
    [&STACK, &GATEWAY, &kind[..], packet].concat()
}

/// RFC 826: every address is at the gateway's Ethernet address, except the one that asks for itself.
fn arp_reply(request: &[u8]) -> Option<Vec<u8>> {
    let is_request = request.get(6..8)? == [0, 1];
    let asking = request.get(8..18)?;
    let target = request.get(24..28)?;
    if !is_request || asking.get(6..)? == target {
        return None;
    }
    let head = [0, 1, 8, 0, 6, 4, 0, 2];
    Some(framed(ARP, &[&head, &GATEWAY[..], target, asking].concat()))
}

/// ICMPv6 of types 133 to 137 (RFC 4861) and 143 (RFC 3810).
fn is_discovery(packet: &[u8]) -> bool {
    packet.get(6) == Some(&58) && matches!(packet.get(40), Some(133..=137 | 143))
}

/// RFC 4861 4.4: the answer to a solicitation for any address except the sender's own.
fn advertisement(solicitation: &[u8]) -> Option<Vec<u8>> {
    let asking = solicitation.get(8..24)?;
    let target = solicitation.get(48..64)?;
    let is_detection = asking.iter().all(|byte| *byte == 0);
    if solicitation.get(40) != Some(&135) || is_detection || asking == target {
        return None;
    }
    let head = [136, 0, 0, 0, 0x60, 0, 0, 0];
    let mut message = [&head[..], target, &[2, 1], &GATEWAY].concat();
    let len = u8::try_from(message.len()).ok()?;
    let pseudo = [target, asking, &[0, 0, 0, len, 0, 0, 0, 58]].concat();
    let sum = checksum(&[&pseudo[..], &message].concat());
    message.get_mut(2..4)?.copy_from_slice(&sum.to_be_bytes());
    // Believed with a hop limit of 255 only (RFC 4861 7.1.2).
    let header = [0x60, 0, 0, 0, 0, len, 58, 255];
    Some(framed(
        IPV6,
        &[&header[..], target, asking, &message].concat(),
    ))
}

/// RFC 1071.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| {
        let low = pair.get(1).copied().unwrap_or(0);
        u32::from(u16::from_be_bytes([pair[0], low]))
    });
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    !u16::try_from(folded).unwrap_or(u16::MAX)
}

impl Link for Wire {
    fn properties(&self) -> &LinkProperties {
        &self.properties
    }

    fn receive(&mut self, burst: &mut Burst) {
        while burst.room() > 0
            && let Some(frame) = self.arriving.pop_front()
        {
            let vacant = self.lent.iter().position(Option::is_none);
            let index = vacant.unwrap_or_else(|| {
                self.lent.push(None);
                self.lent.len() - 1
            });
            self.lent[index] = Some(frame);
            burst.push(Received {
                id: FrameId(u32::try_from(index).unwrap_or(u32::MAX)),
                checksum: ReceivedChecksum::Unverified,
                merged: 1,
            });
        }
    }

    fn frame(&mut self, id: FrameId) -> &mut [u8] {
        let frame = self.lent.get_mut(id.0 as usize).and_then(Option::as_mut);
        frame.map_or(&mut [], Vec::as_mut_slice)
    }

    fn release(&mut self, id: FrameId) {
        if let Some(frame) = self.lent.get_mut(id.0 as usize) {
            *frame = None;
        }
    }

    fn reserve(&mut self, len_max: usize) -> Option<&mut [u8]> {
        self.room.clear();
        self.room.resize(len_max, 0);
        Some(&mut self.room)
    }

    fn transmit(&mut self, len: usize, offload: Offload) {
        debug_assert_eq!(offload, Offload::default());
        let frame = self.room.get(..len).unwrap_or_default().to_vec();
        self.take(&frame);
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
