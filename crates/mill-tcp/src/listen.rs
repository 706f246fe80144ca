//! The passive side of a handshake, before there is a connection (RFC 9293 3.10.7.2, 3.10.7.4; RFC 4987).

use crate::arrived::SegmentDrop;
use crate::challenge::allows_challenge;
use crate::config::EcnMode;
use crate::connection::{Connection, ConnectionFlags};
use crate::ecn::accurate::{CEP_INITIAL, CLASSIC, Feedback, ace, ace_of};
use crate::env::Env;
use crate::handshake::{Agreement, syn_ack_options, syn_window, wind_shift};
use crate::segment::{Segment, SegmentOut};
use crate::send_space::SendSpace;
use crate::time::Tick;
use crate::timestamps::TimestampState;
use mill_wire::seq::SeqNumber;
use mill_wire::tcp::Flags;
use mill_wire::tcp_option::TcpOptions;

/// A SYN that was answered: SYN-RECEIVED of a listener, in at most 64 bytes. SYN cookies make the same value from
/// the acknowledgement that comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HalfOpen {
    pub iss: SeqNumber,
    pub irs: SeqNumber,
    /// Of the peer the first timestamp.
    pub ts: TimestampState,
    /// When the SYN-ACK is to be sent again, and how often it was.
    pub retransmit_at: Tick,
    pub retransmits: u8,
    /// What the peer announced; 536 if it did not (RFC 9293 3.7.1).
    pub mss: u16,
    /// What we announced.
    pub mss_local: u16,
    /// The peer's window in its SYN, not scaled.
    pub window: u16,
    /// What both sides agreed to; `None` if not both scale.
    pub snd_wind_shift: Option<u8>,
    pub timestamps: bool,
    pub sack: bool,
    pub ecn: Feedback,
}

const _: () = assert!(size_of::<HalfOpen>() <= 64);

/// What a segment meant to a half-open connection.
#[derive(Debug)]
pub enum HalfOpenOutcome {
    /// Its handshake is complete; the segment itself is to be given to `Connection::on_segment` next, for what else
    /// it carries.
    Established(Connection),
    /// A repeated SYN, or one out of window: this is to be sent.
    Answer(SegmentOut),
    /// An acceptable RST: it is to be forgotten.
    Reset,
    /// Nothing came of it.
    Dropped(SegmentDrop),
}

impl HalfOpen {
    /// An answer to a listener's SYN, for a path on which segments of `mss_local` fit.
    pub fn on_syn(
        syn: &Segment<'_>,
        iss: SeqNumber,
        ts_offset: u32,
        mss_local: u16,
        env: &mut Env<'_>,
    ) -> Self {
        let agreement = Agreement::with(syn, env.config);
        Self {
            iss,
            irs: syn.seq,
            ts: TimestampState::new(ts_offset, agreement.timestamps.unwrap_or_default()),
            retransmit_at: env.tick().after(env.config.rto_initial),
            retransmits: 0,
            mss: agreement.mss,
            mss_local,
            window: syn.window,
            snd_wind_shift: agreement.snd_wind_shift,
            timestamps: agreement.timestamps.is_some(),
            sack: agreement.sack,
            ecn: match Connection::asked_by(syn) {
                Some(accurate) if env.config.ecn == EcnMode::AcceptAccurate => accurate,
                _ if agreement.ecn => Feedback::Classic,
                _ => Feedback::None,
            },
        }
    }

    /// The SYN-ACK.
    pub fn syn_ack(&self, env: &mut Env<'_>) -> SegmentOut {
        env.shared.counters.segments_out += 1;
        let ecn = if self.is_ecn_left_out() {
            Flags::default()
        } else {
            self.ecn.of_syn_ack()
        };
        SegmentOut {
            seq: self.iss,
            ack: self.irs + 1,
            flags: Flags::SYN | Flags::ACK | ecn,
            window: syn_window(env.config),
            options: syn_ack_options(&self.agreement(), self.mss_local, &self.ts, env),
            is_retransmission: self.retransmits > 0,
            ..SegmentOut::default()
        }
    }

    /// RFC 9768 3.2.3.2.2: the path may drop what asks for accurate ECN, if two SYN-ACKs with it got no answer.
    const fn is_ecn_left_out(&self) -> bool {
        self.ecn.is_accurate() && self.retransmits >= 2
    }

    /// A segment for it (RFC 9293 3.10.7.4 in SYN-RECEIVED).
    pub fn on_segment(&mut self, segment: &Segment<'_>, env: &mut Env<'_>) -> HalfOpenOutcome {
        let rcv_nxt = self.irs + 1;
        let rcv_wnd = u32::from(syn_window(env.config));
        if segment.flags.has(Flags::RST) {
            return self.on_reset(segment, rcv_nxt, rcv_wnd, env);
        }
        // A SYN that was repeated because our answer was lost: the same answer.
        if segment.flags.has(Flags::SYN) && segment.seq == self.irs {
            if !self.repeats_feedback(segment, env) {
                return self.refuse_feedback(env);
            }
            self.wait_anew(env);
            return HalfOpenOutcome::Answer(self.syn_ack(env));
        }
        // RFC 7323 3.2: silently.
        if self.timestamps && segment.options.timestamps.is_none() {
            env.shared.counters.paws_drops += 1;
            return HalfOpenOutcome::Dropped(SegmentDrop::Paws);
        }
        if self.ts.is_segment_old(self.timestamps, segment) {
            env.shared.counters.paws_drops += 1;
            return self.answer_ack(env, SegmentDrop::Paws);
        }
        // RFC 5961 4.2, in place of RFC 9293's return to LISTEN: an attacker must not end a handshake by guessing.
        if segment.flags.has(Flags::SYN) {
            return self.answer_ack(env, SegmentDrop::BlindSyn);
        }
        if !is_acceptable(segment, rcv_nxt, rcv_wnd) {
            return self.answer_ack(env, SegmentDrop::OutsideWindow);
        }
        if !segment.flags.has(Flags::ACK) {
            return HalfOpenOutcome::Dropped(SegmentDrop::NoAck);
        }
        if segment.ack != self.iss + 1 {
            return self.answer_reset(segment, env);
        }
        HalfOpenOutcome::Established(self.connection(segment, env))
    }

    /// The SYN came once more, which changes what its mark was, and whether our data may be marked, but never the kind of
    /// feedback (RFC 9768 3.1.5). False if it asks for the other kind: no side could know which one the other has.
    fn repeats_feedback(&mut self, syn: &Segment<'_>, env: &Env<'_>) -> bool {
        if env.config.ecn != EcnMode::AcceptAccurate {
            return true;
        }
        let asked = ace_of(syn.flags);
        match &mut self.ecn {
            Feedback::None => true,
            Feedback::Classic => matches!(asked, 0 | CLASSIC),
            Feedback::Accurate {
                syn: mark,
                is_capable,
            } => {
                *mark = syn.ecn;
                *is_capable &= asked != 0;
                asked != CLASSIC
            }
        }
    }

    /// The connection that this acknowledgement of the peer's completes, if it does.
    pub(crate) fn establish(
        &mut self,
        acknowledgement: &Segment<'_>,
        env: &mut Env<'_>,
    ) -> Option<Connection> {
        match self.on_segment(acknowledgement, env) {
            HalfOpenOutcome::Established(connection) => Some(connection),
            _ => None,
        }
    }

    /// `retransmit_at` has come: the SYN-ACK again, or `None` when it is to be forgotten.
    pub fn on_timer(&mut self, env: &mut Env<'_>) -> Option<SegmentOut> {
        if self.retransmits >= env.config.syn_ack_retries_max {
            return None;
        }
        self.retransmits += 1;
        env.shared.counters.retransmitted += 1;
        self.retransmit_at = self.timeout_at(env);
        Some(self.syn_ack(env))
    }

    /// One timeout from now (RFC 6298 5.5).
    fn timeout_at(&self, env: &Env<'_>) -> Tick {
        let wait = env.config.rto_initial * (1 << self.retransmits.min(16));
        env.tick().after(wait.min(env.config.rto_max))
    }

    /// The peer has asked again, and gets an answer now: what it says to that is waited for, as by Linux, and it does not
    /// find that it was forgotten a moment ago. The timer of a first SYN-ACK stays, for it measures the round trip.
    fn wait_anew(&mut self, env: &Env<'_>) {
        if self.retransmits > 0 {
            self.retransmit_at = self.timeout_at(env);
        }
    }

    const fn agreement(&self) -> Agreement {
        Agreement {
            mss: self.mss,
            snd_wind_shift: self.snd_wind_shift,
            timestamps: if self.timestamps {
                Some(self.ts.recent())
            } else {
                None
            },
            sack: self.sack,
            ecn: matches!(self.ecn, Feedback::Classic),
        }
    }

    /// RFC 5961 3.2.
    fn on_reset(
        &self,
        segment: &Segment<'_>,
        rcv_nxt: SeqNumber,
        rcv_wnd: u32,
        env: &mut Env<'_>,
    ) -> HalfOpenOutcome {
        if segment.seq == rcv_nxt {
            env.shared.counters.resets_in += 1;
            return HalfOpenOutcome::Reset;
        }
        if segment.seq.is_within(rcv_nxt, rcv_wnd) {
            return self.answer_ack(env, SegmentDrop::BlindReset);
        }
        HalfOpenOutcome::Dropped(SegmentDrop::OutsideWindow)
    }

    /// An acknowledgement, if the host's limit allows it.
    fn answer_ack(&self, env: &mut Env<'_>, why: SegmentDrop) -> HalfOpenOutcome {
        if !allows_challenge(env) {
            return HalfOpenOutcome::Dropped(why);
        }
        env.shared.counters.acks_out += 1;
        env.shared.counters.segments_out += 1;
        let window = u32::from(syn_window(env.config)) >> self.rcv_wind_shift(env);
        HalfOpenOutcome::Answer(SegmentOut {
            seq: self.iss + 1,
            ack: self.irs + 1,
            flags: if self.ecn.is_accurate() {
                Flags::ACK | ace(CEP_INITIAL)
            } else {
                Flags::ACK
            },
            window: u16::try_from(window).unwrap_or(u16::MAX),
            options: TcpOptions {
                timestamps: self.timestamps.then(|| self.ts.option_at(env.tick())),
                ..TcpOptions::default()
            },
            ..SegmentOut::default()
        })
    }

    /// RFC 9768 3.1.5. The handshake ends when the peer resets our next SYN-ACK.
    fn refuse_feedback(&self, env: &mut Env<'_>) -> HalfOpenOutcome {
        env.shared.counters.resets_out += 1;
        HalfOpenOutcome::Answer(SegmentOut {
            seq: self.iss + 1,
            ack: self.irs + 1,
            flags: Flags::RST | Flags::ACK,
            ..SegmentOut::default()
        })
    }

    /// RFC 9293 3.10.7.4, fifth, SYN-RECEIVED.
    fn answer_reset(&self, segment: &Segment<'_>, env: &mut Env<'_>) -> HalfOpenOutcome {
        env.shared.counters.resets_out += 1;
        HalfOpenOutcome::Answer(SegmentOut {
            seq: segment.ack,
            flags: Flags::RST,
            ..SegmentOut::default()
        })
    }

    fn rcv_wind_shift(&self, env: &Env<'_>) -> u8 {
        self.snd_wind_shift.map_or(0, |_| wind_shift(env.config))
    }

    /// ESTABLISHED; the segment that made it so is still to be taken.
    fn connection(&self, segment: &Segment<'_>, env: &mut Env<'_>) -> Connection {
        let mut connection = Connection {
            snd: SendSpace::behind_syn(self.iss, self.irs, self.window),
            ts: self.ts,
            ..Connection::with_settings(env)
        };
        connection.rcv.on_syn(self.irs, syn_window(env.config));
        connection.agree(&self.agreement(), self.mss_local, env);
        connection
            .shifts
            .set_snd(self.snd_wind_shift.unwrap_or_default());
        connection
            .flags
            .set(ConnectionFlags::SYN_RETRANSMITTED, self.retransmits > 0);
        let rtt_ms = self.rtt_ms(segment, env);
        let mut losses = self.retransmits;
        if let Feedback::Accurate { is_capable, .. } = self.ecn {
            let is_capable = is_capable && !self.is_ecn_left_out();
            if connection.begin_accurate(segment, is_capable) {
                // The path is congested already: as if the SYN-ACK had been lost.
                losses = losses.max(2);
            }
        }
        connection.complete_handshake(losses, rtt_ms, env);
        connection
    }

    /// From the SYN-ACK to this segment: by its timestamp (RFC 7323 4.1), else by the timer if that was set once
    /// (RFC 6298 3). A SYN cookie has no timer: the host sets `retransmit_at` to now; and its timestamp says what was agreed
    /// in its lower bits, so that it is up to 63 ms older than its segment: it measures nothing.
    fn rtt_ms(&self, segment: &Segment<'_>, env: &Env<'_>) -> Option<u32> {
        let left_ms = u32::try_from(self.retransmit_at.since(env.tick())).ok()?;
        if left_ms == 0 {
            return None;
        }
        if let Some(stamp) = segment.options.timestamps.filter(|_| self.timestamps) {
            let rtt_ms = self.ts.age_ms(stamp.echo, env.tick());
            return Some(rtt_ms).filter(|&ms| ms < RTT_MS_MAX);
        }
        let waited_ms = u32::try_from(env.config.rto_initial.as_millis()).ok()?;
        let rtt_ms = waited_ms.checked_sub(left_ms)?;
        (self.retransmits == 0).then_some(rtt_ms)
    }
}

/// RFC 9293 3.10.7.4, first, for a window that is never zero.
fn is_acceptable(segment: &Segment<'_>, rcv_nxt: SeqNumber, rcv_wnd: u32) -> bool {
    let end = segment.seq + segment.len();
    let begins_in_time = segment.seq.is_before(rcv_nxt + rcv_wnd);
    if segment.is_empty() {
        segment.seq.is_at_or_after(rcv_nxt) && begins_in_time
    } else {
        end.is_after(rcv_nxt) && begins_in_time
    }
}

/// An echo that would mean a longer round trip is a lie or a mistake, milliseconds (two minutes, the longest RTO).
const RTT_MS_MAX: u32 = 120_000;

#[cfg(test)]
mod tests;
