//! The answer's content: memory, files, compressed files; sent no faster than the client takes it.

use super::Framing;
use crate::exchange::SendError;
use crate::exchange::drain::drain;
use crate::local::{FileOf, Local};
use crate::request::Request;
use crate::response::{Content, Piece, Response};
use mill_config::config::location::Amount;
use mill_http::h1::emit::{CHUNK_END, emit_chunk_head, emit_last_chunk};
use mill_runtime::engine::Engine;
use mill_runtime::files::Files;
use mill_runtime::payload::{Payload, Shared};
use mill_runtime::stream::{Stream, StreamError, StreamOption};
use mill_runtime::time::Duration;

/// Sends the content behind the head that was written, and waits until the transport has all of it.
pub(super) async fn send<E: Engine>(
    stream: &E::Stream,
    local: &Local<E>,
    request: &mut Request,
    response: Response<FileOf<E>>,
    framing: Framing,
) -> Result<(), SendError> {
    let chunked = framing == Framing::Chunked;
    let mut sender = Sender {
        stream,
        local,
        request,
        chunked,
    };
    match response.content {
        _ if framing == Framing::None => {}
        Content::Absent => {}
        Content::Bytes(bytes, range) => sender.bytes(bytes, range).await?,
        Content::File { file, offset, len } => sender.file(&file, offset, len).await?,
        Content::Pieces(pieces) => {
            for piece in pieces {
                match piece {
                    Piece::Bytes(bytes, range) => sender.bytes(bytes, range).await?,
                    Piece::File { file, offset, len } => sender.file(&file, offset, len).await?,
                }
            }
        }
        Content::Gzip { file, len, level } => sender.gzip(&file, len, level).await?,
    }
    if chunked {
        let trailers = response
            .trailers
            .iter()
            .map(|line| (&*line.name, &*line.value));
        let mut end = local.take_buffer();
        emit_last_chunk(trailers, &mut end);
        stream.write(Payload::Copy(&end));
        sender.request.sent.bytes += end.len() as u64;
        sender.request.sent.content_bytes += end.len() as u64;
        local.put_buffer(end);
    }
    wait_until_sent(stream, local, request).await
}

/// Waits until the transport has taken everything.
pub(super) async fn wait_until_sent<E: Engine>(
    stream: &E::Stream,
    local: &Local<E>,
    request: &Request,
) -> Result<(), SendError> {
    drain(stream, local, &request.location.settings, 0).await
}

/// Where the content of one answer goes.
struct Sender<'a, E: Engine> {
    stream: &'a E::Stream,
    local: &'a Local<E>,
    request: &'a mut Request,
    chunked: bool,
}

impl<E: Engine> Sender<'_, E> {
    async fn bytes(
        &mut self,
        bytes: Shared,
        range: std::ops::Range<usize>,
    ) -> Result<(), SendError> {
        let rate = limit_rate(self.request);
        let piece_max = if rate == 0 { usize::MAX } else { clamp(rate) };
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min(start.saturating_add(piece_max));
            self.write(Payload::Shared(Shared::clone(&bytes), start..end));
            start = end;
            self.keep_to_rate(rate).await?;
        }
        Ok(())
    }

    async fn file(&mut self, file: &FileOf<E>, offset: u64, len: u64) -> Result<(), SendError> {
        let rate = limit_rate(self.request);
        let by_range = self.request.location.sendfile;
        let mut done = 0;
        while done < len {
            let mut count = len - done;
            if rate > 0 {
                count = count.min(rate);
            }
            if by_range {
                let file = file.clone();
                self.write(Payload::File {
                    file,
                    offset: offset + done,
                    len: count,
                });
            } else {
                count = self.copy(file, offset + done, count).await?;
            }
            done += count;
            self.keep_to_rate(rate).await?;
        }
        Ok(())
    }

    /// Reads a piece and hands it over as bytes (`sendfile off`); returns how long the piece was.
    async fn copy(&mut self, file: &FileOf<E>, offset: u64, most: u64) -> Result<u64, SendError> {
        drain(
            self.stream,
            self.local,
            &self.request.location.settings,
            COPY_BYTES as u64,
        )
        .await?;
        let mut buffer = self.local.take_buffer();
        buffer.resize(clamp(most.min(COPY_BYTES as u64)), 0);
        let read = self
            .local
            .engine
            .files()
            .read_at(file, offset, &mut buffer)
            .await;
        let count = match read {
            Ok(count) if count > 0 => count,
            // It ended early, or could not be read: the length was promised, so the connection breaks.
            _ => return Err(self.truncated()),
        };
        self.write(Payload::Copy(buffer.get(..count).unwrap_or_default()));
        self.local.put_buffer(buffer);
        Ok(count as u64)
    }

    /// Compresses the file while it is sent.
    async fn gzip(&mut self, file: &FileOf<E>, len: u64, level: u8) -> Result<(), SendError> {
        let mut encoder = self.local.take_encoder(level);
        let mut offset = 0;
        let mut compressed = Vec::new();
        while offset < len {
            let mut buffer = self.local.take_buffer();
            buffer.resize(clamp((len - offset).min(COPY_BYTES as u64)), 0);
            let read = self
                .local
                .engine
                .files()
                .read_at(file, offset, &mut buffer)
                .await;
            let Some(count) = read.ok().filter(|count| *count > 0) else {
                return Err(self.truncated());
            };
            encoder.push(buffer.get(..count).unwrap_or_default(), &mut compressed);
            self.local.put_buffer(buffer);
            offset += count as u64;
            if compressed.len() >= COPY_BYTES {
                self.write(Payload::Copy(&compressed));
                compressed.clear();
                drain(
                    self.stream,
                    self.local,
                    &self.request.location.settings,
                    COPY_BYTES as u64,
                )
                .await?;
            }
        }
        encoder.finish(&mut compressed);
        self.local.put_encoder(level, encoder);
        self.write(Payload::Copy(&compressed));
        self.request.sent.uncompressed_bytes = Some(len);
        Ok(())
    }

    /// Hands over a piece of content, as a chunk if the answer has chunks.
    fn write(&mut self, payload: Payload<'_, FileOf<E>>) {
        let len = payload.len();
        if len == 0 {
            return;
        }
        let sent = &mut self.request.sent;
        sent.bytes += len;
        sent.content_bytes += len;
        if !self.chunked {
            self.stream.write(payload);
            return;
        }
        let mut size = self.local.take_buffer();
        emit_chunk_head(len, &mut size);
        let framing_len = (size.len() + CHUNK_END.len()) as u64;
        sent.bytes += framing_len;
        sent.content_bytes += framing_len;
        self.stream.write(Payload::Copy(&size));
        self.stream.write(payload);
        self.stream.write(Payload::Copy(CHUNK_END));
        self.local.put_buffer(size);
    }

    /// Waits so long that what was sent is not more than `limit_rate` allows. (0 is no limit.)
    async fn keep_to_rate(&mut self, rate: u64) -> Result<(), SendError> {
        if rate == 0 {
            return Ok(());
        }
        drain(self.stream, self.local, &self.request.location.settings, 0).await?;
        let counted = self
            .request
            .sent
            .content_bytes
            .saturating_sub(limit_rate_after(self.request));
        let due = Duration::from_millis(counted.saturating_mul(1000) / rate);
        let passed = self.local.scheduler.now().since(self.request.started);
        if due > passed {
            self.local.scheduler.sleep(due - passed).await;
        }
        Ok(())
    }

    /// The file is shorter than was promised: the client sees a reset, never a wrong length.
    fn truncated(&self) -> SendError {
        // A stream without the option is closed early, and the client misses bytes as well.
        let _ = self.stream.set(StreamOption::ResetOnClose);
        SendError::Lost(StreamError::Truncated)
    }
}

/// Bytes per second that the client gets, 0 for no limit.
fn limit_rate(request: &Request) -> u64 {
    request
        .limit_rate
        .unwrap_or(match request.location.limit_rate {
            Amount::Fixed(rate) => rate,
            Amount::Evaluated(_) => 0,
        })
}

/// Bytes that are sent before the limit begins.
fn limit_rate_after(request: &Request) -> u64 {
    request
        .limit_rate_after
        .unwrap_or(match request.location.limit_rate_after {
            Amount::Fixed(bytes) => bytes,
            Amount::Evaluated(_) => 0,
        })
}

fn clamp(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Bytes read from a file at once where they are copied: nginx's `output_buffers 2 32k` together.
const COPY_BYTES: usize = 64 * 1024;
