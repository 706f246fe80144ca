//! The link between the stack and the script: frames in memory, and a peer that answers ARP and neighbour discovery.

use crate::packet::{Ends, PROTOCOL_ICMPV6, checksum, ip_header, octets, pseudo_header};
use mill_stack::link::{
    Burst, ExternalBytes, ExternalSent, FrameId, Link, LinkProperties, Offload, Received,
    ReceivedChecksum, Stray,
};
use std::collections::VecDeque;

pub(crate) struct Wire {
    properties: LinkProperties,
    ends: Ends,
    /// Frames for the stack that it has not taken yet.
    arriving: VecDeque<Vec<u8>>,
    /// Frames that the stack holds, by number.
    lent: Vec<Option<Vec<u8>>>,
    room: Vec<u8>,
    /// IP packets that the stack sent.
    pub(crate) sent: VecDeque<Vec<u8>>,
}

const STACK: [u8; 6] = [2, 0, 0, 0, 0, 2];
const PEER: [u8; 6] = [2, 0, 0, 0, 0, 1];
const ETHERNET_BYTES: usize = 14;
const IPV4: [u8; 2] = [0x08, 0x00];
const ARP: [u8; 2] = [0x08, 0x06];
const IPV6: [u8; 2] = [0x86, 0xdd];

impl Wire {
    pub(crate) fn new(ends: Ends, mtu: u16) -> Self {
        Self {
            properties: LinkProperties {
                address: STACK,
                mtu,
                completes_checksums: false,
                segment_bytes_max: u32::from(mtu),
                cut_bytes_min: 0,
                sends_external: false,
                frames_per_turn: usize::MAX,
            },
            ends,
            arriving: VecDeque::new(),
            lent: Vec::new(),
            room: Vec::new(),
            sent: VecDeque::new(),
        }
    }

    /// Puts an IP packet on the wire, towards the stack.
    pub(crate) fn send(&mut self, packet: &[u8]) {
        let kind = if self.ends.is_ipv6() { IPV6 } else { IPV4 };
        self.arriving.push_back(framed(kind, packet));
    }

    pub(crate) fn has_arriving(&self) -> bool {
        !self.arriving.is_empty()
    }

    /// Frames that the stack has taken and not given back.
    pub(crate) fn lent_count(&self) -> usize {
        self.lent.iter().flatten().count()
    }

    fn take(&mut self, frame: Vec<u8>) {
        let kind = [frame[12], frame[13]];
        let packet = &frame[ETHERNET_BYTES..];
        if kind == ARP {
            if let Some(reply) = arp_reply(packet, &self.ends) {
                self.arriving.push_back(framed(ARP, &reply));
            }
            return;
        }
        // Neighbour discovery lies below what scripts speak of.
        if kind == IPV6 && packet.get(6) == Some(&PROTOCOL_ICMPV6) {
            match packet.get(40) {
                Some(135) => {
                    if let Some(reply) = advertisement(packet, &self.ends) {
                        self.arriving.push_back(framed(IPV6, &reply));
                    }
                    return;
                }
                Some(133 | 136 | 143) => return,
                _ => {}
            }
        }
        self.sent.push_back(packet.to_vec());
    }
}

fn framed(kind: [u8; 2], packet: &[u8]) -> Vec<u8> {
    [&STACK, &PEER, &kind[..], packet].concat()
}

/// RFC 826; the stack asks for the peer's address only.
fn arp_reply(request: &[u8], ends: &Ends) -> Option<Vec<u8>> {
    let peer = octets(ends.peer);
    if request.get(6..8) != Some(&[0, 1]) || request.get(24..28) != Some(&peer[..]) {
        return None;
    }
    let asking = request.get(8..18)?;
    Some([&[0, 1, 8, 0, 6, 4, 0, 2], &PEER[..], &peer, asking].concat())
}

/// RFC 4861 4.4: solicited, overriding, with the link-layer address.
fn advertisement(solicitation: &[u8], ends: &Ends) -> Option<Vec<u8>> {
    let target = solicitation.get(48..64)?;
    if target != octets(ends.peer) {
        return None;
    }
    let head = [136, 0, 0, 0, 0x60, 0, 0, 0];
    let mut message = [&head[..], target, &[2, 1], &PEER].concat();
    let pseudo = pseudo_header(ends.peer, ends.local, PROTOCOL_ICMPV6, message.len());
    let sum = checksum(&[&pseudo, &message]);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut packet = ip_header(ends.peer, ends.local, PROTOCOL_ICMPV6, 0, message.len());
    // Neighbour discovery is accepted with this hop limit only (RFC 4861 7.1.2).
    packet[7] = 255;
    packet.extend(message);
    Some(packet)
}

impl Link for Wire {
    fn properties(&self) -> &LinkProperties {
        &self.properties
    }

    fn receive(&mut self, burst: &mut Burst) {
        while burst.room() > 0
            && let Some(frame) = self.arriving.pop_front()
        {
            let id = FrameId(u32::try_from(self.lent.len()).expect("scripts are short"));
            self.lent.push(Some(frame));
            burst.push(Received {
                id,
                checksum: ReceivedChecksum::Unverified,
                merged: 1,
            });
        }
    }

    fn frame(&mut self, id: FrameId) -> &mut [u8] {
        let frame = self.lent[id.0 as usize].as_mut();
        frame.expect("the stack looks into frames that it holds only")
    }

    fn release(&mut self, id: FrameId) {
        let frame = self.lent[id.0 as usize].take();
        assert!(frame.is_some(), "the stack gives a frame back once");
    }

    fn reserve(&mut self, len_max: usize) -> Option<&mut [u8]> {
        // The former contents of the frame must not matter.
        self.room.clear();
        self.room.resize(len_max, 0xa5);
        Some(&mut self.room)
    }

    fn transmit(&mut self, len: usize, offload: Offload) {
        assert_eq!(
            offload,
            Offload::default(),
            "this device does nothing itself"
        );
        let mtu = usize::from(self.properties.mtu);
        assert!(len <= ETHERNET_BYTES + mtu, "a frame larger than the MTU");
        let frame = self.room[..len].to_vec();
        self.take(frame);
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
