//! Whether a segment is acceptable (RFC 9293 3.4, 3.10.7.4, first; RFC 7323 5.3; RFC 5961 4, 5).
//!
//! ```text
//!                rcv_nxt                          rcv_adv
//! ---------------|--------------------------------|------------
//!  [ duplicate )                                                  answered, D-SACK
//!         [ overlaps )                                            trimmed
//!                [ next in order )   [ ahead )
//!                                                 [ beyond )      answered
//! ```

use crate::arrived::{Arrived, SegmentDrop};
use crate::connection::{Connection, ConnectionFlags};
use crate::env::Env;
use crate::segment::Segment;
use crate::state::State;
use mill_wire::tcp::Flags;

impl Connection {
    /// First to fifth step of RFC 9293 3.10.7.4, up to the acknowledgement: `Some` if the segment ends here.
    pub(crate) fn refuse(&mut self, segment: &Segment<'_>, env: &mut Env<'_>) -> Option<Arrived> {
        let is_reset = segment.flags.has(Flags::RST);
        if !is_reset && self.lacks_timestamp(segment) {
            env.shared.counters.paws_drops += 1;
            return Some(Arrived::dropped(SegmentDrop::Paws));
        }
        // RFC 7323 5.3 R1: before the sequence number; RST is exempt (5.2).
        if !is_reset && self.is_timestamp_old(segment, env.tick()) {
            env.shared.counters.paws_drops += 1;
            self.answer_unacceptable(segment, env);
            return Some(Arrived::dropped(SegmentDrop::Paws));
        }
        if is_reset {
            return Some(self.reset_arrives(segment, env));
        }
        if segment.flags.has(Flags::SYN) && self.is_fast_open() {
            return Some(self.fast_open_syn_again());
        }
        // RFC 5961 4.2: whatever its number. The SYN-ACK of a simultaneous open is the one SYN that is expected.
        if segment.flags.has(Flags::SYN) && !self.is_simultaneous_syn_ack(segment) {
            self.challenge(env);
            return Some(Arrived::dropped(SegmentDrop::BlindSyn));
        }
        if let Some(why) = self.unacceptable(segment) {
            if why == SegmentDrop::Duplicate {
                self.note_duplicate(segment.seq, segment.seq + segment.len(), env);
            }
            self.answer_unacceptable(segment, env);
            return Some(Arrived::dropped(why));
        }
        if !segment.flags.has(Flags::ACK) {
            return Some(Arrived::dropped(SegmentDrop::NoAck));
        }
        self.refuse_ack(segment, env)
    }

    /// RFC 9293 3.10.7.4, first. Two cases are more liberal than its table, as in Linux: a segment that begins before
    /// the window and ends behind it overlaps it; and one without data exactly at the right edge is what a
    /// peer sends that has filled the window.
    fn unacceptable(&self, segment: &Segment<'_>) -> Option<SegmentDrop> {
        if self.is_simultaneous_syn_ack(segment) {
            return None;
        }
        let len = segment.len();
        if len == 0 {
            if segment.seq.is_before(self.rcv.nxt()) || segment.seq.is_after(self.rcv.adv()) {
                return Some(SegmentDrop::OutsideWindow);
            }
            return None;
        }
        if (segment.seq + len).is_at_or_before(self.rcv.nxt()) {
            return Some(SegmentDrop::Duplicate);
        }
        // A window of zero still takes the ACK of what is next in order, and RST; its data is dropped later.
        let is_next = segment.seq.is_at_or_before(self.rcv.nxt());
        if segment.seq.is_at_or_after(self.rcv.adv()) && !is_next {
            return Some(SegmentDrop::OutsideWindow);
        }
        None
    }

    /// SYN-ACK of a peer that opened at the same time: its SYN came before, and the acknowledgement is what is new.
    pub(crate) fn is_simultaneous_syn_ack(&self, segment: &Segment<'_>) -> bool {
        self.state == State::SynReceived
            && segment.flags.has(Flags::SYN | Flags::ACK)
            && segment.seq + 1 == self.rcv.nxt()
    }

    /// RFC 9293 3.10.7.4, fifth, with the range of RFC 5961 5.2.
    fn refuse_ack(&mut self, segment: &Segment<'_>, env: &mut Env<'_>) -> Option<Arrived> {
        if self.state == State::SynReceived {
            let is_known = segment.ack.is_at_or_after(self.snd.una())
                && segment
                    .ack
                    .is_at_or_before(self.snd.nxt() + self.syn_text());
            // Fast Open counts from behind the SYN.
            if is_known && (segment.ack != self.snd.una() || self.is_fast_open()) {
                return None;
            }
            self.answer_with_reset(segment.ack);
            return Some(Arrived::dropped(SegmentDrop::BadAck));
        }
        if self.snd.is_acceptable_ack(segment.ack) {
            return None;
        }
        self.challenge(env);
        Some(Arrived::dropped(SegmentDrop::BadAck))
    }

    /// A duplicate came: the acknowledgement goes out at once (RFC 5681 4.2) and says so (RFC 2883 4).
    pub(crate) fn note_duplicate(
        &mut self,
        start: mill_wire::seq::SeqNumber,
        end: mill_wire::seq::SeqNumber,
        env: &mut Env<'_>,
    ) {
        self.flags.set(ConnectionFlags::ACK_NOW, true);
        if self.flags.has(ConnectionFlags::SACK) && start.is_before(end) {
            self.cold_part(env).reassembly.note_duplicate(start, end);
        }
    }
}

#[cfg(test)]
mod tests;
