//! A connection whose client has sent a request with its first flight, until the handshake is over (0-RTT, RFC 8446 2.3).
//!
//! What is read lies in memory of its own here, at most the early data that a handshake takes at all; what is written is
//! sealed by the handshake's own keys and goes out at once, which is what early data is for.

use super::Established;
use crate::facts::TlsFacts;
use crate::handshake::Handshake;
use crate::worker::TlsWorker;
use mill_runtime::payload::Payload;
use mill_runtime::stream::Stream;
use std::rc::Rc;

/// Between the first flight and the last one.
pub(super) struct Early {
    pub(super) handshake: Handshake,
    /// Unread bytes that the handshake needs.
    pub(super) needed: usize,
    facts: Rc<TlsFacts>,
    /// Not read yet.
    plain: Vec<u8>,
    /// What was written and cannot be sealed before the handshake goes on.
    held: Vec<u8>,
    has_sent_close: bool,
}

impl Early {
    pub(super) fn new(
        handshake: Handshake,
        needed: usize,
        held: Vec<u8>,
        facts: TlsFacts,
        plain: Vec<u8>,
    ) -> Self {
        Self {
            handshake,
            needed,
            facts: Rc::new(facts),
            plain,
            held,
            has_sent_close: false,
        }
    }

    pub(super) fn facts(&self) -> Rc<TlsFacts> {
        Rc::clone(&self.facts)
    }

    pub(super) fn unread(&self) -> usize {
        self.plain.len()
    }

    pub(super) fn held_bytes(&self) -> u64 {
        self.held.len() as u64
    }

    pub(super) fn lend<R>(&mut self, take: impl FnOnce(&mut [u8]) -> (usize, R)) -> R {
        lend(&mut self.plain, take)
    }

    /// Takes what the handshake has opened since.
    pub(super) fn take_more(&mut self) {
        let more = self.handshake.take_more_early();
        self.plain.extend_from_slice(&more);
    }

    /// Seals and hands over, or holds.
    pub(super) fn write<S: Stream>(&mut self, stream: &S, worker: &TlsWorker, bytes: &[u8]) {
        let mut flight = worker.shared().flight.borrow_mut();
        for piece in bytes.chunks(self.handshake.record_bytes_max) {
            flight.clear();
            if !self.held.is_empty() || !self.handshake.seal_early(piece, &mut flight) {
                self.held.extend_from_slice(piece);
                continue;
            }
            stream.write(Payload::Copy(&flight));
        }
    }

    /// Says that nothing follows, once, and not before what is held.
    pub(super) fn close<S: Stream>(&mut self, stream: &S, worker: &TlsWorker) {
        if self.has_sent_close || !self.held.is_empty() {
            return;
        }
        let mut flight = worker.shared().flight.borrow_mut();
        flight.clear();
        self.has_sent_close = self.handshake.close_early(&mut flight);
        stream.write(Payload::Copy(&flight));
    }

    /// The handshake is over: what was not read is read first. Returns what is still to be written.
    pub(super) fn end(self, established: &mut Established) -> Vec<u8> {
        self.facts.is_early.set(false);
        established.facts = self.facts;
        established.has_sent_close = self.has_sent_close;
        established.early.splice(..0, self.plain);
        self.held
    }
}

impl Established {
    /// Puts plaintext that lies in the engine's buffer behind what came before the end of the handshake: both are lent as
    /// one.
    pub(super) fn join_early<S: Stream>(&mut self, stream: &S) {
        let Self { unread, early, .. } = self;
        stream.read(|bytes| {
            unread.lend(bytes, |plain| {
                early.extend_from_slice(plain);
                (plain.len(), ())
            })
        });
    }
}

/// Lends what lies in memory of its own.
pub(super) fn lend<R>(plain: &mut Vec<u8>, take: impl FnOnce(&mut [u8]) -> (usize, R)) -> R {
    let (consumed, result) = take(plain);
    if consumed >= plain.len() {
        // None comes again.
        *plain = Vec::new();
    } else {
        plain.drain(..consumed);
    }
    result
}
