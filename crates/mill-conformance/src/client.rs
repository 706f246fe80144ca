//! The other end of a connection, and what it expects.

use std::fmt;
use std::net::SocketAddr;

/// A connection to the server under test, and what has come by it.
pub struct Client<P> {
    pub peer: P,
    pub received: Vec<u8>,
    pub end: Option<End>,
}

/// How the server ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Fin,
    Reset,
}

/// One end of a connection, which never blocks the test.
pub trait Peer: Sized {
    /// Begins to connect.
    fn connect(address: SocketAddr) -> Self;

    /// As [`Peer::connect`], with a small receive buffer.
    fn connect_small(address: SocketAddr) -> Self {
        Self::connect(address)
    }

    /// Whether no server listens at `address`.
    fn is_refused(address: SocketAddr) -> bool;

    /// Sends what is taken at once; returns how much that was.
    fn send_some(&mut self, bytes: &[u8]) -> usize;

    /// Sends a few bytes.
    fn send(&mut self, bytes: &[u8]) {
        assert_eq!(self.send_some(bytes), bytes.len(), "a few bytes fit");
    }

    /// Appends at most `most` bytes of what is here; says whether the server has ended.
    fn read_some(&mut self, most: usize, into: &mut Vec<u8>) -> Option<End>;

    /// Brings in what has arrived, where that takes an act.
    fn refresh(&mut self) {}

    /// Sends FIN; reading goes on.
    fn finish(&self);

    /// Sends RST.
    fn reset(self);

    fn local(&self) -> SocketAddr;
}

impl<P: Peer> Client<P> {
    pub fn connect(address: SocketAddr) -> Self {
        Self::of(P::connect(address))
    }

    pub fn connect_small(address: SocketAddr) -> Self {
        Self::of(P::connect_small(address))
    }

    pub fn of(peer: P) -> Self {
        Self {
            peer,
            received: Vec::new(),
            end: None,
        }
    }

    pub fn send_some(&mut self, bytes: &[u8]) -> usize {
        self.peer.send_some(bytes)
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.peer.send(bytes.as_ref());
    }

    /// Reads at most `most` bytes of what is here.
    pub fn read_some(&mut self, most: usize) {
        let end = self.peer.read_some(most, &mut self.received);
        self.end = self.end.or(end);
    }

    /// Reads what is here, and whether the server has ended.
    pub fn pump(&mut self) -> &mut Self {
        self.peer.refresh();
        let mut before = usize::MAX;
        while self.end.is_none() && self.received.len() != before {
            before = self.received.len();
            self.read_some(64 * 1024);
        }
        self
    }

    /// Whether exactly `expected` has come; more fails.
    pub fn has(&mut self, expected: &[u8]) -> bool {
        self.pump();
        assert!(
            expected.starts_with(&self.received),
            "got {:?}, not {:?}",
            self.received.escape_ascii().to_string(),
            expected.escape_ascii().to_string()
        );
        self.received.len() == expected.len()
    }

    pub fn ended(&mut self, end: End) -> bool {
        self.pump();
        assert!(self.end.is_none_or(|seen| seen == end), "{:?}", self.end);
        self.end.is_some()
    }

    pub fn finish(&self) {
        self.peer.finish();
    }

    pub fn reset(self) {
        self.peer.reset();
    }

    pub fn local(&self) -> SocketAddr {
        self.peer.local()
    }
}

impl<P> fmt::Debug for Client<P> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "Client({} bytes, {:?})",
            self.received.len(),
            self.end
        )
    }
}
