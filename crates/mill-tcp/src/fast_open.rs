//! Fast Open, the server's side (RFC 7413): the text of a SYN reaches the application, and its answer leaves, before the
//! handshake is complete. Cookies, and how many such connections may wait, are the host's business.
//!
//! ```text
//! client                          server
//!   SYN, cookie, request  ------>   accept_fast_open: SYN-RECEIVED, request delivered
//!                         <------   SYN-ACK (acknowledges the request)
//!                         <------   response, within the initial window
//!   ACK                   ------>   ESTABLISHED
//! ```
//!
//! For the send side the SYN counts as acknowledged from the beginning: SND.UNA is the number behind it, so that it
//! lies at the front of the owner's queue. `ConnectionFlags::FAST_OPEN` says that it is not yet.

use crate::arrived::{Arrived, Events, SegmentDrop};
use crate::connection::{Connection, ConnectionFlags};
use crate::env::Env;
use crate::handshake::{Agreement, syn_ack_options, syn_window};
use crate::rto::timer::TimerKind;
use crate::segment::{Segment, SegmentOut};
use crate::send_space::SendSpace;
use crate::state::State;
use crate::timestamps::TimestampState;
use mill_wire::seq::SeqNumber;
use mill_wire::tcp::Flags;

impl Connection {
    /// A SYN whose cookie the host has found good (RFC 7413 4.2.2): the connection in SYN-RECEIVED, and what of the
    /// SYN's text is the reader's. `next_segment` gives the SYN-ACK, and then what the application has written.
    pub fn accept_fast_open(
        syn: &Segment<'_>,
        iss: SeqNumber,
        ts_offset: u32,
        mss_local: u16,
        env: &mut Env<'_>,
    ) -> (Self, Arrived) {
        debug_assert!(syn.flags.has(Flags::SYN) && !syn.flags.has(Flags::ACK));
        let agreement = Agreement::with(syn, env.config);
        let window = syn_window(env.config);
        let mut connection = Self {
            snd: SendSpace::behind_syn(iss, syn.seq, syn.window),
            ts: TimestampState::new(ts_offset, 0),
            state: State::SynReceived,
            ..Self::with_settings(env)
        };
        connection.rcv.on_syn(syn.seq, window);
        connection.agree(&agreement, mss_local, env);
        connection
            .shifts
            .set_snd(agreement.snd_wind_shift.unwrap_or_default());
        connection.flags.set(ConnectionFlags::FAST_OPEN, true);
        connection.flags.set(ConnectionFlags::SYN_DUE, true);
        connection.handshake_part(env).mss_announced = Some(mss_local);
        connection.begin_congestion(0, env);
        let len = syn.payload.len().min(usize::from(window));
        let mut arrived = Arrived::default();
        if len > 0 {
            arrived.deliver = connection.deliver(0..len, syn, env);
            arrived.events = Events::READABLE;
            let is_all = len == syn.payload.len();
            connection
                .flags
                .set(ConnectionFlags::SYN_TEXT_TAKEN, is_all);
        }
        (connection, arrived)
    }

    /// SYN-RECEIVED by Fast Open.
    pub(crate) fn is_fast_open(&self) -> bool {
        self.state == State::SynReceived && self.flags.has(ConnectionFlags::FAST_OPEN)
    }

    /// The SYN-ACK, with the receiver's present state.
    pub(crate) fn next_fast_open_syn_ack(&mut self, env: &mut Env<'_>) -> SegmentOut {
        self.flags.set(ConnectionFlags::SYN_DUE, false);
        self.flags.set(ConnectionFlags::ACK_NOW, false);
        self.flags.set(ConnectionFlags::DELAYED_ACK_ARMED, false);
        self.rcv.on_ack_sent();
        if !self.timer.is_running() {
            self.arm_syn_timer(env);
        }
        env.shared.counters.segments_out += 1;
        let ecn = if self.flags.has(ConnectionFlags::ECN) {
            Flags::ECE
        } else {
            Flags::default()
        };
        let has = |flag| self.flags.has(flag);
        let agreement = Agreement {
            mss: self.snd_mss,
            snd_wind_shift: has(ConnectionFlags::SCALING).then_some(self.shifts.snd()),
            timestamps: has(ConnectionFlags::TIMESTAMPS).then_some(self.ts.recent()),
            sack: has(ConnectionFlags::SACK),
            ecn: has(ConnectionFlags::ECN),
        };
        let window = u16::try_from(self.rcv.wnd()).unwrap_or(u16::MAX);
        SegmentOut {
            seq: self.snd.una() - 1,
            ack: self.rcv.nxt(),
            flags: Flags::SYN | Flags::ACK | ecn,
            window,
            options: syn_ack_options(&agreement, self.announced_mss(), &self.ts, env),
            is_retransmission: self.timer.backoff() > 0,
            ..SegmentOut::default()
        }
    }

    /// The client repeats its SYN because ours was lost: sent once more.
    pub(crate) fn fast_open_syn_again(&mut self) -> Arrived {
        self.flags.set(ConnectionFlags::SYN_DUE, true);
        Arrived::dropped(SegmentDrop::Duplicate)
    }

    /// Our SYN is acknowledged, perhaps with data behind it. `FAST_OPEN` stays until `on_ack` has seen the segment.
    pub(crate) fn fast_open_acknowledged(&mut self, env: &mut Env<'_>) {
        debug_assert!(self.is_fast_open());
        if let Some(cold) = &mut self.cold {
            cold.handshake = None;
        }
        self.forget_reset();
        self.flags.set(ConnectionFlags::SYN_DUE, false);
        if self.timer.runs_as(TimerKind::Syn) {
            self.timer.disarm();
        }
        self.timer.end_backoff();
        self.timer.on_progress();
        self.state = State::Established;
        self.follow_early_close();
        self.begin_window_round(env);
        self.arm_keepalive(env);
    }
}

#[cfg(test)]
mod tests;
