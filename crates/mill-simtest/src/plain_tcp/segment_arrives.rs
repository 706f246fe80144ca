//! SEGMENT ARRIVES (RFC 9293 3.10.7), in the order of its paragraphs.

use super::connection::{Connection, State};
use super::header::{ACK, FIN, RST, SYN, Segment};
use super::inbound::Inbound;
use super::sequence::{before, index};
use mill_runtime::time::Instant;

impl Connection {
    pub(super) fn on_segment(&mut self, segment: &Segment, now: Instant) {
        if !self.is_lawful(segment) {
            return;
        }
        if self.state == State::SynSent {
            self.on_answer(segment, now);
        } else {
            self.on_synchronized(segment, now);
        }
    }

    /// 3.10.7.2: the SYN that a listener has waited for.
    pub(super) fn on_first_syn(&mut self, segment: &Segment, now: Instant) {
        if self.is_lawful(segment) {
            self.take_syn(segment, now);
        }
    }

    /// Whether it breaks no rule; the first that it breaks is noted.
    fn is_lawful(&mut self, segment: &Segment) -> bool {
        let Err(what) = self.examiner.examine(segment, &self.told()) else {
            return true;
        };
        if self.fault.is_none() {
            self.fault = Some(format!("{what}: {segment:?}"));
        }
        false
    }

    /// 3.10.7.3: SYN-SENT.
    fn on_answer(&mut self, segment: &Segment, now: Instant) {
        let is_ack_acceptable =
            segment.has(ACK) && before(self.iss, segment.ack) && !before(self.sent, segment.ack);
        if segment.has(ACK) && !is_ack_acceptable {
            if !segment.has(RST) {
                self.resets.push(answer_to_stranger(segment));
            }
            return;
        }
        if segment.has(RST) {
            if is_ack_acceptable {
                self.end_as("refused");
            }
            return;
        }
        if !segment.has(SYN) {
            return;
        }
        self.take_syn(segment, now);
        if is_ack_acceptable {
            self.take_ack(segment, now);
            self.establish();
        } else {
            // Both have called at the same time.
            self.state = State::SynReceived;
            self.next = self.iss;
        }
    }

    fn take_syn(&mut self, segment: &Segment, now: Instant) {
        self.inbound = Some(Inbound::new(segment.seq, &self.habits));
        if let Some(mss) = segment.mss() {
            self.peer_mss = usize::from(mss).max(1);
        }
        self.window = u32::from(segment.window);
        self.wl1 = segment.seq;
        self.wl2 = segment.ack;
        self.heard_at = now;
        self.acks_now = self.state == State::SynSent;
    }

    fn establish(&mut self) {
        self.state = if self.closes {
            State::FinWait1
        } else {
            State::Established
        };
    }

    /// 3.10.7.4: all other states.
    fn on_synchronized(&mut self, segment: &Segment, now: Instant) {
        let Some(inbound) = &self.inbound else {
            return;
        };
        let next = inbound.next;
        if self.state == State::SynReceived && segment.has(SYN) && before(segment.seq, next) {
            // Our own SYN was lost on its way.
            self.next = self.iss;
            return;
        }
        if !is_acceptable(inbound, segment) {
            self.acks_now |= !segment.has(RST);
            self.note_time_wait(segment, now);
            return;
        }
        self.heard_at = now;
        if segment.has(RST) {
            // RFC 5961 3.2: only at exactly the next number.
            if segment.seq == next {
                self.end_as("reset");
            } else {
                self.acks_now = true;
            }
            return;
        }
        if segment.has(SYN) {
            self.acks_now = true;
            return;
        }
        if self.state == State::SynReceived {
            if !before(self.una, segment.ack) || before(self.sent, segment.ack) {
                self.resets.push(answer_to_stranger(segment));
                return;
            }
            self.window = u32::from(segment.window);
            self.establish();
        }
        self.take_ack(segment, now);
        self.follow_fin(now);
        if self.state != State::Closed {
            self.take_text(segment, now);
        }
    }

    /// Fifth: what is acknowledged, and the window.
    fn take_ack(&mut self, segment: &Segment, now: Instant) {
        // What acknowledges more is newer, whatever its number: with the old window the edge would move on with SND.UNA.
        let is_progress = before(self.una, segment.ack);
        if is_progress {
            self.una = segment.ack;
            if before(self.next, self.una) {
                self.next = self.una;
            }
            let gone = index(segment.ack.wrapping_sub(self.base));
            // The SYN is one before the first byte, the FIN one behind the last.
            if before(self.base, segment.ack) {
                let gone = gone.min(self.outgoing.len());
                self.outgoing.drain(..gone);
                self.base = self.base.wrapping_add(super::sequence::len(gone));
            }
            self.timeouts = 0;
            self.timer = None;
            if self.una != self.next {
                self.arm(now);
            }
        }
        let is_newer = before(self.wl1, segment.seq)
            || self.wl1 == segment.seq && !before(segment.ack, self.wl2)
            || is_progress;
        if is_newer && !before(segment.ack, self.una) {
            if self.window == 0 && segment.window > 0 {
                // What was sent into the closed window is no reason to doubt the way.
                self.timeouts = 0;
                self.timer = None;
                if self.una != self.next {
                    self.arm(now);
                }
            }
            self.window = u32::from(segment.window);
            self.wl1 = segment.seq;
            self.wl2 = segment.ack;
        }
    }

    /// Which states the acknowledgement of our FIN leads to.
    fn follow_fin(&mut self, now: Instant) {
        if !self.is_fin_acknowledged() {
            return;
        }
        match self.state {
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => self.wait(now),
            State::LastAck => self.close(),
            _ => {}
        }
    }

    /// Seventh and eighth: text and FIN.
    fn take_text(&mut self, segment: &Segment, now: Instant) {
        let Some(inbound) = &mut self.inbound else {
            return;
        };
        if segment.payload.is_empty() && !segment.has(FIN) {
            return;
        }
        let was_finished = inbound.is_finished();
        let is_in_order = inbound.take(segment.seq, &segment.payload, segment.has(FIN));
        let is_finished = inbound.is_finished();
        self.unacknowledged += 1;
        let waits_long_enough = self.unacknowledged >= self.habits.ack_every;
        if !is_in_order || is_finished || waits_long_enough || self.habits.ack_delay.is_zero() {
            self.acks_now = true;
        } else {
            self.ack_at = self.ack_at.or(Some(now + self.habits.ack_delay));
        }
        if is_finished && !was_finished {
            match self.state {
                State::Established => self.state = State::CloseWait,
                State::FinWait1 => self.state = State::Closing,
                State::FinWait2 => self.wait(now),
                _ => {}
            }
        }
    }

    /// TIME-WAIT.
    fn wait(&mut self, now: Instant) {
        self.state = State::TimeWait;
        self.timer = None;
        self.time_wait_ends = Some(now + self.habits.msl * 2);
    }

    /// The peer's FIN has come again: its acknowledgement was lost.
    fn note_time_wait(&mut self, segment: &Segment, now: Instant) {
        if self.state == State::TimeWait && segment.has(FIN) {
            self.wait(now);
        }
    }
}

/// First: whether it lies in the window (3.10.7.4, the table of four cases).
fn is_acceptable(inbound: &Inbound, segment: &Segment) -> bool {
    let (next, edge) = (inbound.next, inbound.edge);
    let is_inside = |number| !before(number, next) && before(number, edge);
    let (seq, len) = (segment.seq, segment.seq_len());
    match (len, inbound.window()) {
        (0, 0) => seq == next,
        (_, 0) => false,
        (0, _) => is_inside(seq),
        _ => is_inside(seq) || is_inside(seq.wrapping_add(len - 1)) || covers(seq, len, next),
    }
}

/// A segment that is longer than the whole window, and begins before it.
fn covers(seq: u32, len: u32, next: u32) -> bool {
    before(seq, next) && before(next, seq.wrapping_add(len))
}

/// 3.10.7.1: the reset to a segment of an unknown connection.
pub(super) fn answer_to_stranger(segment: &Segment) -> Segment {
    let (seq, ack, flags) = if segment.has(ACK) {
        (segment.ack, 0, RST)
    } else {
        (0, segment.seq.wrapping_add(segment.seq_len()), RST | ACK)
    };
    Segment {
        source: segment.target,
        target: segment.source,
        seq,
        ack,
        flags,
        window: 0,
        urgent: 0,
        reserved: 0,
        ecn: 0,
        options: Vec::new(),
        payload: Vec::new(),
    }
}
