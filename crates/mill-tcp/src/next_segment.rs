//! What to send now.

use crate::config::Algorithm;
use crate::connection::{Connection, ConnectionFlags};
use crate::env::Env;
use crate::segment::SegmentOut;
use crate::state::State;

impl Connection {
    /// The next segment to send, or `None`. `queued` is how many bytes the owner's queue holds, the unacknowledged
    /// ones at its front included. To be called until it gives `None`, or until the device has no room: what is
    /// given counts as sent.
    pub fn next_segment(&mut self, queued: u64, env: &mut Env<'_>) -> Option<SegmentOut> {
        if let Some(reset) = self.next_reset(env) {
            return Some(reset);
        }
        if self.is_fast_open() {
            if self.flags.has(ConnectionFlags::SYN_DUE) {
                return Some(self.next_fast_open_syn_ack(env));
            }
        } else if matches!(self.state, State::SynSent | State::SynReceived) {
            if self.flags.has(ConnectionFlags::SYN_DUE) {
                return Some(self.next_syn(queued, env));
            }
            return self.next_ack_of_handshake(env);
        }
        self.flags.set(ConnectionFlags::PACED, false);
        if let Some(draft) = self.next_data(queued, env) {
            return Some(self.finish(&draft, env));
        }
        // Data would have carried it.
        let last = self.next_keepalive(env).or_else(|| self.next_ack(env));
        self.cap_by_user_timeout(env);
        self.release_cold(env);
        last
    }

    /// Whether [`Self::next_segment`] would give nothing, if that can be told at a glance: the connection is established, all
    /// of the queue is sent, nothing is lost, and no acknowledgement, probe, FIN or RST is due. Then what it does besides is
    /// done. False tells nothing.
    #[inline]
    pub fn has_said_all(&mut self, queued: u64, env: &mut Env<'_>) -> bool {
        const DUE: u32 = ConnectionFlags::RST_DUE
            | ConnectionFlags::SYN_DUE
            | ConnectionFlags::PROBE_DUE
            | ConnectionFlags::KEEPALIVE_DUE
            | ConnectionFlags::ACK_NOW
            | ConnectionFlags::FIN_QUEUED
            | ConnectionFlags::PUSH_DUE;
        let is_quiet = self.state == State::Established
            && !self.flags.has(DUE)
            && queued == u64::from(self.snd.in_flight())
            && self.cold.as_ref().is_none_or(|cold| cold.is_calm());
        if is_quiet {
            self.flags.set(ConnectionFlags::APP_LIMITED, true);
            if env.config.congestion == Algorithm::Bbr {
                self.note_limited();
            }
            self.cap_by_user_timeout(env);
            self.release_cold(env);
            debug_assert!(
                self.next_segment(queued, env).is_none(),
                "a connection after its FIN has nothing to send"
            );
        }
        is_quiet
    }

    /// SYN-RECEIVED answers what is unacceptable; SYN-SENT has nothing to acknowledge.
    fn next_ack_of_handshake(&mut self, env: &mut Env<'_>) -> Option<SegmentOut> {
        if self.state == State::SynReceived {
            return self.next_ack(env);
        }
        self.flags.set(ConnectionFlags::ACK_NOW, false);
        None
    }
}
