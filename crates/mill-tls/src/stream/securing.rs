//! The handshake: driven by the task that waits for the stream, within the engine's buffers.

use super::{Established, State, TlsStream};
use crate::handshake::{Fault, Step};
use mill_runtime::payload::Payload;
use mill_runtime::stream::{Stream, StreamError};
use std::task::Poll;

impl<S: Stream> TlsStream<S> {
    /// Ready when the handshake is over; at once where there is none.
    pub(super) fn poll_secured(&self) -> Poll<Result<(), StreamError>> {
        loop {
            let needed = match &*self.state.borrow() {
                State::Clear(_) | State::Established(_) => return Poll::Ready(Ok(())),
                State::Failed(error, _) => return Poll::Ready(Err(*error)),
                State::Handshaking { needed, .. } => *needed,
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
        }
    }

    fn take_step(&self) {
        let worker = self.worker.shared();
        let mut flight = worker.flight.borrow_mut();
        flight.clear();
        let mut state = self.state.borrow_mut();
        let State::Handshaking {
            handshake, needed, ..
        } = &mut *state
        else {
            return;
        };
        let step = (self.stream).read(|bytes| handshake.on_bytes(bytes, &mut flight));
        if !flight.is_empty() {
            self.stream.write(Payload::Copy(&flight));
        }
        drop(flight);
        match step {
            Step::Read(more) => *needed = more,
            Step::Established(secured) => {
                let is_resumed = secured.facts.is_resumed;
                let before = std::mem::replace(
                    &mut *state,
                    State::Established(Box::new(Established::new(*secured))),
                );
                drop(state);
                self.worker.count(|counters| {
                    counters.handshakes += 1;
                    counters.handshakes_resumed += u64::from(is_resumed);
                });
                if let State::Handshaking { held, .. } = before
                    && !held.is_empty()
                {
                    self.write_plain(&held);
                }
            }
            Step::Failed(Fault::NotTls) => *state = State::Clear(Err(Fault::NotTls)),
            Step::Failed(fault) => {
                drop(state);
                self.fail(StreamError::Tls, fault);
            }
        }
    }

    fn fail(&self, error: StreamError, fault: Fault) {
        self.worker
            .count(|counters| counters.handshakes_failed += 1);
        *self.state.borrow_mut() = State::Failed(error, fault);
    }
}
