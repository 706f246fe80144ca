//! RFC 9293 3.10.7: a segment arrives.

use crate::ack::Acked;
use crate::arrived::{Arrived, Events, SegmentDrop};
use crate::connection::{Connection, ConnectionFlags};
use crate::env::Env;
use crate::segment::{Ecn, Segment};
use crate::state::State;
use mill_wire::tcp::Flags;

impl Connection {
    /// A segment of this connection. Its payload stays the caller's; what is to be kept of it is copied.
    pub fn on_segment(&mut self, segment: &Segment<'_>, env: &mut Env<'_>) -> Arrived {
        env.shared.counters.segments_in += u64::from(segment.merged.max(1));
        if self.is_next_in_order(segment) {
            return self.in_order_segment_arrives(segment, env);
        }
        match self.state {
            State::Closed => Arrived::dropped(SegmentDrop::NoConnection),
            State::SynSent => self.syn_sent_arrives(segment, env),
            _ => self.other_segment_arrives(segment, env),
        }
    }

    /// One test for nearly every data segment of a busy connection: ESTABLISHED, nothing but ACK and PSH and
    /// no news of marks, next in order, within the window, nothing out of order before it, an acknowledgement of what was sent, a
    /// timestamp that is not old, no congestion mark. Differences are gathered, so that there is one branch.
    #[inline]
    fn is_next_in_order(&self, segment: &Segment<'_>) -> bool {
        let unusual = (self.state as u32 ^ State::Established as u32)
            | u32::from((segment.flags.0 & !Flags::PSH.0) ^ (Flags::ACK | self.marks.expected()).0)
            | (segment.seq.0 ^ self.rcv.nxt().0)
            | u32::from(segment.payload.len().wrapping_sub(1) >= self.rcv.wnd() as usize)
            | u32::from(segment.ack.0.wrapping_sub(self.snd.una().0) > self.snd.in_flight())
            | u32::from(segment.ecn == Ecn::Congested)
            | u32::from(self.has_gap());
        let is_timestamp_good = match segment.options.timestamps {
            Some(stamp) => !self.ts.is_old(stamp.value),
            None => !self.flags.has(ConnectionFlags::TIMESTAMPS),
        };
        unusual == 0 && is_timestamp_good
    }

    /// The short path: RFC 9293 3.10.7.4 for a segment whose every check has succeeded.
    fn in_order_segment_arrives(&mut self, segment: &Segment<'_>, env: &mut Env<'_>) -> Arrived {
        env.shared.counters.short_path += 1;
        self.heard(segment, env);
        let acked = if self.says_nothing_new(segment) {
            self.snd.on_repeated(segment.seq);
            Acked::default()
        } else {
            self.on_ack(segment, env)
        };
        Arrived {
            deliver: self.deliver(0..segment.payload.len(), segment, env),
            acked: acked.bytes,
            events: self.acked_events(&acked) | Events::READABLE,
            dropped: None,
        }
    }

    /// Nothing acknowledged, and the window's right edge where it was.
    fn says_nothing_new(&self, segment: &Segment<'_>) -> bool {
        self.snd.repeats(segment.ack, self.window_of(segment)) && segment.options.sack.is_empty()
    }

    /// RFC 9293 3.10.7.4, whole.
    fn other_segment_arrives(&mut self, segment: &Segment<'_>, env: &mut Env<'_>) -> Arrived {
        if let Some(end) = self.refuse(segment, env) {
            return end;
        }
        self.heard(segment, env);
        let mut arrived = Arrived::default();
        let acked = if self.is_fast_open() {
            arrived.events |= Events::ESTABLISHED;
            self.fast_open_acknowledged(env);
            let acked = self.on_ack(segment, env);
            self.flags.set(ConnectionFlags::FAST_OPEN, false);
            acked
        } else if self.state == State::SynReceived {
            arrived.events |= Events::ESTABLISHED;
            self.syn_acknowledged(segment, env)
        } else {
            self.on_ack(segment, env)
        };
        arrived.acked = acked.bytes;
        arrived.events |= self.acked_events(&acked);
        arrived.events |= self.fin_acknowledged(&acked, env);
        if self.state == State::Closed {
            return arrived;
        }
        self.note_congestion_mark(segment);
        // Sixth: urgent data stays where it is in the stream (RFC 6093 6): the pointer is not looked at.
        let text_at = segment.seq + u32::from(segment.flags.has(Flags::SYN));
        self.take_text(segment, text_at, &mut arrived, env);
        self.release_cold(env);
        arrived
    }

    pub(crate) fn acked_events(&self, acked: &Acked) -> Events {
        let mut events = Events::default();
        if acked.bytes > 0 && self.snd.is_all_acknowledged() {
            events |= Events::ALL_ACKED;
        }
        if self.has_path_news() {
            events |= Events::PATH_MTU;
        }
        events
    }
}

#[cfg(test)]
mod tests;
