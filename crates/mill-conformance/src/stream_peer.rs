//! Peers that are streams of another engine of the same kind.

use crate::client::{End, Peer};
use mill_runtime::address::Address;
use mill_runtime::engine::{ConnectOptions, Engine, Events, Park};
use mill_runtime::payload::Payload;
use mill_runtime::stream::{Stream, StreamError, StreamOption};
use mill_runtime::tasks::TaskId;
use mill_runtime::time::Duration;
use std::fmt;
use std::net::SocketAddr;
use std::task::Poll;

/// A network in virtual time, in which each test has one engine for all its peers.
pub trait PeerNetwork: 'static {
    type Engine: Engine;

    /// The engine of this test's peers.
    fn peers() -> Self::Engine;
}

/// A stream of the peers' engine.
pub struct StreamPeer<N: PeerNetwork>(pub <N::Engine as Engine>::Stream);

/// What frames and timers do to an engine without a worker; waits no longer than `park`.
pub fn turn<E: Engine>(engine: &E, park: Park) {
    let mut events = Events::default();
    engine.poll(park, &mut events);
    engine.settle();
}

impl<N: PeerNetwork> Peer for StreamPeer<N> {
    fn connect(address: SocketAddr) -> Self {
        let engine = N::peers();
        let (target, options) = (Address::Ip(address), ConnectOptions::default());
        let opened = engine.connect(&target, &options, TaskId::NONE);
        engine.settle();
        Self(opened.expect("the network leads there"))
    }

    /// It refuses, or nothing is there that could.
    fn is_refused(address: SocketAddr) -> bool {
        let (peer, engine) = (Self::connect(address), N::peers());
        let give_up = engine.now() + CONNECT_TIMEOUT;
        while engine.now() < give_up {
            match peer.0.poll_drained(0) {
                Poll::Pending => turn(&engine, Park::Until(give_up)),
                Poll::Ready(Ok(())) => return false,
                Poll::Ready(Err(StreamError::Refused | StreamError::Unreachable)) => return true,
                Poll::Ready(Err(error)) => panic!("{error:?}"),
            }
        }
        panic!("a connect has an end");
    }

    /// Sends what has room in a buffer like a kernel's.
    fn send_some(&mut self, bytes: &[u8]) -> usize {
        let room = usize::from(self.0.queued() == 0) * BUFFER_BYTES;
        let count = bytes.len().min(room);
        self.send(&bytes[..count]);
        count
    }

    /// Also while it connects.
    fn send(&mut self, bytes: &[u8]) {
        self.0.write(Payload::Copy(bytes));
        N::peers().settle();
    }

    fn read_some(&mut self, most: usize, into: &mut Vec<u8>) -> Option<End> {
        let end = match self.0.poll_readable(1) {
            Poll::Pending => None,
            Poll::Ready(Ok(readable)) if readable.unread == 0 => Some(End::Fin),
            Poll::Ready(Ok(_)) => self.0.read(|bytes| {
                let count = bytes.len().min(most);
                into.extend_from_slice(&bytes[..count]);
                (count, None)
            }),
            Poll::Ready(Err(StreamError::Reset | StreamError::Refused)) => Some(End::Reset),
            Poll::Ready(Err(error)) => panic!("{error:?}"),
        };
        N::peers().settle();
        end
    }

    fn refresh(&mut self) {
        let engine = N::peers();
        turn(&engine, Park::Until(engine.now()));
    }

    fn finish(&self) {
        self.0.shutdown();
        N::peers().settle();
    }

    fn reset(self) {
        self.0.set(StreamOption::ResetOnClose).unwrap();
        drop(self.0);
        N::peers().settle();
    }

    fn local(&self) -> SocketAddr {
        match self.0.local() {
            Address::Ip(address) => address,
            Address::Unix(_) => panic!("peers connect by IP"),
        }
    }
}

impl<N: PeerNetwork> fmt::Debug for StreamPeer<N> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "StreamPeer({})", self.0.local())
    }
}

/// Bytes: what a peer writes at once.
const BUFFER_BYTES: usize = 256 * 1024;

/// Longer than all retransmissions of a SYN take, in virtual time.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1000);
