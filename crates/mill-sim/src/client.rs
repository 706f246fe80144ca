//! A scripted peer.

use crate::agenda::Event;
use crate::endpoint::{ClientSide, EndpointId, Owner};
use crate::network::{Net, START};
use mill_runtime::address::Address;
use mill_runtime::stream::StreamError;
use mill_runtime::time::{Duration, Instant};

/// One connection of a client: what it does, when, and what it has seen. Clones are the same client.
///
/// Verbs act at once, or at the time that [`Client::at`] gives, which counts from the world's beginning.
/// The client never closes by itself.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) net: Net,
    pub(crate) end: EndpointId,
    pub(crate) at: Option<Duration>,
}

/// What a client does.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Send(Vec<u8>),
    Finish,
    Reset,
    Read(Reading),
}

/// How a client reads what arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reading {
    #[default]
    AtOnce,
    Stopped,
    /// Bytes per second.
    Rate(u32),
}

impl Client {
    /// The same client, acting when so much time has passed since the world began.
    #[must_use]
    pub fn at(&self, elapsed: Duration) -> Self {
        let now = self.net.borrow().elapsed();
        assert!(
            elapsed >= now,
            "a client acts at {elapsed:?}, but {now:?} have passed already"
        );
        Self {
            at: Some(elapsed),
            ..self.clone()
        }
    }

    /// Marks its connection as a packet filter before the other end would, which must not have accepted it yet.
    pub fn mark(&self, mark: u32) -> &Self {
        self.net.borrow_mut().end(self.end.peer()).mark = Some(mark);
        self
    }

    /// Sends bytes: in one segment if the link's segments are that long and its window has room.
    pub fn send(&self, bytes: impl AsRef<[u8]>) -> &Self {
        self.act(self.when(), Action::Send(bytes.as_ref().to_vec()))
    }

    /// Sends each byte in a segment of its own, the first one at once and the others each `gap` later.
    pub fn send_each_byte(&self, bytes: impl AsRef<[u8]>, gap: Duration) -> &Self {
        let mut at = self.when();
        for byte in bytes.as_ref() {
            self.act(at, Action::Send(vec![*byte]));
            at = at + gap;
        }
        self
    }

    /// Sends FIN after everything that was sent before; goes on reading.
    pub fn finish(&self) -> &Self {
        self.act(self.when(), Action::Finish)
    }

    /// Sends RST.
    pub fn reset(&self) -> &Self {
        self.act(self.when(), Action::Reset)
    }

    /// Leaves unread what arrives.
    pub fn stop_reading(&self) -> &Self {
        self.act(self.when(), Action::Read(Reading::Stopped))
    }

    /// Reads at once whatever is here and arrives, as every client does at first.
    pub fn read_on(&self) -> &Self {
        self.act(self.when(), Action::Read(Reading::AtOnce))
    }

    /// Reads slowly.
    pub fn read_at_rate(&self, bytes_per_second: u32) -> &Self {
        self.act(self.when(), Action::Read(Reading::Rate(bytes_per_second)))
    }

    /// All bytes that the client has read.
    pub fn received(&self) -> Vec<u8> {
        self.look(|side| side.received.clone())
    }

    /// As [`Client::received`], and forgets them.
    pub fn take_received(&self) -> Vec<u8> {
        match &mut self.net.borrow_mut().end(self.end).owner {
            Owner::Client(side) => std::mem::take(&mut side.received),
            _ => Vec::new(),
        }
    }

    /// The lengths of the segments in which the bytes came, as long as the client reads at once.
    pub fn received_segments(&self) -> Vec<usize> {
        self.look(|side| side.segments_len.clone())
    }

    /// Bytes that were to be sent and for which there is no room, because the server does not read.
    pub fn unsent(&self) -> u64 {
        self.net.borrow().endpoints[self.end.0].sending.queued
    }

    /// The server has sent FIN and all bytes before it were read.
    pub fn is_closed(&self) -> bool {
        let net = self.net.borrow();
        let receiving = &net.endpoints[self.end.0].receiving;
        receiving.finished && receiving.unread_len == 0
    }

    /// The server has sent RST, or no socket listened.
    pub fn was_reset(&self) -> bool {
        self.look(|side| side.was_reset)
    }

    /// No socket listened, or too many connections waited to be accepted.
    pub fn was_refused(&self) -> bool {
        self.net.borrow().endpoints[self.end.0].error == Some(StreamError::Refused)
    }

    /// When FIN or RST came, counted from the world's beginning.
    pub fn ended_at(&self) -> Option<Duration> {
        self.look(|side| side.ended_at)
    }

    /// The client's address, as the server sees it.
    pub fn address(&self) -> Address {
        self.net.borrow().endpoints[self.end.0].local.clone()
    }

    fn when(&self) -> Instant {
        self.at
            .map_or_else(|| self.net.borrow().now, |at| START + at)
    }

    fn act(&self, at: Instant, action: Action) -> &Self {
        let mut net = self.net.borrow_mut();
        net.agenda.enter(at, Event::Acts(self.end, action));
        self
    }

    fn look<T: Default>(&self, look: impl FnOnce(&ClientSide) -> T) -> T {
        self.net.borrow().endpoints[self.end.0]
            .client()
            .map(look)
            .unwrap_or_default()
    }
}
