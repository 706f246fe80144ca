//! A connection in clear, or under TLS.

use crate::facts::TlsFacts;
use crate::handshake::Fault;
use crate::server_context::ServerChoice;
use crate::stream::TlsStream;
use crate::worker::TlsWorker;
use mill_runtime::address::Address;
use mill_runtime::engine::Engine;
use mill_runtime::payload::Payload;
use mill_runtime::received::Received;
use mill_runtime::stream::{
    Readable, Stream, StreamError, StreamOption, TransportInfo, Unsupported,
};
use mill_runtime::tasks::TaskId;
use mill_runtime::time::Instant;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

/// A stream of the engine, or TLS over one. In clear each call costs one comparison more than the engine's own.
#[derive(Debug)]
pub enum Transport<S: Stream> {
    Tcp(S),
    Tls(Box<TlsStream<S>>),
}

/// The connections of an engine.
pub type TransportOf<E> = Transport<<E as Engine>::Stream>;

impl<S: Stream> Transport<S> {
    /// The server's side of TLS; bytes pass in clear until [`Transport::begin_tls`].
    pub fn server(stream: S, choice: Rc<dyn ServerChoice>, worker: TlsWorker) -> Self {
        Self::Tls(Box::new(TlsStream::server(stream, choice, worker)))
    }

    /// The client's side, to a server of this name; bytes pass in clear until [`Transport::begin_tls`].
    pub fn client(
        stream: S,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        worker: TlsWorker,
    ) -> Self {
        Self::Tls(Box::new(TlsStream::client(stream, config, name, worker)))
    }

    /// From here on bytes are TLS: a header of the PROXY protocol stands before. The handshake runs within
    /// [`Stream::poll_readable`] and [`Stream::poll_drained`], which wait for its end. Without TLS it does nothing.
    pub fn begin_tls(&self) {
        if let Self::Tls(stream) = self {
            stream.begin();
        }
    }

    /// A handshake has begun, and is not over.
    pub fn is_handshaking(&self) -> bool {
        match self {
            Self::Tcp(_) => false,
            Self::Tls(stream) => stream.is_handshaking(),
        }
    }

    /// A request came before the end of the handshake, and the client still owes that end: a close now would meet it with a
    /// reset, which may overtake the answer.
    pub fn is_early(&self) -> bool {
        match self {
            Self::Tcp(_) => false,
            Self::Tls(stream) => stream.is_early(),
        }
    }

    /// What the handshake has agreed on; `None` before its end, and in clear.
    pub fn tls_facts(&self) -> Option<Rc<TlsFacts>> {
        match self {
            Self::Tcp(_) => None,
            Self::Tls(stream) => stream.facts(),
        }
    }

    /// The client speaks plain HTTP where a handshake was due; its bytes pass in clear.
    pub fn is_clear_where_tls_was_due(&self) -> bool {
        match self {
            Self::Tcp(_) => false,
            Self::Tls(stream) => stream.is_clear_where_tls_was_due(),
        }
    }

    /// Why there is no TLS on a connection that was to have it.
    pub fn tls_fault(&self) -> Option<Fault> {
        match self {
            Self::Tcp(_) => None,
            Self::Tls(stream) => stream.fault(),
        }
    }
}

/// Does the same to either.
macro_rules! either {
    ($this:expr, $stream:ident => $call:expr) => {
        match $this {
            Self::Tcp($stream) => $call,
            Self::Tls($stream) => $call,
        }
    };
}

impl<S: Stream> Stream for Transport<S> {
    type File = S::File;

    #[inline]
    fn poll_readable(&self, least: usize) -> Poll<Result<Readable, StreamError>> {
        either!(self, stream => stream.poll_readable(least))
    }

    #[inline]
    fn read<R>(&self, take: impl FnOnce(&mut [u8]) -> (usize, R)) -> R {
        either!(self, stream => stream.read(take))
    }

    fn take_received(&self, lengths: RangeInclusive<usize>) -> Option<Received> {
        either!(self, stream => stream.take_received(lengths))
    }

    fn received_at(&self) -> Option<Instant> {
        either!(self, stream => stream.received_at())
    }

    fn is_reset(&self) -> bool {
        either!(self, stream => stream.is_reset())
    }

    #[inline]
    fn write(&self, payload: Payload<'_, Self::File>) {
        either!(self, stream => stream.write(payload));
    }

    fn write_some(&self, bytes: &[u8]) -> usize {
        either!(self, stream => stream.write_some(bytes))
    }

    fn sends_files(&self) -> bool {
        either!(self, stream => stream.sends_files())
    }

    #[inline]
    fn poll_drained(&self, most: u64) -> Poll<Result<(), StreamError>> {
        either!(self, stream => stream.poll_drained(most))
    }

    #[inline]
    fn queued(&self) -> u64 {
        either!(self, stream => stream.queued())
    }

    fn sent(&self) -> u64 {
        either!(self, stream => stream.sent())
    }

    fn shutdown(&self) {
        either!(self, stream => stream.shutdown());
    }

    fn set_task(&self, task: TaskId) {
        either!(self, stream => stream.set_task(task));
    }

    fn set(&self, option: StreamOption) -> Result<(), Unsupported> {
        either!(self, stream => stream.set(option))
    }

    fn peer(&self) -> Address {
        either!(self, stream => stream.peer())
    }

    fn local(&self) -> Address {
        either!(self, stream => stream.local())
    }

    fn info(&self) -> Option<TransportInfo> {
        either!(self, stream => stream.info())
    }
}
