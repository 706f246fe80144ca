//! A request's content on its way to an upstream server.

use super::fault::Fault;
use super::http::ContentFraming;
use crate::exchange::{ContentError, Exchange};
use crate::local::Local;
use crate::request::Request;
use mill_http::h1::emit::{CHUNK_END, LAST_CHUNK, emit_chunk_head};
use mill_runtime::engine::Engine;
use mill_runtime::payload::Payload;
use mill_runtime::stream::Stream;
use std::fmt;
use std::marker::PhantomData;

/// The content, read whole before the first try (`proxy_request_buffering on`), or passed on as it arrives.
pub(super) enum RequestContent<E: Engine> {
    None,
    Buffered {
        bytes: Vec<u8>,
        sent: usize,
    },
    Streamed {
        chunked: bool,
        /// Something was read from the client: it cannot be sent to another server.
        begun: bool,
        engine: PhantomData<E>,
    },
}

impl<E: Engine> RequestContent<E> {
    /// Reads the content, if it is to be buffered.
    pub(super) async fn gather<X: Exchange<Engine = E>>(
        buffers: bool,
        exchange: &mut X,
        request: &Request,
    ) -> Result<Self, ContentError> {
        let head = &request.message.head;
        if !head.has_body() || request.content_refused {
            return Ok(Self::None);
        }
        if !buffers {
            return Ok(Self::Streamed {
                chunked: head.content_length.is_none(),
                begun: false,
                engine: PhantomData,
            });
        }
        let mut bytes = Vec::new();
        let gathered = &mut bytes;
        while exchange
            .content(request, PIECE_BYTES, |piece| {
                gathered.extend_from_slice(piece)
            })
            .await?
        {}
        Ok(Self::Buffered { bytes, sent: 0 })
    }

    pub(super) fn framing(&self, request: &Request) -> ContentFraming {
        match self {
            Self::None => ContentFraming::None,
            Self::Buffered { bytes, .. } => ContentFraming::Length(bytes.len() as u64),
            Self::Streamed { .. } => match request.message.head.content_length {
                Some(len) => ContentFraming::Length(len),
                None => ContentFraming::Chunked,
            },
        }
    }

    /// Whether it can be sent again, to another server.
    pub(super) const fn can_be_repeated(&self) -> bool {
        !matches!(self, Self::Streamed { begun: true, .. })
    }

    /// Makes it ready to be sent from its beginning.
    pub(super) const fn rewind(&mut self) {
        if let Self::Buffered { sent, .. } = self {
            *sent = 0;
        }
    }

    /// How many bytes of it may wait for the server before more of it is handed over.
    pub(super) const fn queued_bytes_max(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Buffered { .. } | Self::Streamed { .. } => PIECE_BYTES as u64,
        }
    }

    /// Hands the next piece over to the stream; false when there is none.
    pub(super) async fn send_piece<X: Exchange<Engine = E>>(
        &mut self,
        stream: &E::Stream,
        local: &Local<E>,
        exchange: &mut X,
        request: &Request,
    ) -> Result<bool, Fault> {
        match self {
            Self::None => Ok(false),
            Self::Buffered { bytes, sent } => {
                let rest = bytes.get(*sent..).unwrap_or_default();
                let piece = rest.get(..PIECE_BYTES).unwrap_or(rest);
                stream.write(Payload::Copy(piece));
                *sent += piece.len();
                Ok(*sent < bytes.len())
            }
            Self::Streamed { chunked, begun, .. } => {
                *begun = true;
                let mut piece = local.take_buffer();
                let filled = &mut piece;
                let more = exchange
                    .content(request, PIECE_BYTES, |bytes| {
                        filled.extend_from_slice(bytes)
                    })
                    .await;
                if let Ok(true) = more {
                    write_piece(stream, local, *chunked, &piece);
                } else if *chunked && more == Ok(false) {
                    stream.write(Payload::Copy(LAST_CHUNK));
                }
                local.put_buffer(piece);
                more.map_err(Fault::Content)
            }
        }
    }
}

fn write_piece<E: Engine>(stream: &E::Stream, local: &Local<E>, chunked: bool, piece: &[u8]) {
    if !chunked {
        return stream.write(Payload::Copy(piece));
    }
    let mut size = local.take_buffer();
    emit_chunk_head(piece.len() as u64, &mut size);
    stream.write(Payload::Copy(&size));
    stream.write(Payload::Copy(piece));
    stream.write(Payload::Copy(CHUNK_END));
    local.put_buffer(size);
}

impl<E: Engine> fmt::Debug for RequestContent<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => formatter.write_str("no content"),
            Self::Buffered { bytes, .. } => write!(formatter, "{} bytes", bytes.len()),
            Self::Streamed { .. } => formatter.write_str("streamed content"),
        }
    }
}

/// Bytes of a piece that is read and passed on at once.
const PIECE_BYTES: usize = 64 * 1024;
