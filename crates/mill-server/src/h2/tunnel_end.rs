//! A stream that carries another protocol, as the near end of a tunnel (RFC 8441): DATA both ways, END_STREAM as FIN.

use super::streams::{Http2, Room};
use crate::proxy::tunnel::Tunnel;
use mill_http::h2::error::ErrorCode;
use mill_http::h2::frame::StreamId;
use mill_runtime::address::Address;
use mill_runtime::engine::Engine;
use mill_runtime::payload::Payload;
use mill_runtime::stream::{
    Readable, Stream, StreamError, StreamOption, TransportInfo, Unsupported,
};
use mill_runtime::tasks::TaskId;
use mill_tls::transport::TransportOf;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// What was written waits here for the windows; the tunnel writes no more than a piece ahead.
struct TunnelEnd<E: Engine> {
    connection: Rc<Http2<E>>,
    stream: StreamId,
    waiting: RefCell<Vec<u8>>,
    sent: Cell<u64>,
    end: Cell<End>,
}

/// How far our direction is from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Open,
    /// END_STREAM follows what waits.
    Asked,
    Sent,
}

impl<E: Engine> Http2<E> {
    /// Carries bytes between the stream and a server, until both have ended or one has failed.
    pub(super) async fn carry(self: &Rc<Self>, stream: StreamId, mut tunnel: Tunnel<E>) {
        let near = TunnelEnd {
            connection: Rc::clone(self),
            stream,
            waiting: RefCell::default(),
            sent: Cell::new(0),
            end: Cell::new(End::Open),
        };
        poll_fn(|_| tunnel.poll(&near, self.local())).await;
        // RFC 8441 5: as a reset of TCP. Where both have ended there is nothing to reset.
        self.write(|protocol| protocol.reset(stream, ErrorCode::CANCEL));
    }
}

impl<E: Engine> TunnelEnd<E> {
    /// Sends what the windows and the other streams allow.
    fn send(&self) -> Result<(), StreamError> {
        let mut waiting = self.waiting.borrow_mut();
        let sent = self.send_from(&waiting)?;
        if sent < waiting.len() {
            waiting.drain(..sent);
            return Ok(());
        }
        *waiting = Vec::new();
        if self.end.get() == End::Asked {
            self.emit(&[], true);
        }
        Ok(())
    }

    /// Sends what may be sent now; returns its length.
    fn send_from(&self, bytes: &[u8]) -> Result<usize, StreamError> {
        let mut sent = 0;
        while let Some(rest @ [_, ..]) = bytes.get(sent..) {
            match self.connection.room(self.stream) {
                Room::Wait => break,
                Room::Lost(error) => return Err(error),
                Room::Bytes(room) => {
                    let piece = rest.get(..room).unwrap_or(rest);
                    let ends = self.end.get() == End::Asked && piece.len() == rest.len();
                    self.emit(piece, ends);
                    sent += piece.len();
                }
            }
        }
        Ok(sent)
    }

    fn emit(&self, bytes: &[u8], ends: bool) {
        self.connection
            .write(|protocol| protocol.emit_data(self.stream, bytes, ends, usize::MAX));
        self.sent.set(self.sent.get() + bytes.len() as u64);
        if ends {
            self.end.set(End::Sent);
        }
    }

    fn transport(&self) -> &TransportOf<E> {
        self.connection.stream()
    }
}

impl<E: Engine> Stream for TunnelEnd<E> {
    type File = <TransportOf<E> as Stream>::File;

    fn poll_readable(&self, least: usize) -> Poll<Result<Readable, StreamError>> {
        self.send()?;
        match self.connection.unread(self.stream) {
            Ok(readable) if readable.unread < least && !readable.finished => Poll::Pending,
            known => Poll::Ready(known),
        }
    }

    fn read<R>(&self, take: impl FnOnce(&mut [u8]) -> (usize, R)) -> R {
        self.connection.read(self.stream, take)
    }

    fn is_reset(&self) -> bool {
        self.connection.is_reset(self.stream)
    }

    fn write(&self, payload: Payload<'_, Self::File>) {
        let bytes = match &payload {
            Payload::Copy(bytes) => *bytes,
            Payload::Shared(memory, range) => memory.get(range.clone()).unwrap_or_default(),
            // `sends_files` says that there are none.
            Payload::File { .. } => return,
        };
        let mut waiting = self.waiting.borrow_mut();
        // A failure is found by the next call that can tell it.
        let is_first = waiting.is_empty();
        let sent = if is_first {
            self.send_from(bytes)
        } else {
            Ok(0)
        };
        if let Ok(sent) = sent {
            waiting.extend_from_slice(bytes.get(sent..).unwrap_or_default());
        }
    }

    fn sends_files(&self) -> bool {
        false
    }

    fn poll_drained(&self, most: u64) -> Poll<Result<(), StreamError>> {
        self.send()?;
        if self.queued() <= most {
            Poll::Ready(Ok(()))
        } else {
            Poll::Pending
        }
    }

    fn queued(&self) -> u64 {
        self.waiting.borrow().len() as u64
    }

    fn sent(&self) -> u64 {
        self.sent.get()
    }

    fn shutdown(&self) {
        if self.end.get() == End::Open {
            self.end.set(End::Asked);
            // A failure is found by the next call that can tell it.
            let _ = self.send();
        }
    }

    fn set_task(&self, task: TaskId) {
        self.connection.set_task(self.stream, task);
    }

    fn set(&self, _: StreamOption) -> Result<(), Unsupported> {
        Err(Unsupported)
    }

    fn peer(&self) -> Address {
        self.transport().peer()
    }

    fn local(&self) -> Address {
        self.transport().local()
    }

    fn info(&self) -> Option<TransportInfo> {
        self.transport().info()
    }
}

impl<E: Engine> fmt::Debug for TunnelEnd<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "TunnelEnd({})", self.stream)
    }
}
