//! TIME-WAIT, in as few bytes as it needs (RFC 9293 3.6.1, 3.10.7.4; RFC 6191; RFC 1337).

use crate::arrived::SegmentDrop;
use crate::challenge::allows_challenge;
use crate::connection::{Connection, ConnectionFlags};
use crate::env::Env;
use crate::segment::{Segment, SegmentOut};
use crate::time::Tick;
use crate::timestamps::{self, TimestampState};
use mill_wire::seq::SeqNumber;
use mill_wire::tcp::Flags;
use mill_wire::tcp_option::TcpOptions;

/// What is left of a connection whose both sides have finished. With its key at most 64 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeWait {
    pub snd_nxt: SeqNumber,
    pub rcv_nxt: SeqNumber,
    /// Window of the last segment, not scaled again.
    pub window: u16,
    pub timestamps: bool,
    pub ts: TimestampState,
    /// When it is over.
    pub ends_at: Tick,
}

/// What a segment meant in TIME-WAIT.
#[derive(Debug, PartialEq, Eq)]
pub enum TimeWaitOutcome {
    /// The peer's FIN again: acknowledged, and the wait begins anew.
    Answer(SegmentOut),
    /// A SYN that can't be an old one (RFC 6191, RFC 9293 3.6.1): the entry is to be forgotten and the SYN given to
    /// the listener, with an ISS beyond this.
    Reopen {
        iss_after: SeqNumber,
    },
    /// The peer has reset it: the entry is to be forgotten.
    Reset,
    Dropped(SegmentDrop),
}

impl TimeWait {
    /// From a connection that said `Events::TIME_WAIT`.
    pub fn new(connection: &Connection, env: &mut Env<'_>) -> Self {
        Self {
            snd_nxt: connection.snd.nxt(),
            rcv_nxt: connection.rcv.nxt(),
            window: connection.rcv.window_field(connection.shifts.rcv()),
            timestamps: connection.flags.has(ConnectionFlags::TIMESTAMPS),
            ts: connection.ts,
            ends_at: env.tick().after(env.config.msl * 2),
        }
    }

    /// Whether a segment lies behind the peer's FIN, so that it is not of this connection: the peer uses the same addresses and ports
    /// for a later one.
    pub fn is_of_later(&self, segment: &Segment<'_>) -> bool {
        segment.seq.is_after(self.rcv_nxt)
    }

    pub fn on_segment(&mut self, segment: &Segment<'_>, env: &mut Env<'_>) -> TimeWaitOutcome {
        if segment.flags.has(Flags::RST) {
            return self.on_reset(segment, env);
        }
        if segment.flags.has(Flags::SYN) {
            return self.on_syn(segment, env);
        }
        // RFC 7323 3.2: silently.
        if self.timestamps && segment.options.timestamps.is_none() {
            return TimeWaitOutcome::Dropped(SegmentDrop::Paws);
        }
        let is_old = self.ts.is_segment_old(self.timestamps, segment);
        // RFC 9293 3.10.7.4: what lies before the window is answered, whatever its flags (first); of the rest a segment
        // without ACK is dropped (fifth). It does not make the wait begin anew, which comes later; so Linux does.
        if !segment.flags.has(Flags::ACK) {
            let is_before = (segment.seq + segment.len()).is_at_or_before(self.rcv_nxt);
            return if is_before && !segment.is_empty() {
                TimeWaitOutcome::Answer(self.ack(env))
            } else {
                TimeWaitOutcome::Dropped(SegmentDrop::NoAck)
            };
        }
        // RFC 9293 3.10.7.4, eighth: the peer has not got our last acknowledgement; the wait begins anew.
        let is_last_fin =
            segment.flags.has(Flags::FIN) && segment.seq + segment.len() == self.rcv_nxt;
        if is_last_fin && !is_old {
            self.ends_at = env.tick().after(env.config.msl * 2);
            return TimeWaitOutcome::Answer(self.ack(env));
        }
        // What occupies sequence space is answered. A bare acknowledgement is not: two ends that wait would go on
        // for ever.
        if !segment.is_empty() {
            return TimeWaitOutcome::Answer(self.ack(env));
        }
        TimeWaitOutcome::Dropped(if is_old {
            SegmentDrop::Paws
        } else {
            SegmentDrop::Duplicate
        })
    }

    /// RFC 9293 3.10.7.4, second, with the exact number of RFC 5961 3.2: a peer that is in SYN-SENT answers our
    /// acknowledgement so, and can then open its connection. An old RST could end the wait too early (RFC 1337).
    fn on_reset(&self, reset: &Segment<'_>, env: &mut Env<'_>) -> TimeWaitOutcome {
        let is_believed =
            reset.seq == self.rcv_nxt && !self.ts.is_segment_old(self.timestamps, reset);
        if !is_believed || env.config.rfc1337 {
            return TimeWaitOutcome::Dropped(SegmentDrop::BlindReset);
        }
        env.shared.counters.resets_in += 1;
        TimeWaitOutcome::Reset
    }

    /// RFC 6191 3; RFC 9293 3.6.1: a SYN that is later than all there was opens a new connection.
    fn on_syn(&self, syn: &Segment<'_>, env: &mut Env<'_>) -> TimeWaitOutcome {
        let is_later_number = syn.seq.is_after(self.rcv_nxt);
        let is_later = match (self.timestamps, syn.options.timestamps) {
            (true, Some(stamp)) => {
                let recent = self.ts.recent();
                timestamps::is_before(recent, stamp.value)
                    || (stamp.value == recent && is_later_number)
            }
            _ => is_later_number,
        };
        if is_later && !syn.flags.has(Flags::ACK) {
            return TimeWaitOutcome::Reopen {
                iss_after: self.snd_nxt,
            };
        }
        if allows_challenge(env) {
            return TimeWaitOutcome::Answer(self.ack(env));
        }
        TimeWaitOutcome::Dropped(SegmentDrop::BlindSyn)
    }

    fn ack(&self, env: &mut Env<'_>) -> SegmentOut {
        env.shared.counters.segments_out += 1;
        env.shared.counters.acks_out += 1;
        SegmentOut {
            seq: self.snd_nxt,
            ack: self.rcv_nxt,
            flags: Flags::ACK,
            window: self.window,
            options: TcpOptions {
                timestamps: self.timestamps.then(|| self.ts.option_at(env.tick())),
                ..TcpOptions::default()
            },
            ..SegmentOut::default()
        }
    }
}

#[cfg(test)]
mod tests;
