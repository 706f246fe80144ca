//! IP packets that belong to no connection: echo replies, errors, datagrams. They wait here for the device, or for
//! their next hop's address, and are cut into fragments if they are longer than the path carries.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use mill_tcp::random::Random;
use mill_wire::ipv4::{self, Ecn, Ipv4Header};
use mill_wire::ipv6::{self, Ipv6Header};
use mill_wire::ipv6_extension::{FRAGMENT_HEADER_BYTES, FragmentHeader};
use mill_wire::protocol::Protocol;

/// Packets in the order in which they were made, a bounded number of them. Their memory is used again.
#[derive(Debug)]
pub struct Outbox {
    queue: VecDeque<Packet>,
    queued_bytes: usize,
    vacant: Vec<Vec<u8>>,
    /// The packet under construction.
    payload: Vec<u8>,
    random: Random,
    /// Datagrams that were not sent because too many were waiting.
    pub dropped: u64,
}

/// The fields of a datagram's IP header.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// Of one family.
    pub source: IpAddr,
    pub target: IpAddr,
    pub protocol: Protocol,
    pub ecn: Ecn,
}

/// The result of offering a packet to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    Sent,
    /// Its next hop is being resolved: it waits for [`Outbox::wake`] or [`Outbox::forget`].
    Unresolved(IpAddr),
    /// There is no route for it.
    Lost,
    /// The device takes no more for now.
    Full,
}

#[derive(Debug)]
struct Packet {
    target: IpAddr,
    bytes: Vec<u8>,
    /// The next hop that it waits for.
    parked_for: Option<IpAddr>,
}

impl Outbox {
    /// The seed is for the numbers of fragmented datagrams.
    pub const fn new(seed: u64) -> Self {
        Self {
            queue: VecDeque::new(),
            queued_bytes: 0,
            vacant: Vec::new(),
            payload: Vec::new(),
            random: Random::new(seed),
            dropped: 0,
        }
    }

    /// Makes one datagram: `fill` appends what follows the IP header, its checksum included. Packets have up to `mtu`
    /// bytes. Says whether there was room for all of it; if not, none of it is sent.
    pub fn send(&mut self, head: &Head, mtu: u16, fill: impl FnOnce(&mut Vec<u8>)) -> bool {
        let mut payload = core::mem::take(&mut self.payload);
        payload.clear();
        fill(&mut payload);
        let fits = self.queue.len() < COUNT_MAX
            && self.queued_bytes + payload.len() <= QUEUED_BYTES_MAX
            && payload.len() <= usize::from(u16::MAX) - ipv4::HEADER_BYTES;
        if fits {
            match (head.source, head.target) {
                (IpAddr::V4(source), IpAddr::V4(target)) => {
                    self.cut_v4(head, source, target, mtu, &payload);
                }
                (IpAddr::V6(source), IpAddr::V6(target)) => {
                    self.cut_v6(head, source, target, mtu, &payload);
                }
                _ => debug_assert!(false, "{head:?} is of two families"),
            }
        } else {
            self.dropped += 1;
        }
        self.payload = payload;
        fits
    }

    /// Offers all packets that do not wait for a neighbour to `offer`, with their targets, until it says that the
    /// device is full. Says whether some are left that wait for the device only.
    pub fn transmit(&mut self, mut offer: impl FnMut(IpAddr, &[u8]) -> Offered) -> bool {
        let mut at = 0;
        while let Some(packet) = self.queue.get_mut(at) {
            if packet.parked_for.is_some() {
                at += 1;
                continue;
            }
            match offer(packet.target, &packet.bytes) {
                Offered::Sent | Offered::Lost => self.remove(at),
                Offered::Unresolved(next_hop) => {
                    packet.parked_for = Some(next_hop);
                    at += 1;
                }
                Offered::Full => return true,
            }
        }
        false
    }

    /// Neighbours have answered or failed to: those that wait are offered again.
    pub fn wake(&mut self) {
        for packet in &mut self.queue {
            packet.parked_for = None;
        }
    }

    /// This next hop is no longer being resolved: packets for it are dropped.
    pub fn forget(&mut self, next_hop: IpAddr) {
        let is_lost = |packet: &Packet| packet.parked_for == Some(next_hop);
        while let Some(at) = self.queue.iter().position(is_lost) {
            self.remove(at);
            self.dropped += 1;
        }
    }

    /// Whether that many packets with that many bytes together find room. Always, if none waits.
    pub fn has_room(&self, count: usize, bytes: usize) -> bool {
        let fits =
            self.queue.len() + count <= COUNT_MAX && self.queued_bytes + bytes <= QUEUED_BYTES_MAX;
        fits || self.queue.is_empty()
    }

    /// Packets that wait, for the device or for a neighbour.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// RFC 791 2.3, RFC 1122 3.3.3.
    fn cut_v4(
        &mut self,
        head: &Head,
        source: Ipv4Addr,
        target: Ipv4Addr,
        mtu: u16,
        payload: &[u8],
    ) {
        let room = usize::from(mtu).saturating_sub(ipv4::HEADER_BYTES).max(8);
        let is_whole = payload.len() <= room;
        // RFC 6864 4.1: only fragments need a number. One that cannot be predicted keeps others from injecting
        // fragments.
        let ident = if is_whole { 0 } else { self.ident() };
        let step = if is_whole { room } else { room & !7 };
        let mut rest = payload;
        let mut offset = 0;
        loop {
            let (piece, behind) = rest.split_at(rest.len().min(step));
            let header = Ipv4Header {
                ecn: head.ecn,
                total_len: u16::try_from(ipv4::HEADER_BYTES + piece.len()).unwrap_or(u16::MAX),
                ident: u16::try_from(ident & 0xffff).unwrap_or(0),
                more_fragments: !behind.is_empty(),
                fragment_offset: offset,
                protocol: head.protocol,
                source,
                target,
                ..Ipv4Header::default()
            };
            let bytes = self.queue_packet(target.into(), ipv4::HEADER_BYTES);
            header.emit(bytes);
            bytes.extend_from_slice(piece);
            self.queued_bytes += piece.len();
            if behind.is_empty() {
                return;
            }
            rest = behind;
            offset += u16::try_from(piece.len()).unwrap_or(0);
        }
    }

    /// RFC 8200 4.5, 5.
    fn cut_v6(
        &mut self,
        head: &Head,
        source: Ipv6Addr,
        target: Ipv6Addr,
        mtu: u16,
        payload: &[u8],
    ) {
        let room = usize::from(mtu.max(ipv6::MTU_MIN)) - ipv6::HEADER_BYTES;
        let is_whole = payload.len() <= room;
        let (step, extension_len) = if is_whole {
            (room, 0)
        } else {
            ((room - FRAGMENT_HEADER_BYTES) & !7, FRAGMENT_HEADER_BYTES)
        };
        let ident = if is_whole { 0 } else { self.ident() };
        let mut rest = payload;
        let mut offset = 0;
        loop {
            let (piece, behind) = rest.split_at(rest.len().min(step));
            let header = Ipv6Header {
                ecn: head.ecn,
                payload_len: u16::try_from(extension_len + piece.len()).unwrap_or(u16::MAX),
                next_header: if is_whole {
                    head.protocol
                } else {
                    Protocol::FRAGMENT
                },
                source,
                target,
                ..Ipv6Header::default()
            };
            let bytes = self.queue_packet(target.into(), ipv6::HEADER_BYTES + extension_len);
            header.emit(bytes);
            if let Some(extension) = bytes.get_mut(ipv6::HEADER_BYTES..)
                && !is_whole
            {
                let fragment = FragmentHeader {
                    next_header: head.protocol,
                    offset,
                    more_fragments: !behind.is_empty(),
                    ident,
                };
                fragment.emit(extension);
            }
            bytes.extend_from_slice(piece);
            self.queued_bytes += piece.len();
            if behind.is_empty() {
                return;
            }
            rest = behind;
            offset += u16::try_from(piece.len()).unwrap_or(0);
        }
    }

    /// A packet at the end of the queue, with room for its headers.
    fn queue_packet(&mut self, target: IpAddr, header_len: usize) -> &mut Vec<u8> {
        let mut bytes = self.vacant.pop().unwrap_or_default();
        bytes.clear();
        bytes.resize(header_len, 0);
        self.queued_bytes += header_len;
        let packet = Packet {
            target,
            bytes,
            parked_for: None,
        };
        self.queue.push_back(packet);
        let last = self.queue.len() - 1;
        &mut self.queue[last].bytes
    }

    fn remove(&mut self, at: usize) {
        if let Some(packet) = self.queue.remove(at) {
            self.queued_bytes -= packet.bytes.len();
            if self.vacant.len() < VACANT_MAX {
                self.vacant.push(packet.bytes);
            }
        }
        debug_assert!(!self.queue.is_empty() || self.queued_bytes == 0);
    }

    fn ident(&mut self) -> u32 {
        // The high bits of the generator are its better ones.
        u32::try_from(self.random.next() >> 32).unwrap_or(1)
    }
}

/// Packets that wait; beyond, datagrams are dropped as the network might drop them. Fragments of the last one may
/// go beyond it.
const COUNT_MAX: usize = 256;

/// Bytes that wait.
const QUEUED_BYTES_MAX: usize = 1 << 20;

/// Buffers kept for the next packets.
const VACANT_MAX: usize = 64;

#[cfg(test)]
mod tests;
