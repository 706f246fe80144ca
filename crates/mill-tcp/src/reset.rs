//! RST: when it is believed, and when it is sent (RFC 9293 3.5.2, 3.5.3; RFC 5961 3).

use crate::arrived::{Arrived, Events, SegmentDrop};
use crate::connection::{Connection, ConnectionFlags};
use crate::env::Env;
use crate::segment::{Segment, SegmentOut};
use crate::state::State;
use mill_wire::seq::SeqNumber;
use mill_wire::tcp::Flags;
use mill_wire::tcp_option::TcpOptions;

impl Connection {
    /// A RST, in any state but SYN-SENT.
    pub(crate) fn reset_arrives(&mut self, segment: &Segment<'_>, env: &mut Env<'_>) -> Arrived {
        // RFC 5961 3.2: exactly next in order, and it is believed; elsewhere in the window, the peer is asked to
        // repeat it with the right number; outside, nothing.
        if segment.seq == self.rcv.nxt() {
            env.shared.counters.resets_in += 1;
            // RFC 9293 3.10.7.4, second: an active open that was never complete is refused.
            let event = if self.state == State::SynReceived && !self.is_fast_open() {
                Events::REFUSED
            } else {
                Events::RESET
            };
            return Arrived::with(self.end(event, env));
        }
        if segment.seq.is_within(self.rcv.nxt(), self.rcv.wnd()) {
            self.challenge(env);
            return Arrived::dropped(SegmentDrop::BlindReset);
        }
        Arrived::dropped(SegmentDrop::OutsideWindow)
    }

    /// `next_segment` will give a RST with this sequence number, which is what the peer expects next.
    pub(crate) fn answer_with_reset(&mut self, seq: SeqNumber) {
        // Before the handshake is complete and after the end no windows are compared.
        debug_assert!(!self.state.is_synchronized(), "SND.WL2 is in use");
        self.snd.keep_reset_seq(seq);
        self.flags.set(ConnectionFlags::RST_DUE, true);
    }

    /// The handshake is complete: from now on SND.WL2 tells how new a window is (RFC 9293 3.10.7.4, fifth), and a RST
    /// that waits for the device would end what has just begun.
    pub(crate) fn forget_reset(&mut self) {
        self.snd.forget_reset_seq();
        self.flags.set(ConnectionFlags::RST_DUE, false);
    }

    pub(crate) fn next_reset(&mut self, env: &mut Env<'_>) -> Option<SegmentOut> {
        if !self.flags.has(ConnectionFlags::RST_DUE) {
            return None;
        }
        self.flags.set(ConnectionFlags::RST_DUE, false);
        env.shared.counters.resets_out += 1;
        Some(SegmentOut {
            seq: self.snd.reset_seq(),
            flags: Flags::RST,
            ..SegmentOut::default()
        })
    }

    /// The RST of an abort (RFC 9293 3.10.5): next in order for the peer, so that it believes it.
    pub(crate) fn reset_of_abort(&self, env: &mut Env<'_>) -> SegmentOut {
        env.shared.counters.resets_out += 1;
        SegmentOut {
            seq: self.snd.nxt(),
            ack: self.rcv.nxt(),
            flags: Flags::RST | Flags::ACK,
            window: self.rcv.window_field(self.shifts.rcv()),
            // RFC 7323 3.2 requires them in RST too, where a connection can compare them.
            options: TcpOptions {
                timestamps: self.timestamps_option(env),
                ..TcpOptions::default()
            },
            ..SegmentOut::default()
        }
    }
}
