//! The handshake: driven by the task that waits for the stream, within the engine's buffers.

use super::early::Early;
use super::{Established, State, TlsStream};
use crate::facts::EarlyData;
use crate::handshake::{Fault, Handshake, Secured, Step};
use crate::worker::Admission;
use mill_runtime::payload::Payload;
use mill_runtime::stream::{Stream, StreamError};
use std::task::Poll;

impl<S: Stream> TlsStream<S> {
    /// Ready when the handshake is over, or a request has come before; at once where there is no handshake.
    pub(super) fn poll_secured(&self) -> Poll<Result<(), StreamError>> {
        loop {
            match &*self.state.borrow() {
                State::Clear(_) | State::Established(_) | State::Early(_) => {
                    return Poll::Ready(Ok(()));
                }
                State::Failed(error, _) => return Poll::Ready(Err(*error)),
                State::Handshaking { .. } => {}
            }
            if self.poll_step().is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Goes on with the handshake by the bytes that it needs next.
    pub(super) fn poll_step(&self) -> Poll<()> {
        if let Some(chosen) = self.poll_choice() {
            return chosen;
        }
        let needed = match &mut *self.state.borrow_mut() {
            State::Handshaking {
                needed, admission, ..
            } => {
                if !self.worker.admits(admission) {
                    return Poll::Pending;
                }
                *needed
            }
            State::Early(early) => early.needed,
            _ => return Poll::Ready(()),
        };
        // A client's first flight needs nothing of the peer, only a connection.
        match self.stream.poll_readable(needed) {
            Poll::Ready(Ok(readable)) if readable.unread < needed => {
                self.fail(StreamError::Unfinished, Fault::Closed);
            }
            Poll::Ready(Ok(_)) => self.take_step(),
            Poll::Ready(Err(error)) => self.fail(error, Fault::Closed),
            Poll::Pending => return Poll::Pending,
        }
        Poll::Ready(())
    }

    /// Goes on with the choice of how a ClientHello is answered; `None` if that is not what is due.
    fn poll_choice(&self) -> Option<Poll<()>> {
        let mut alert = Vec::new();
        let polled = match self.state.borrow_mut().handshake() {
            Some((handshake, _)) => handshake.poll_choice(&mut alert)?,
            None => return None,
        };
        Some(polled.map(|step| {
            if !alert.is_empty() {
                self.stream.write(Payload::Copy(&alert));
            }
            self.follow(step);
        }))
    }

    fn take_step(&self) {
        let mut flight = self.worker.shared().flight.borrow_mut();
        flight.clear();
        let mut state = self.state.borrow_mut();
        let Some((handshake, _)) = state.handshake() else {
            return;
        };
        let step = (self.stream).read(|bytes| handshake.on_bytes(bytes, &mut flight));
        // Behind our end a client of early data gets no sessions.
        if !flight.is_empty() && !self.is_shut.get() {
            self.stream.write(Payload::Copy(&flight));
        }
        drop((flight, state));
        self.follow(step);
    }

    fn follow(&self, step: Step) {
        let mut state = self.state.borrow_mut();
        match step {
            Step::Choose => {}
            Step::Read(more) => {
                if let Some((_, needed)) = state.handshake() {
                    *needed = more;
                }
                state.take_early();
            }
            Step::Admission => {
                if let State::Handshaking { admission, .. } = &mut *state {
                    *admission = Admission::Asked;
                }
            }
            Step::Established(secured) => {
                drop(state);
                self.establish(*secured);
            }
            Step::Failed(Fault::NotTls) => *state = State::Clear(Err(Fault::NotTls)),
            Step::Failed(fault) => {
                drop(state);
                self.fail(StreamError::Tls, fault);
            }
        }
    }

    fn establish(&self, mut secured: Secured) {
        let (is_resumed, early_data) = (secured.facts.is_resumed, secured.facts.early_data);
        let unsent = std::mem::take(&mut secured.unsent);
        let mut established = Established::new(secured);
        let mut state = self.state.borrow_mut();
        let before = std::mem::replace(&mut *state, State::Clear(Err(Fault::Closed)));
        let held = match before {
            State::Handshaking { held, .. } => held,
            State::Early(early) => early.end(&mut established),
            _ => Vec::new(),
        };
        *state = State::Established(Box::new(established));
        drop(state);
        self.worker.count(|counters| {
            counters.handshakes += 1;
            counters.handshakes_resumed += u64::from(is_resumed);
            counters.early_data_accepted += u64::from(early_data == EarlyData::Taken);
            counters.early_data_rejected += u64::from(early_data == EarlyData::Refused);
        });
        for bytes in [unsent, held] {
            if !bytes.is_empty() {
                self.write_plain(&bytes);
            }
        }
    }

    fn fail(&self, error: StreamError, fault: Fault) {
        self.worker
            .count(|counters| counters.handshakes_failed += 1);
        *self.state.borrow_mut() = State::Failed(error, fault);
    }
}

impl State {
    /// A handshake that is not over, and the unread bytes that it needs.
    fn handshake(&mut self) -> Option<(&mut Handshake, &mut usize)> {
        match self {
            Self::Handshaking {
                handshake, needed, ..
            } => Some((handshake, needed)),
            Self::Early(early) => Some((&mut early.handshake, &mut early.needed)),
            _ => None,
        }
    }

    /// A request that is there already is heard before the handshake is over.
    fn take_early(&mut self) {
        match std::mem::replace(self, Self::Clear(Err(Fault::Closed))) {
            Self::Handshaking {
                mut handshake,
                needed,
                admission,
                held,
            } => {
                *self = match handshake.take_early() {
                    Some((facts, early)) => {
                        Self::Early(Box::new(Early::new(handshake, needed, held, facts, early)))
                    }
                    None => Self::Handshaking {
                        handshake,
                        needed,
                        admission,
                        held,
                    },
                };
            }
            Self::Early(mut early) => {
                early.take_more();
                *self = Self::Early(early);
            }
            other => *self = other,
        }
    }
}
