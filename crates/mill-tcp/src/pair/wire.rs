//! The wire: what is sent is logged, cut, lost, late, doubled, marked, delivered.

use super::{Pair, Peer};
use crate::random::Random;
use crate::segment::{Ecn, Segment, SegmentOut};
use crate::time::{Duration, Instant};
use alloc::vec::Vec;
use mill_wire::tcp::Flags;

/// What happens on the way.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) delay: Duration,
    /// Segments lost, late and doubled, of a thousand.
    pub(crate) lost: u64,
    pub(crate) late: u64,
    pub(crate) doubled: u64,
    /// Marked as congested instead of lost, of a thousand that can be.
    pub(crate) marked: u64,
    /// How late a late one is.
    pub(crate) lateness: Duration,
    pub(crate) random: Random,
    /// Numbers of segments (as in `log`) that are lost in any case.
    pub(crate) lose: Vec<usize>,
    /// Segments with more bytes of options and payload are lost, without a word.
    pub(crate) carries: u16,
    pub(super) packets: Vec<Packet>,
}

#[derive(Debug)]
pub(super) struct Packet {
    pub(super) at: Instant,
    pub(super) number: usize,
    to: usize,
    segment: SegmentOut,
    payload: Vec<u8>,
}

impl Wire {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            delay: Duration::from_millis(10),
            lost: 0,
            late: 0,
            doubled: 0,
            marked: 0,
            lateness: Duration::from_millis(3),
            random: Random::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
            lose: Vec::new(),
            carries: u16::MAX,
            packets: Vec::new(),
        }
    }
}

impl Pair {
    /// Cuts the segment as a device would and puts it on the wire.
    pub(crate) fn transmit(&mut self, from: usize, whole: SegmentOut) {
        self.check_window(from, &whole);
        let mut done = 0;
        loop {
            let mss = u32::from(whole.mss).max(1);
            let len = (whole.len - done).min(mss);
            let is_last = done + len == whole.len;
            let offset = whole.offset + done;
            let mut segment = SegmentOut {
                seq: whole.seq + done,
                offset,
                len,
                ..whole
            };
            if !is_last {
                segment.flags = segment.flags & !(Flags::FIN | Flags::PSH);
            }
            let payload = self.sides[from]
                .queue
                .iter()
                .copied()
                .skip(offset as usize)
                .take(len as usize)
                .collect::<Vec<_>>();
            assert_eq!(payload.len(), len as usize, "beyond the queue: {segment:?}");
            assert!(
                segment.options.len() + payload.len() <= usize::from(self.sides[from].mss)
                    || len == 0,
                "too large: {segment:?}"
            );
            self.put_on_wire(from, segment, payload);
            done += len;
            if is_last {
                break;
            }
        }
    }

    fn put_on_wire(&mut self, from: usize, mut segment: SegmentOut, payload: Vec<u8>) {
        let number = self.log.len();
        self.log.push((self.now, from, segment));
        let wire = &mut self.wire;
        let mut happens = |share: u64| wire.random.below(1000) < share;
        let (lost, late, doubled, marked) = (
            happens(wire.lost),
            happens(wire.late),
            happens(wire.doubled),
            happens(wire.marked),
        );
        let is_too_large = segment.options.len() + payload.len() > usize::from(wire.carries);
        if lost || is_too_large || wire.lose.contains(&number) {
            return;
        }
        if marked && segment.ecn != Ecn::NotCapable {
            segment.ecn = Ecn::Congested;
        }
        let mut at = self.now + wire.delay;
        if late {
            at = at + wire.lateness;
        }
        let to = 1 - from;
        for copy in 0..=u32::from(doubled) {
            wire.packets.push(Packet {
                at: at + wire.delay * copy,
                number,
                to,
                segment,
                payload: payload.clone(),
            });
        }
    }

    pub(super) fn deliver(&mut self, number: usize) {
        let index = self
            .wire
            .packets
            .iter()
            .enumerate()
            .filter(|(_, packet)| packet.number == number)
            .min_by_key(|(_, packet)| packet.at)
            .map(|(index, _)| index)
            .unwrap();
        let packet = self.wire.packets.swap_remove(index);
        let segment = Segment {
            seq: packet.segment.seq,
            ack: packet.segment.ack,
            flags: packet.segment.flags,
            window: packet.segment.window,
            urgent: packet.segment.urgent,
            options: &packet.segment.options,
            payload: &packet.payload,
            ecn: packet.segment.ecn,
            merged: 1,
        };
        self.arrive(packet.to, &segment);
    }

    /// The edge that the peer sees never moves left (RFC 9293 3.8.6).
    fn check_window(&mut self, from: usize, segment: &SegmentOut) {
        let Peer::Open(connection) = &self.sides[from].peer else {
            return;
        };
        // A SYN that is repeated after data can't say how large the window is by now.
        if segment.flags.has_any(Flags::RST | Flags::SYN) || !segment.flags.has(Flags::ACK) {
            return;
        }
        let shift = connection.shifts.rcv();
        let edge = segment.ack + (u32::from(segment.window) << shift);
        if let Some(before) = self.sides[from].edge {
            let rounding = if self.sides[from].rounds_down {
                (1 << shift) - 1
            } else {
                0
            };
            assert!(
                (edge + rounding).is_at_or_after(before),
                "the window shrank: {segment:?}"
            );
        }
        self.sides[from].edge = Some(edge);
    }
}
