//! A TCP segment arrives: checksum, flow, and whatever stands for it (RFC 9293 3.10.7).

use crate::drop_reason::DropReason;
use crate::flow::Flow;
use crate::flow_table::Target;
use crate::host::Host;
use crate::link::{FrameId, Link, ReceivedChecksum};
use crate::queue::SendQueue;
use crate::receive::Packet;
use crate::unread::Unread;
use core::ops::Range;
use mill_tcp::arrived::{Events, SegmentDrop};
use mill_tcp::closed::reset_for;
use mill_tcp::segment::{Segment, SegmentOut};
use mill_tcp::time_wait::TimeWaitOutcome;
use mill_wire::checksum::{Sum, is_partial, verify};
use mill_wire::protocol::Protocol;
use mill_wire::tcp::{CHECKSUM_OFFSET, Flags, TcpHeader};

impl<Q: SendQueue> Host<Q> {
    /// Takes a segment; says whether its frame is held for a reader.
    #[inline]
    pub(crate) fn on_tcp<L: Link>(&mut self, link: &mut L, packet: &Packet) -> bool {
        let frame = link.frame(packet.frame);
        let bytes = frame.get(packet.body.clone()).unwrap_or_default();
        if !is_checksum_right(packet, bytes) {
            self.drop_frame(DropReason::Checksum);
            return false;
        }
        let Ok((header, len)) = TcpHeader::parse(bytes) else {
            self.drop_frame(DropReason::Malformed);
            return false;
        };
        let flow = Flow {
            local: packet.target,
            remote: packet.source,
            local_port: header.target,
            remote_port: header.source,
        };
        let segment = Segment {
            seq: header.seq,
            ack: header.ack,
            flags: header.flags,
            window: header.window,
            urgent: header.urgent,
            options: &header.options,
            payload: bytes.get(len..).unwrap_or_default(),
            ecn: packet.ecn,
            merged: packet.merged,
        };
        let hash = flow.table_hash(self.secrets.table);
        let index = match self.find(&flow, hash) {
            Some(Target::Connection(index)) => Some(index),
            Some(Target::HalfOpen(index)) => self.on_half_open_segment(index, hash, &segment),
            Some(Target::TimeWait(number)) => {
                self.on_time_wait_segment(number, &flow, hash, &segment);
                None
            }
            None => self.on_unknown_segment(&flow, hash, &segment),
        };
        let Some(index) = index else { return false };
        let payload_at = packet.body.start + len;
        let news = self.on_connection_segment(index, &segment);
        let mut is_held = false;
        if news.events.has_any(Events::READABLE) {
            let deliver = payload_at + news.deliver.start..payload_at + news.deliver.end;
            is_held = self.deliver_all(link, index, packet.frame, deliver);
        }
        // Last, because what has ended has no bytes to reassemble any more: those that came before FIN are the reader's.
        if news.events.has_any(LOUD) {
            self.on_events(index, news.events);
        }
        self.arm(index);
        is_held
    }

    /// What TCP makes of a segment: which part of its payload is for the reader, and what has happened besides.
    #[inline]
    fn on_connection_segment(&mut self, index: u32, segment: &Segment<'_>) -> News {
        let Some(slot) = self.slots.at_mut(index) else {
            return News::default();
        };
        let is_full = !segment.payload.is_empty() && self.lending.is_full();
        let without_text;
        let segment = if is_full {
            self.counters
                .count_drop(DropReason::Segment(SegmentDrop::NoBuffer));
            without_text = Segment {
                payload: &[],
                flags: segment.flags & !Flags::FIN,
                ..*segment
            };
            &without_text
        } else {
            segment
        };
        let env = &mut self.lending.env(slot.config, self.now);
        let arrived = slot.connection.on_segment(segment, env);
        self.lending
            .count_reassembly(&mut slot.reassembly_bytes, &slot.connection);
        if arrived.acked > 0 {
            slot.acked += u64::from(arrived.acked);
            if let Some(queue) = &mut slot.queue {
                queue.release(u64::from(arrived.acked));
            }
            self.mark_ready(index);
        }
        if let Some(reason) = arrived.dropped {
            self.drop_frame(DropReason::Segment(reason));
        }
        self.want_transmit(index);
        News {
            deliver: arrived.deliver,
            events: arrived.events,
        }
    }

    /// Gives the reader what has arrived in order, and what followed it and was here already. Says whether the frame
    /// is held.
    #[inline]
    fn deliver_all<L: Link>(
        &mut self,
        link: &mut L,
        index: u32,
        frame: FrameId,
        deliver: Range<usize>,
    ) -> bool {
        let mut is_held = false;
        if !deliver.is_empty() {
            if let Some(slot) = self.slots.at(index)
                && let Unread::Frame { id, .. } = slot.unread
            {
                self.copy_out(index, id, link);
            }
            let start = u32::try_from(deliver.start).unwrap_or(0);
            let bytes = link.frame(frame).get(deliver).unwrap_or_default();
            let may_hold = self.held.len() < HELD_MAX;
            is_held = self.deliver(index, bytes, may_hold.then_some((frame, start)));
        }
        while let Some(run) = self
            .slots
            .at_mut(index)
            .and_then(|slot| slot.connection.next_reassembled())
        {
            if let Some(slot) = self.slots.at_mut(index) {
                self.lending
                    .count_reassembly(&mut slot.reassembly_bytes, &slot.connection);
                if let Unread::Frame { id, .. } = slot.unread {
                    self.copy_out(index, id, link);
                }
            }
            self.deliver(index, &run, None);
        }
        self.mark_ready(index);
        is_held
    }

    fn on_time_wait_segment(&mut self, number: u32, flow: &Flow, hash: u64, segment: &Segment<'_>) {
        let Some(entry) = self.time_wait.at_mut(number) else {
            return;
        };
        let env = &mut self.lending.env(0, self.now);
        match entry.time_wait.on_segment(segment, env) {
            TimeWaitOutcome::Answer(answer) => self.answer(*flow, answer),
            TimeWaitOutcome::Dropped(reason) => self.drop_frame(DropReason::Segment(reason)),
            TimeWaitOutcome::Reopen { iss_after } => {
                // Without a listener the wait goes on, and the SYN is answered as any other.
                if self.listeners.find(flow.local(), hash).is_some() {
                    self.forget_time_wait(number, hash);
                    self.counters.time_waits_reopened += 1;
                    self.on_syn(flow, hash, segment, Some(iss_after));
                } else {
                    self.refuse(flow, segment, DropReason::NoListener);
                }
            }
        }
    }

    /// RFC 9293 3.10.7.1, 3.10.7.2: no connection; perhaps a listener. The connection, if the segment completes a
    /// handshake that a cookie stands for.
    fn on_unknown_segment(&mut self, flow: &Flow, hash: u64, segment: &Segment<'_>) -> Option<u32> {
        let kind = Flags::SYN | Flags::ACK | Flags::RST;
        match segment.flags & kind {
            Flags::SYN => self.on_syn(flow, hash, segment, None),
            Flags::ACK => return self.on_cookie(flow, hash, segment),
            _ => self.refuse(flow, segment, DropReason::NoListener),
        }
        None
    }

    /// Answers with a reset, unless it is one, and as far as the limit allows.
    pub(crate) fn refuse(&mut self, flow: &Flow, segment: &Segment<'_>, reason: DropReason) {
        self.drop_frame(reason);
        let Some(reset) = reset_for(segment) else {
            return;
        };
        if self.resets.take(self.limits.answers_per_second, self.now) {
            self.lending.shared.counters.resets_out += 1;
            self.answer(*flow, reset);
        } else {
            self.drop_frame(DropReason::RateLimit);
        }
    }

    /// Queues a segment that no connection's sending will give.
    pub(crate) fn answer(&mut self, flow: Flow, segment: SegmentOut) {
        if !self.answers.push(flow, segment) {
            self.drop_frame(DropReason::DeviceFull);
        }
    }
}

/// What a segment brought.
#[derive(Default)]
struct News {
    /// The part of its payload that is next in order.
    deliver: Range<usize>,
    events: Events,
}

/// Events that change what the host keeps of a connection.
const LOUD: Events = Events(!(Events::READABLE.0 | Events::ALL_ACKED.0));

fn is_checksum_right(packet: &Packet, bytes: &[u8]) -> bool {
    let pseudo_header =
        || Sum::of_pseudo_header(packet.source, packet.target, Protocol::TCP.0, bytes.len());
    match packet.checksum {
        ReceivedChecksum::Verified => true,
        ReceivedChecksum::Unverified => verify(pseudo_header(), bytes),
        ReceivedChecksum::MaybePartial => {
            is_partial(pseudo_header(), bytes, CHECKSUM_OFFSET) || verify(pseudo_header(), bytes)
        }
    }
}

/// Frames that readers may hold at once; beyond, bytes are copied. Less than any device has.
const HELD_MAX: usize = 256;
