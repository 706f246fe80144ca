//! Compression while sending: any content in, pieces of a gzip stream out.

use super::{Compressed, Origin, PIECE_BYTES, Pull, clamp, put_back};
use crate::exchange::SendError;
use crate::gzip::Encoder;
use crate::local::Local;
use mill_runtime::engine::Engine;
use mill_runtime::files::Files;
use mill_runtime::payload::Payload;
use mill_runtime::stream::StreamError;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// The state of a content's compression.
#[derive(Debug)]
pub(super) struct Deflating {
    level: u8,
    /// Lent by the worker when the first piece is pulled.
    encoder: Option<Encoder>,
    /// The encoder's output; pieces borrow from it.
    out: Vec<u8>,
    /// Bytes of `out` that were pulled.
    given: usize,
    /// Bytes that the encoder consumed, and bytes of its output that were pulled.
    taken: u64,
    given_in_all: u64,
    /// The encoder has taken bytes since it was flushed.
    is_behind: bool,
    /// The encoder has written its last byte.
    ended: bool,
}

impl Deflating {
    pub(super) const fn new(level: u8) -> Self {
        Self {
            level,
            encoder: None,
            out: Vec::new(),
            given: 0,
            taken: 0,
            given_in_all: 0,
            is_behind: false,
            ended: false,
        }
    }

    pub(super) const fn level(&self) -> u8 {
        self.level
    }

    pub(super) const fn is_exhausted(&self) -> bool {
        self.ended && self.given == self.out.len()
    }

    pub(super) fn compressed_to(&self) -> Option<Compressed> {
        self.is_exhausted().then_some(Compressed {
            from: self.taken,
            to: self.given_in_all,
        })
    }

    /// The next compressed piece: the rest of the last one, or about `PIECE_BYTES` of a new one; less where the origin
    /// makes it wait.
    pub(super) async fn next<File, E>(
        &mut self,
        pull: &Pull<'_, E>,
        origin: &mut Origin<File>,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Payload<'_, File>>, SendError>
    where
        File: Clone,
        E: Engine<Files: Files<File = File>>,
    {
        if self.given == self.out.len() {
            if self.out.capacity() == 0 {
                self.out = pull.local.take_buffer();
            }
            self.out.clear();
            self.given = 0;
            self.fill(pull.local, origin, buffer).await?;
        }
        let start = self.given;
        let end = self.out.len().min(start.saturating_add(clamp(pull.most)));
        self.given = end;
        self.given_in_all += (end - start) as u64;
        let piece = self.out.get(start..end).unwrap_or_default();
        Ok((!piece.is_empty()).then_some(Payload::Copy(piece)))
    }

    /// Compresses until a piece is full, until the end, or until an origin that arrives pauses: what is there then leaves
    /// at once, an event of server-sent events for instance.
    async fn fill<File, E>(
        &mut self,
        local: &Local<E>,
        origin: &mut Origin<File>,
        buffer: &mut Vec<u8>,
    ) -> Result<(), SendError>
    where
        File: Clone,
        E: Engine<Files: Files<File = File>>,
    {
        let uncompressed = Pull {
            local,
            most: PIECE_BYTES,
            copies: true,
            read_most: PIECE_BYTES,
        };
        while !self.ended && (self.out.len() as u64) < PIECE_BYTES {
            let flushes = self.is_behind && matches!(origin, Origin::Source(_));
            let mut next = pin!(origin.next(&uncompressed, buffer));
            let piece = poll_fn(|context| match next.as_mut().poll(context) {
                Poll::Pending if flushes => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
                Poll::Ready(piece) => Poll::Ready(Some(piece)),
            });
            let piece = piece.await.transpose()?;
            let level = self.level;
            let encoder = self
                .encoder
                .get_or_insert_with(|| local.take_encoder(level));
            let Some(piece) = piece else {
                encoder.flush(&mut self.out);
                self.is_behind = false;
                break;
            };
            self.is_behind = true;
            match &piece {
                None => {
                    encoder.finish(&mut self.out);
                    self.ended = true;
                }
                Some(Payload::Copy(bytes)) => encoder.push(bytes, &mut self.out),
                Some(Payload::Shared(bytes, range)) => {
                    let bytes = bytes.get(range.clone()).unwrap_or_default();
                    encoder.push(bytes, &mut self.out);
                }
                // Unreachable: with `copies` an origin gives no file range.
                Some(Payload::File { .. }) => return Err(SendError::Lost(StreamError::Truncated)),
            }
            self.taken += piece.as_ref().map_or(0, Payload::len);
        }
        put_back(buffer, local);
        Ok(())
    }

    pub(super) fn release<E: Engine>(mut self, local: &Local<E>) {
        put_back(&mut self.out, local);
        if let Some(encoder) = self.encoder {
            local.put_encoder(self.level, encoder);
        }
    }
}
