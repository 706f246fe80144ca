//! The answer's content on the stream: pieces as they are, or as chunks.

use crate::local::{FileOf, Local};
use crate::request::Sent;
use crate::response::FieldLine;
use mill_http::h1::emit::{CHUNK_END, emit_chunk_head, emit_last_chunk};
use mill_runtime::engine::Engine;
use mill_runtime::payload::Payload;
use mill_runtime::stream::Stream;
use mill_tls::transport::TransportOf;

/// Writes the content of one answer.
pub(super) struct Outgoing<'a, E: Engine> {
    pub(super) stream: &'a TransportOf<E>,
    pub(super) local: &'a Local<E>,
    pub(super) sent: &'a mut Sent,
    pub(super) chunked: bool,
}

impl<E: Engine> Outgoing<'_, E> {
    /// Queues a piece of content, as a chunk if the answer has chunks.
    pub(super) fn write(&mut self, piece: Payload<'_, FileOf<E>>) {
        let len = piece.len();
        if len == 0 {
            return;
        }
        self.count(len);
        if !self.chunked {
            self.stream.write(piece);
            return;
        }
        let mut size = self.local.take_buffer();
        emit_chunk_head(len, &mut size);
        self.count((size.len() + CHUNK_END.len()) as u64);
        self.stream.write(Payload::Copy(&size));
        self.stream.write(piece);
        self.stream.write(Payload::Copy(CHUNK_END));
        self.local.put_buffer(size);
    }

    /// Queues the end of chunked content: the last chunk, with the trailers of the origin and our own.
    pub(super) fn end(&mut self, of_origin: &[FieldLine], own: &[FieldLine]) {
        if !self.chunked {
            return;
        }
        let trailers = of_origin
            .iter()
            .chain(own)
            .map(|line| (&*line.name, &*line.value));
        let mut end = self.local.take_buffer();
        emit_last_chunk(trailers, &mut end);
        self.stream.write(Payload::Copy(&end));
        self.count(end.len() as u64);
        self.local.put_buffer(end);
    }

    fn count(&mut self, bytes: u64) {
        self.sent.bytes += bytes;
        self.sent.content_bytes += bytes;
    }
}
