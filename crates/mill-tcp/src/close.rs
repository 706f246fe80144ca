//! The ends of a connection: CLOSE and ABORT, half close, FIN both ways (RFC 9293 3.6, 3.10.4, 3.10.5).

use crate::ack::Acked;
use crate::arrived::Events;
use crate::connection::{Connection, ConnectionFlags};
use crate::env::Env;
use crate::segment::SegmentOut;
use crate::state::State;

impl Connection {
    /// The application sends no more (RFC 9293 3.10.4): FIN follows what is queued.
    pub fn shutdown(&mut self, env: &mut Env<'_>) {
        let _ = env;
        self.state = match self.state {
            State::Established => State::FinWait1,
            State::CloseWait => State::LastAck,
            // SYN-RECEIVED and SYN-SENT: the state moves on with the handshake.
            State::SynSent | State::SynReceived => self.state,
            _ => return,
        };
        self.flags.set(ConnectionFlags::FIN_QUEUED, true);
    }

    /// The application has left: it reads no more and gets no more events. What is queued is still sent, then FIN.
    /// If bytes are unread, or arrive later, the peer gets RST instead (RFC 2525 2.17, RFC 9293 3.10.4): then the RST
    /// is returned and the connection is Closed.
    #[must_use]
    pub fn close(&mut self, env: &mut Env<'_>) -> Option<SegmentOut> {
        // The peer has not answered yet, so there is no connection to end.
        if self.state == State::SynSent {
            self.end(Events::CLOSED, env);
            return None;
        }
        if self.rcv.unread_bytes() > 0 {
            return self.abort(env);
        }
        self.flags.set(ConnectionFlags::ORPHAN, true);
        self.shutdown(env);
        if self.state == State::FinWait2 {
            self.arm_fin_wait_2(env);
        }
        None
    }

    /// Forgets everything (RFC 9293 3.10.5): Closed; the RST to send, where the state has one.
    #[must_use]
    pub fn abort(&mut self, env: &mut Env<'_>) -> Option<SegmentOut> {
        // In CLOSING and LAST-ACK both sides have finished: RFC 9293 3.10.5 sends nothing. LAST-ACK may still hold
        // data that the peer has not got, so it is reported unless only the FIN is missing.
        let is_told = match self.state {
            State::Closed | State::SynSent => false,
            State::Closing | State::LastAck => {
                !self.flags.has(ConnectionFlags::FIN_SENT) || self.snd.in_flight() > 1
            }
            _ => true,
        };
        let reset = is_told.then(|| self.reset_of_abort(env));
        self.end(Events::CLOSED, env);
        reset
    }

    /// Forgets everything, and sends nothing: it goes on at another host, or nothing reaches the peer any more.
    pub fn forget(&mut self, env: &mut Env<'_>) {
        self.end(Events::CLOSED, env);
    }

    /// The connection is Closed; no timer runs, nothing is due. Gives the events back for the caller's convenience.
    pub(crate) fn end(&mut self, events: Events, env: &mut Env<'_>) -> Events {
        debug_assert!(events.has_any(Events::ENDS));
        self.state = State::Closed;
        self.timer.disarm();
        for flag in [
            ConnectionFlags::DELAYED_ACK_ARMED,
            ConnectionFlags::IDLE_ARMED,
            ConnectionFlags::SYN_DUE,
            ConnectionFlags::PROBE_DUE,
            ConnectionFlags::KEEPALIVE_DUE,
            ConnectionFlags::ACK_NOW,
        ] {
            self.flags.set(flag, false);
        }
        self.release_cold(env);
        events
    }

    /// The handshake is complete; if the application has closed meanwhile, FIN-WAIT-1 follows (RFC 9293 3.10.4).
    pub(crate) fn follow_early_close(&mut self) {
        if self.state == State::Established && self.flags.has(ConnectionFlags::FIN_QUEUED) {
            self.state = State::FinWait1;
        }
    }

    /// What the acknowledgement of our FIN changes (RFC 9293 3.10.7.4, fifth).
    pub(crate) fn fin_acknowledged(&mut self, acked: &Acked, env: &mut Env<'_>) -> Events {
        if !acked.fin {
            return Events::default();
        }
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                if self.flags.has(ConnectionFlags::ORPHAN) {
                    self.arm_fin_wait_2(env);
                }
                Events::default()
            }
            State::Closing => {
                // The peer's FIN may have come just before, in the same turn of the owner.
                let is_ack_due = self.flags.has(ConnectionFlags::ACK_NOW);
                let events = self.end(Events::TIME_WAIT, env);
                self.flags.set(ConnectionFlags::ACK_NOW, is_ack_due);
                events
            }
            State::LastAck => self.end(Events::CLOSED, env),
            _ => Events::default(),
        }
    }

    /// The peer's FIN, next in order (RFC 9293 3.10.7.4, eighth).
    pub(crate) fn fin_arrives(&mut self, env: &mut Env<'_>) -> Events {
        debug_assert!(self.state.may_receive());
        self.rcv.on_fin();
        let mut events = Events::FINISHED;
        match self.state {
            State::Established => {
                self.state = State::CloseWait;
                self.acknowledge_soon(env);
                return events;
            }
            State::FinWait1 => self.state = State::Closing,
            _ => events |= self.end(Events::TIME_WAIT, env),
        }
        // At once, and after `end`, which forgets what was due.
        self.flags.set(ConnectionFlags::ACK_NOW, true);
        events
    }
}

#[cfg(test)]
mod tests;
