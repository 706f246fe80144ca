//! A connection in clear, or under TLS.

use crate::facts::TlsFacts;
use crate::handshake::Fault;
use crate::server_context::ServerChoice;
use crate::stream::TlsStream;
use crate::worker::TlsWorker;
use mill_runtime::engine::Engine;
use mill_runtime::payload::Payload;
use mill_runtime::stream::Stream;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::rc::Rc;
use std::sync::Arc;

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

    /// The same for a client whose first bytes may go with its first flight (0-RTT), so that only those are given here which
    /// may come twice at the server (RFC 8446 8). What no session allows, or the server refuses, is sent behind the
    /// handshake; [`TlsFacts::early_data`] says which. Without TLS they are written.
    pub fn begin_tls_with(&self, early: &[u8]) {
        match self {
            Self::Tcp(stream) => stream.write(Payload::Copy(early)),
            Self::Tls(stream) => stream.begin_with(early),
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

mill_runtime::stream_of_either!(Transport: Tcp or Tls);
