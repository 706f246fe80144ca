//! The active side of a handshake: SYN-SENT, and SYN-RECEIVED by simultaneous open (RFC 9293 3.10.1, 3.10.7.3).

use crate::ack::Acked;
use crate::arrived::{Arrived, Events, SegmentDrop};
use crate::config::EcnMode;
use crate::connection::{Connection, ConnectionFlags, Opening};
use crate::env::Env;
use crate::handshake::{Agreement, TIMESTAMPS_BYTES, syn_window, wind_shift};
use crate::receive_space::ReceiveSpace;
use crate::rto::timer::TimerKind;
use crate::segment::{Segment, SegmentOut};
use crate::send_space::SendSpace;
use crate::state::State;
use crate::time::Duration;
use crate::timestamps::TimestampState;
use mill_wire::tcp::Flags;
use mill_wire::tcp_option::{TcpOptions, Timestamps};

impl Connection {
    /// An active open (RFC 9293 3.10.1): SYN-SENT. `next_segment` gives the SYN.
    pub fn connect(opening: &Opening, env: &mut Env<'_>) -> Self {
        let mut connection = Self {
            snd: SendSpace::before_syn(opening.iss),
            ts: TimestampState::new(opening.ts_offset, 0),
            snd_mss: opening.mss,
            state: State::SynSent,
            ..Self::with_settings(env)
        };
        connection.flags.set(ConnectionFlags::SYN_DUE, true);
        connection
    }

    /// What a connection begins with, whichever side opened it.
    pub(crate) fn with_settings(env: &Env<'_>) -> Self {
        let mut connection = Self {
            rcv: ReceiveSpace::with_buffer(env.config.receive_buffer_bytes),
            quick_acks: env.config.quick_acks,
            heard_at: env.tick(),
            sent_at: env.tick(),
            ..Self::default()
        };
        let nodelay = env.config.nodelay;
        connection.flags.set(ConnectionFlags::NODELAY, nodelay);
        connection
    }

    /// RFC 9293 3.10.7.3.
    pub(crate) fn syn_sent_arrives(&mut self, segment: &Segment<'_>, env: &mut Env<'_>) -> Arrived {
        // First: an acknowledgement of anything but our SYN is answered with RST.
        let acknowledges = segment.flags.has(Flags::ACK);
        let acknowledges_syn = !self.snd.is_all_acknowledged()
            && segment.ack.is_at_or_after(self.snd.nxt())
            && segment
                .ack
                .is_at_or_before(self.snd.nxt() + self.syn_text());
        if acknowledges && !acknowledges_syn {
            if !segment.flags.has(Flags::RST) {
                self.answer_with_reset(segment.ack);
                self.hasten_syn(env);
            }
            return Arrived::dropped(SegmentDrop::BadAck);
        }
        // Second: RST counts only with that acknowledgement (RFC 5961 3.2 has nothing to add here).
        if segment.flags.has(Flags::RST) {
            if !acknowledges {
                return Arrived::dropped(SegmentDrop::BlindReset);
            }
            env.shared.counters.resets_in += 1;
            return Arrived::with(self.end(Events::REFUSED, env));
        }
        // Fourth: without SYN there is nothing to do.
        if !segment.flags.has(Flags::SYN) {
            return Arrived::dropped(SegmentDrop::NoAck);
        }
        let mss_announced = self.snd_mss;
        self.take_syn(segment, env);
        if acknowledges {
            self.become_established(segment, env)
        } else {
            self.handshake_part(env).mss_announced = Some(mss_announced);
            self.become_syn_received(segment)
        }
    }

    /// The peer's first sequence number, and what its options agree to.
    fn take_syn(&mut self, segment: &Segment<'_>, env: &mut Env<'_>) {
        let agreement = Agreement::with(segment, env.config);
        self.agree(&agreement, self.snd_mss, env);
        self.rcv.on_syn(segment.seq, syn_window(env.config));
        self.heard_at = env.tick();
        // So that the rule for window updates (RFC 9293 3.10.7.4, fifth) accepts the window of this segment.
        self.snd.expect_window_of_syn(segment.seq);
        self.shifts
            .set_snd(agreement.snd_wind_shift.unwrap_or_default());
    }

    fn become_established(&mut self, segment: &Segment<'_>, env: &mut Env<'_>) -> Arrived {
        let text = self.syn_text();
        let acked = self.syn_acknowledged(segment, env);
        self.acknowledge_soon(env);
        let mut arrived = Arrived::with(Events::ESTABLISHED | self.acked_events(&acked));
        arrived.acked = acked.bytes;
        if text > 0 && acked.bytes == 0 && self.flags.has(ConnectionFlags::SYN_RETRANSMITTED) {
            arrived.events |= Events::SYN_TEXT_LOST;
        }
        // Sixth and later steps: data and FIN beside the SYN.
        self.take_text(segment, segment.seq + 1, &mut arrived, env);
        arrived
    }

    /// Both sides opened at once (RFC 9293 3.5, figure 8): SYN-ACK, and the text of the segment is left to be sent again.
    fn become_syn_received(&mut self, segment: &Segment<'_>) -> Arrived {
        self.snd.set_window_of_syn(segment.seq, segment.window);
        self.state = State::SynReceived;
        self.flags.set(ConnectionFlags::SYN_DUE, true);
        Arrived::default()
    }

    /// The handshake is complete.
    pub(crate) fn syn_acknowledged(&mut self, segment: &Segment<'_>, env: &mut Env<'_>) -> Acked {
        // The window of a SYN is not scaled (RFC 7323 2.2).
        let shift = self.shifts.snd();
        if segment.flags.has(Flags::SYN) {
            self.shifts.set_snd(0);
        }
        self.forget_reset();
        let rtt_ms = self.syn_rtt_ms(env);
        let of_syn = Segment {
            ack: self.snd.nxt(),
            ..*segment
        };
        let mut acked = self.on_ack(&of_syn, env);
        debug_assert!(acked.syn, "an acceptable acknowledgement covers the SYN");
        acked.bytes += self.take_syn_text_ack(segment.ack);
        self.shifts.set_snd(shift);
        self.complete_handshake(self.timer.backoff(), rtt_ms, env);
        self.follow_early_close();
        acked
    }

    /// The timer of the SYN ends, and the congestion window begins.
    pub(crate) fn complete_handshake(
        &mut self,
        syn_retransmits: u8,
        rtt_ms: Option<u32>,
        env: &mut Env<'_>,
    ) {
        self.state = State::Established;
        self.timer.end_backoff();
        self.timer.disarm();
        self.flags.set(ConnectionFlags::SYN_DUE, false);
        if let Some(rtt_ms) = rtt_ms {
            self.rtt.on_handshake(rtt_ms);
        }
        self.begin_congestion(syn_retransmits, env);
        self.begin_window_round(env);
        self.arm_keepalive(env);
    }

    /// From the SYN to its acknowledgement, unless it was sent twice (RFC 6298 3).
    pub(crate) fn syn_rtt_ms(&self, env: &Env<'_>) -> Option<u32> {
        let is_ambiguous = self.flags.has(ConnectionFlags::SYN_RETRANSMITTED);
        u32::try_from(env.tick().since(self.sent_at))
            .ok()
            .filter(|_| !is_ambiguous)
    }

    /// The SYN, or in SYN-RECEIVED the SYN-ACK. `queued` are the bytes of the owner's queue.
    pub(crate) fn next_syn(&mut self, queued: u64, env: &mut Env<'_>) -> SegmentOut {
        self.flags.set(ConnectionFlags::SYN_DUE, false);
        let is_retransmission = !self.snd.is_all_acknowledged();
        self.snd.on_syn_sent();
        self.sent_at = env.tick();
        self.arm_syn_timer(env);
        if is_retransmission && self.state == State::SynSent {
            self.flags.set(ConnectionFlags::SYN_RETRANSMITTED, true);
            env.shared.counters.retransmitted += 1;
        }
        let mut syn = SegmentOut {
            seq: self.snd.una(),
            flags: Flags::SYN,
            window: syn_window(env.config),
            is_retransmission,
            ..SegmentOut::default()
        };
        if self.state == State::SynReceived {
            syn.flags |= Flags::ACK;
            syn.ack = self.rcv.nxt();
            syn.options = self.simultaneous_options(env);
            if self.flags.has(ConnectionFlags::ECN) {
                syn.flags |= Flags::ECE;
            }
        } else {
            syn.options = self.syn_options(env);
            // RFC 3168 6.1.1.1: a SYN that got no answer is sent again without asking for ECN.
            if env.config.ecn == EcnMode::Ask && !is_retransmission {
                syn.flags |= Flags::ECE | Flags::CWR;
            }
            // RFC 7413 4.1.3.1: what is repeated is plain.
            if !is_retransmission {
                self.add_fast_open(&mut syn, queued);
            }
        }
        syn
    }

    /// RFC 6298 5.5.
    pub(crate) fn arm_syn_timer(&mut self, env: &Env<'_>) {
        let wait = env.config.rto_initial * (1 << self.timer.backoff().min(16));
        let at = env.tick().after(wait.min(env.config.rto_max));
        self.timer.arm(TimerKind::Syn, at);
    }

    /// The peer remembers an older connection of these ports, which our RST has ended by now: the SYN would get through,
    /// so it is not kept waiting. Once a connection, so that two ends do not keep each other busy; as in Linux.
    fn hasten_syn(&mut self, env: &Env<'_>) {
        let was_repeated =
            self.flags.has(ConnectionFlags::SYN_RETRANSMITTED) || self.timer.backoff() > 0;
        if self.timer.runs_as(TimerKind::Syn) && !was_repeated {
            self.timer.expire_by(env.tick().after(SYN_AGAIN));
        }
    }

    fn syn_options(&self, env: &Env<'_>) -> TcpOptions {
        let config = env.config;
        TcpOptions {
            mss: Some(self.snd_mss),
            window_scale: config.window_scaling.then(|| wind_shift(config)),
            sack_permitted: config.sack,
            timestamps: config.timestamps.then(|| Timestamps {
                value: self.ts.value_at(env.tick()),
                echo: 0,
            }),
            ..TcpOptions::default()
        }
    }

    /// What this side can take. It does not depend on what the other side can.
    pub(crate) fn announced_mss(&self) -> u16 {
        let cold = self.cold.as_ref();
        let handshake = cold.and_then(|cold| cold.handshake.as_ref());
        if let Some(mss) = handshake.and_then(|handshake| handshake.mss_announced) {
            mss
        } else if self.flags.has(ConnectionFlags::TIMESTAMPS) {
            self.snd_mss + TIMESTAMPS_BYTES
        } else {
            self.snd_mss
        }
    }

    fn simultaneous_options(&self, env: &Env<'_>) -> TcpOptions {
        let has = |flag| self.flags.has(flag);
        TcpOptions {
            mss: Some(self.announced_mss()),
            window_scale: has(ConnectionFlags::SCALING).then_some(self.shifts.rcv()),
            sack_permitted: has(ConnectionFlags::SACK),
            timestamps: self.timestamps_option(env),
            ..self.syn_options(env)
        }
    }
}

/// From a RST to the SYN behind it: Linux's `TCP_TIMEOUT_MIN`, two ticks of its clock. Shorter, the SYN might overtake the
/// RST.
const SYN_AGAIN: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests;
