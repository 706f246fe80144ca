//! What is to be sent now: a SYN, text, a FIN, an acknowledgement (RFC 9293 3.8, 3.10.2).

use super::connection::{Connection, State};
use super::header::{ACK, FIN, PSH, SYN, Segment};
use super::sequence::{before, index, later, len};
use mill_runtime::time::Instant;
use mill_sim::random::Random;

impl Connection {
    /// The next segment; called again until there is none.
    pub(super) fn next_segment(&mut self, now: Instant, random: &mut Random) -> Option<Segment> {
        if let Some(reset) = self.resets.pop() {
            return Some(reset);
        }
        match self.state {
            State::Closed => None,
            State::SynSent | State::SynReceived => self.next_syn(now),
            _ => self
                .next_text(now, random)
                .or_else(|| self.next_acknowledgement()),
        }
    }

    fn next_syn(&mut self, now: Instant) -> Option<Segment> {
        if self.next != self.iss {
            return None;
        }
        let is_call = self.state == State::SynSent;
        let payload = if is_call && self.habits.data_with_syn {
            let most = usize::from(self.habits.segment_bytes_max.saturating_sub(OPTION_BYTES));
            let most = self.peer_mss.min(most);
            self.outgoing[..self.outgoing.len().min(most)].to_vec()
        } else {
            Vec::new()
        };
        let flags = if is_call { SYN } else { SYN | ACK };
        self.next = self.iss.wrapping_add(1).wrapping_add(len(payload.len()));
        let mut syn = self.segment(self.iss, flags, payload);
        if let Some(mss) = self.habits.mss {
            let [high, low] = mss.to_be_bytes();
            syn.options = vec![2, 4, high, low];
        }
        if is_call {
            syn.window = self.habits.buffer_bytes.max(1);
        }
        Some(self.sent(syn, now))
    }

    /// Text, the FIN, or both.
    fn next_text(&mut self, now: Instant, random: &mut Random) -> Option<Segment> {
        // Behind the FIN there is nothing.
        if before(self.end, self.next) {
            return None;
        }
        let available = index(self.end.wrapping_sub(self.next));
        let text = self.text_len(available, now);
        let is_last = text == available && self.closes;
        let has_fin = is_last && (text == 0 || self.habits.fin_with_data);
        if text == 0 && !has_fin {
            return None;
        }
        let cut = if self.habits.cuts_at_random && text > 1 {
            let most = u64::try_from(text - 1).unwrap_or(0);
            1 + usize::try_from(random.up_to(most)).unwrap_or(0)
        } else {
            text
        };
        let has_fin = has_fin && cut == text;
        let first = index(self.next.wrapping_sub(self.base));
        let payload = self.outgoing[first..first + cut].to_vec();
        let flags = ACK | if cut > 0 { PSH } else { 0 } | if has_fin { FIN } else { 0 };
        let segment = self.segment(self.next, flags, payload);
        self.next = self.next.wrapping_add(segment.seq_len());
        self.may_probe = false;
        Some(self.sent(segment, now))
    }

    /// Bytes that may be sent now, of so many that wait.
    fn text_len(&mut self, available: usize, now: Instant) -> usize {
        let most = self
            .peer_mss
            .min(usize::from(self.habits.segment_bytes_max))
            .max(1);
        let flight = if self.timeouts > 0 {
            1
        } else {
            index(self.habits.flight_max)
        };
        let in_flight = index(self.next.wrapping_sub(self.una));
        let window = index(self.window);
        if window == 0 && in_flight == 0 && available > 0 {
            // The timer has the closed window probed (RFC 9293 3.8.6.1).
            if self.timer.is_none() && !self.may_probe {
                self.arm(now);
            }
            return usize::from(self.may_probe);
        }
        let usable = window.min(flight * most).saturating_sub(in_flight);
        available.min(most).min(usable)
    }

    fn next_acknowledgement(&mut self) -> Option<Segment> {
        if !self.acks_now || self.inbound.is_none() {
            return None;
        }
        let segment = self.segment(self.sendable_number(), ACK, Vec::new());
        self.note_told(&segment);
        Some(segment)
    }

    /// Notes that a segment with numbers of its own leaves.
    fn sent(&mut self, segment: Segment, now: Instant) -> Segment {
        self.sent = later(self.sent, self.next);
        self.note_told(&segment);
        if self.timer.is_none() {
            self.arm(now);
        }
        segment
    }

    /// Notes what a segment tells the peer of what came.
    fn note_told(&mut self, segment: &Segment) {
        if !segment.has(ACK) {
            return;
        }
        self.acks_now = false;
        self.ack_at = None;
        self.unacknowledged = 0;
        let edge = segment.ack.wrapping_add(u32::from(segment.window));
        self.told_edge = Some(self.told_edge.map_or(edge, |told| later(told, edge)));
    }
}

/// Bytes of the one option of a SYN.
const OPTION_BYTES: u16 = 4;
