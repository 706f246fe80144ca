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
use mill_runtime::time::{Duration, Instant};
use std::future::poll_fn;
use std::task::Poll;

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
        probes: 0,
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
    /// Bytes that were sent early to a client that has finished sending, to learn whether it is still there.
    probes: u8,
}

impl<E: Engine> Sender<'_, E> {
    async fn bytes(
        &mut self,
        bytes: Shared,
        range: std::ops::Range<usize>,
    ) -> Result<(), SendError> {
        let rate = limit_rate(self.request);
        let mut start = range.start;
        while start < range.end {
            let piece_max = clamp(self.keep_to_rate(rate).await?);
            let end = range.end.min(start.saturating_add(piece_max));
            self.write(Payload::Shared(Shared::clone(&bytes), start..end));
            start = end;
        }
        Ok(())
    }

    async fn file(&mut self, file: &FileOf<E>, offset: u64, len: u64) -> Result<(), SendError> {
        let rate = limit_rate(self.request);
        let by_range = self.request.location.sendfile;
        let mut done = 0;
        while done < len {
            let mut count = self.keep_to_rate(rate).await?.min(len - done);
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

    /// Waits so long that what was sent is not more than `limit_rate` allows (0 is no limit); returns how many bytes
    /// may follow. What is allowed for a second goes out at once.
    async fn keep_to_rate(&mut self, rate: u64) -> Result<u64, SendError> {
        if rate == 0 {
            return Ok(u64::MAX);
        }
        if self.request.sent.content_bytes == 0 {
            return Ok(rate);
        }
        drain(self.stream, self.local, &self.request.location.settings, 0).await?;
        let counted = self
            .request
            .sent
            .content_bytes
            .saturating_sub(limit_rate_after(self.request));
        let due = Duration::from_millis(counted.saturating_mul(1000) / rate);
        let mut is_woken = false;
        let due = self.request.started + due;
        poll_fn(|_| self.poll_rate(due, std::mem::replace(&mut is_woken, true)))
            .await
            .map(|probe| if probe { 1 } else { rate })
    }

    /// Ready at `due`; or when the client is gone; or, with true, when it may be. A client that has finished sending may
    /// still read, and only its answer to a further byte tells: that one is sent early, and another one when something
    /// happens after it.
    fn poll_rate(&mut self, due: Instant, is_woken: bool) -> Poll<Result<bool, SendError>> {
        if let Poll::Ready(Err(error)) = self.stream.poll_drained(0) {
            return Poll::Ready(Err(SendError::Lost(error)));
        }
        match (self.poll_finished()?, self.probes) {
            (true, 0) => {}
            (true, 1..PROBES_MAX) if is_woken => {}
            _ => return self.local.scheduler.poll_deadline(due).map(|_| Ok(false)),
        }
        self.probes += 1;
        Poll::Ready(Ok(true))
    }

    /// Whether the client has finished sending. What else it sends is for later requests, and little of it is taken now.
    fn poll_finished(&self) -> Result<bool, SendError> {
        loop {
            let unread = self.stream.read(|bytes| (0, bytes.len()));
            if unread >= UNREAD_MAX {
                return Ok(false);
            }
            match self.stream.poll_readable(unread + 1) {
                Poll::Ready(Ok(readable)) if readable.finished => return Ok(true),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Err(SendError::Lost(error)),
                Poll::Pending => return Ok(false),
            }
        }
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

/// Bytes of further requests beyond which a client that waits for `limit_rate` is not read.
const UNREAD_MAX: usize = 64 * 1024;

/// Bytes that an answer may be ahead of `limit_rate`, to find out that a client has left: the first brings its RST, and
/// where that only shows when something is sent, the second fails.
const PROBES_MAX: u8 = 2;

/// Bytes read from a file at once where they are copied: nginx's `output_buffers 2 32k` together.
const COPY_BYTES: usize = 64 * 1024;
