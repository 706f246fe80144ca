//! The other end: a stream of another host.

use crate::expecting::End;
use crate::server::{Network, TestStream, network};
use mill_runtime::address::Address;
use mill_runtime::engine::{ConnectOptions, Engine, Park};
use mill_runtime::payload::Payload;
use mill_runtime::stream::{Stream, StreamError, StreamOption};
use mill_runtime::tasks::TaskId;
use mill_runtime::time::Duration;
use std::net::SocketAddr;
use std::task::Poll;

/// A connection to the server under test.
pub(crate) struct Client {
    pub(crate) stream: TestStream,
    network: Network,
    pub(crate) received: Vec<u8>,
    pub(crate) end: Option<End>,
}

impl Client {
    /// Begins to connect.
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let network = network();
        let (target, options) = (Address::Ip(address), ConnectOptions::default());
        let opened = network.clients.connect(&target, &options, TaskId::NONE);
        network.clients.settle();
        Self::of(opened.expect("the cable leads there"))
    }

    /// The end of a connection that came to the clients' host.
    pub(crate) fn of(stream: TestStream) -> Self {
        Self {
            stream,
            network: network(),
            received: Vec::new(),
            end: None,
        }
    }

    /// A client whose receive buffer is small: the clients' host has no large ones for those who do not read.
    pub(crate) fn connect_small(address: SocketAddr) -> Self {
        Self::connect(address)
    }

    /// Sends what has room in a buffer like a kernel's; returns how much that was.
    pub(crate) fn send_some(&mut self, bytes: &[u8]) -> usize {
        let room = usize::from(self.stream.queued() == 0) * CLIENT_BUFFER_BYTES;
        let count = bytes.len().min(room);
        self.stream.write(Payload::Copy(&bytes[..count]));
        self.network.clients.settle();
        count
    }

    /// Sends a few bytes.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write(Payload::Copy(bytes.as_ref()));
        self.network.clients.settle();
    }

    /// Reads at most `most` bytes of what is here.
    pub(crate) fn read_some(&mut self, most: usize) {
        match self.stream.poll_readable(1) {
            Poll::Pending => {}
            Poll::Ready(Ok(readable)) if readable.unread == 0 => self.end = Some(End::Fin),
            Poll::Ready(Ok(_)) => self.stream.read(|bytes| {
                let count = bytes.len().min(most);
                self.received.extend_from_slice(&bytes[..count]);
                (count, ())
            }),
            Poll::Ready(Err(error)) => {
                assert!(matches!(error, StreamError::Reset | StreamError::Refused));
                self.end = Some(End::Reset);
            }
        }
        self.network.clients.settle();
    }

    /// Reads what is here, and whether the server has ended.
    pub(crate) fn pump(&mut self) -> &mut Self {
        self.network.turn_clients(Park::Until(self.network.now()));
        let mut before = usize::MAX;
        while self.end.is_none() && self.received.len() != before {
            before = self.received.len();
            self.read_some(64 * 1024);
        }
        self
    }

    /// Sends FIN; reading goes on.
    pub(crate) fn finish(&self) {
        self.stream.shutdown();
        self.network.clients.settle();
    }

    /// Sends RST.
    pub(crate) fn reset(self) {
        self.stream.set(StreamOption::ResetOnClose).unwrap();
        let network = self.network;
        drop(self.stream);
        network.clients.settle();
    }

    pub(crate) fn local(&self) -> SocketAddr {
        match self.stream.local() {
            Address::Ip(address) => address,
            Address::Unix(_) => panic!("clients go over the cable"),
        }
    }
}

/// Whether nobody listens at `address`: it refuses, or nobody is there who could.
pub(crate) fn is_refused(address: SocketAddr) -> bool {
    let client = Client::connect(address);
    let network = network();
    let give_up = network.now() + CONNECT_PATIENCE;
    while network.now() < give_up {
        match client.stream.poll_drained(0) {
            Poll::Pending => network.turn_clients(Park::Until(give_up)),
            Poll::Ready(Ok(())) => return false,
            Poll::Ready(Err(error)) => {
                assert!(matches!(
                    error,
                    StreamError::Refused | StreamError::Unreachable
                ));
                return true;
            }
        }
    }
    panic!("a connect has an end");
}

/// Bytes: what a client writes at once.
const CLIENT_BUFFER_BYTES: usize = 256 * 1024;

/// Longer than all retransmissions of a SYN take.
const CONNECT_PATIENCE: Duration = Duration::from_secs(1000);
