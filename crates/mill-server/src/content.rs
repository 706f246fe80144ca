//! The content of an answer: its origin, and its transformations. It is pulled piece by piece, as fast as the client
//! takes it.
//!
//! Transformations have a fixed order, as nginx's filters have: the origin gives bytes, gzip compresses them. A content
//! without any gives its memory and its file ranges as they are, so that a file still goes out by `sendfile`.

/// What was read ahead of a slow client.
pub mod awaited;
/// What a cache keeps.
pub(crate) mod cached;
/// Parts of it.
mod cut;
/// Compression while it is sent.
mod gzip;
/// Content that has arrived whole.
pub mod held;
/// Content in slices.
pub mod sliced;
/// Content that arrives while it is sent.
pub mod source;

use crate::exchange::SendError;
use crate::local::{FileOf, Local};
use crate::response::FieldLine;
use awaited::Awaited;
use gzip::Deflating;
use held::Held;
use mill_runtime::engine::Engine;
use mill_runtime::files::Files;
use mill_runtime::payload::{Payload, Shared};
use mill_runtime::stream::StreamError;
use sliced::Sliced;
use std::collections::VecDeque;
use std::ops::Range;

/// Content that is being sent. Owned by the response; its memory goes back to the worker in [`Content::release`].
#[derive(Debug)]
pub struct Content<File> {
    origin: Origin<File>,
    /// Boxed: few contents have it, and inline it would enlarge every answer.
    deflating: Option<Box<Deflating>>,
    /// Set if the content was compressed before it was sent.
    compressed: Option<Compressed>,
    /// The bytes read from a file that a piece borrows.
    buffer: Vec<u8>,
}

/// Where content comes from.
#[derive(Debug)]
pub enum Origin<File> {
    /// None at all, and no `Content-Length` either: 204, 304.
    Absent,
    Part(Part<File>),
    /// One after the other: multipart/byteranges.
    Parts(VecDeque<Part<File>>),
    /// Awaited: an upstream's answer.
    Source(Box<Awaited<File>>),
    /// The same where all of it is here.
    Held(Held),
    /// Asked for slice by slice.
    Sliced(Box<Sliced<File>>),
}

/// Bytes in memory, or a range of a file.
#[derive(Clone, Debug)]
pub enum Part<File> {
    Bytes(Shared, Range<usize>),
    File { file: File, offset: u64, len: u64 },
}

/// Sizes before and after compression, in bytes without framing: `$gzip_ratio`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compressed {
    pub from: u64,
    pub to: u64,
}

/// How much of a content is pulled, and in which form.
#[derive(Debug)]
pub struct Pull<'l, E: Engine> {
    pub local: &'l Local<E>,
    /// The maximum bytes of the piece, at least 1.
    pub most: u64,
    /// Ranges of files are read and returned as bytes (`sendfile off`).
    pub copies: bool,
    /// The maximum bytes that are read from a file at once, `PIECE_BYTES` or more.
    pub read_most: u64,
}

impl<File> Content<File> {
    pub const fn absent() -> Self {
        Self::of(Origin::Absent)
    }

    /// All of `bytes`.
    pub fn bytes(bytes: impl Into<Shared>) -> Self {
        let bytes = bytes.into();
        let range = 0..bytes.len();
        Self::part(Part::Bytes(bytes, range))
    }

    pub const fn file(file: File, offset: u64, len: u64) -> Self {
        Self::part(Part::File { file, offset, len })
    }

    pub const fn part(part: Part<File>) -> Self {
        Self::of(Origin::Part(part))
    }

    pub fn parts(parts: impl Into<VecDeque<Part<File>>>) -> Self {
        Self::of(Origin::Parts(parts.into()))
    }

    pub fn source(source: Box<Awaited<File>>) -> Self {
        Self::of(Origin::Source(source))
    }

    pub const fn held(held: Held) -> Self {
        Self::of(Origin::Held(held))
    }

    pub const fn sliced(sliced: Box<Sliced<File>>) -> Self {
        Self::of(Origin::Sliced(sliced))
    }

    const fn of(origin: Origin<File>) -> Self {
        Self {
            origin,
            deflating: None,
            compressed: None,
            buffer: Vec::new(),
        }
    }

    /// Compresses it while it is sent, at this level. Its length is unknown from now on.
    pub fn compress(&mut self, level: u8) {
        self.deflating = Some(Box::new(Deflating::new(level)));
    }

    /// The level at which it is compressed while it is sent; `None` if it is not.
    pub fn compression(&self) -> Option<u8> {
        self.deflating.as_ref().map(|deflating| deflating.level())
    }

    /// The same content, compressed before it is sent: these bytes, made of `uncompressed` bytes.
    pub fn compressed(bytes: Shared, uncompressed: u64) -> Self {
        let (from, to) = (uncompressed, bytes.len() as u64);
        Self {
            compressed: Some(Compressed { from, to }),
            ..Self::bytes(bytes)
        }
    }

    /// Replaces the content by the same bytes in memory.
    pub fn set_bytes(&mut self, bytes: Shared) {
        let range = 0..bytes.len();
        self.origin = Origin::Part(Part::Bytes(bytes, range));
    }

    pub const fn origin(&self) -> &Origin<File> {
        &self.origin
    }

    /// Its only part, before any transformation.
    pub const fn only_part(&self) -> Option<&Part<File>> {
        match &self.origin {
            Origin::Part(part) => Some(part),
            Origin::Absent
            | Origin::Parts(_)
            | Origin::Source(_)
            | Origin::Held(_)
            | Origin::Sliced(_) => None,
        }
    }

    /// What the origin has sent behind the content, once that is exhausted.
    pub fn trailers(&self) -> Vec<FieldLine> {
        match &self.origin {
            Origin::Source(source) => source.trailers(),
            _ => Vec::new(),
        }
    }

    /// Remaining bytes, `None` when only the end will tell.
    pub fn len(&self) -> Option<u64> {
        if self.deflating.is_some() {
            return None;
        }
        Some(match &self.origin {
            Origin::Absent => 0,
            Origin::Part(part) => part.len(),
            Origin::Parts(parts) => parts.iter().map(Part::len).sum(),
            Origin::Source(source) => return source.remaining(),
            Origin::Held(held) => return held.remaining(),
            Origin::Sliced(sliced) => sliced.remaining(),
        })
    }

    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    pub const fn is_absent(&self) -> bool {
        matches!(self.origin, Origin::Absent)
    }

    /// Whether it is of no use without a client: what a server is asked to send, unless `proxy_ignore_client_abort`.
    pub fn needs_client(&self) -> bool {
        match &self.origin {
            Origin::Source(source) => source.needs_client(),
            Origin::Sliced(sliced) => sliced.needs_client(),
            _ => false,
        }
    }

    /// Whether everything was pulled.
    pub fn is_exhausted(&self) -> bool {
        self.deflating.as_ref().map_or_else(
            || self.origin.is_exhausted(),
            |deflating| deflating.is_exhausted(),
        )
    }

    /// The sizes after compression, once all was pulled; `None` of an uncompressed content.
    pub fn compressed_to(&self) -> Option<Compressed> {
        match &self.deflating {
            Some(deflating) => deflating.compressed_to(),
            None => self.compressed,
        }
    }

    /// Gives the buffer of the last piece back to the worker: the piece was sent or queued.
    pub fn put_back_buffer<E: Engine>(&mut self, local: &Local<E>) {
        put_back(&mut self.buffer, local);
    }

    /// Gives its memory back to the worker.
    pub fn release<E: Engine>(mut self, local: &Local<E>) {
        self.put_back_buffer(local);
        if let Some(deflating) = self.deflating {
            deflating.release(local);
        }
        if let Origin::Held(held) = self.origin {
            held.release(local);
        }
    }
}

impl<File: Clone> Content<File> {
    /// Lets a content that is awaited arrive, as far as it may be buffered, while the client takes nothing.
    pub fn read_ahead<E: Engine<Files: Files<File = File>>>(&mut self, local: &Local<E>) {
        match &mut self.origin {
            Origin::Source(source) => source.read_ahead(local),
            Origin::Sliced(sliced) => sliced.read_ahead(local),
            _ => {}
        }
    }

    /// The next piece, lent until the next call; `None` at the end. If the future is dropped early, bytes already read
    /// are kept. A file that has become shorter is [`StreamError::Truncated`].
    ///
    /// Costs a read where a file's bytes are needed, and no allocation beyond pooled buffers.
    pub async fn next<E>(
        &mut self,
        pull: &Pull<'_, E>,
    ) -> Result<Option<Payload<'_, File>>, SendError>
    where
        E: Engine<Files: Files<File = File>>,
    {
        match &mut self.deflating {
            None => self.origin.next(pull, &mut self.buffer).await,
            Some(deflating) => {
                deflating
                    .next(pull, &mut self.origin, &mut self.buffer)
                    .await
            }
        }
    }
}

impl<File> Origin<File> {
    fn is_exhausted(&self) -> bool {
        match self {
            Self::Absent => true,
            Self::Part(part) => part.is_empty(),
            Self::Parts(parts) => parts.iter().all(Part::is_empty),
            Self::Source(source) => source.is_exhausted(),
            Self::Held(held) => held.is_exhausted(),
            Self::Sliced(sliced) => sliced.remaining() == 0,
        }
    }
}

impl<File: Clone> Origin<File> {
    async fn next<'b, E>(
        &mut self,
        pull: &Pull<'_, E>,
        buffer: &'b mut Vec<u8>,
    ) -> Result<Option<Payload<'b, File>>, SendError>
    where
        E: Engine<Files: Files<File = File>>,
    {
        match self {
            Self::Sliced(sliced) => sliced.next(pull, buffer).await,
            origin => origin.next_of_one(pull, buffer).await,
        }
    }

    /// The same of what is not cut into slices.
    async fn next_of_one<'b, E>(
        &mut self,
        pull: &Pull<'_, E>,
        buffer: &'b mut Vec<u8>,
    ) -> Result<Option<Payload<'b, File>>, SendError>
    where
        E: Engine<Files: Files<File = File>>,
    {
        let part = match self {
            Self::Absent => return Ok(None),
            Self::Part(part) => part,
            Self::Parts(parts) => {
                while parts.front().is_some_and(Part::is_empty) {
                    parts.pop_front();
                }
                match parts.front_mut() {
                    Some(part) => part,
                    None => return Ok(None),
                }
            }
            Self::Source(source) => return source.next(pull, buffer).await,
            Self::Held(held) => return Ok(held.next(pull, buffer)),
            // A slice is not sliced.
            Self::Sliced(_) => return Ok(None),
        };
        if part.is_empty() {
            return Ok(None);
        }
        part.next(pull, buffer).await.map(Some)
    }
}

impl<File> Part<File> {
    pub const fn len(&self) -> u64 {
        match self {
            Self::Bytes(_, range) => (range.end - range.start) as u64,
            Self::File { len, .. } => *len,
        }
    }

    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<File: Clone> Part<File> {
    /// Takes a piece off the front.
    async fn next<'b, E>(
        &mut self,
        pull: &Pull<'_, E>,
        buffer: &'b mut Vec<u8>,
    ) -> Result<Payload<'b, File>, SendError>
    where
        E: Engine<Files: Files<File = File>>,
    {
        match self {
            Self::Bytes(bytes, range) => {
                let end = range.end.min(range.start.saturating_add(clamp(pull.most)));
                let piece = range.start..end;
                range.start = end;
                Ok(Payload::Shared(Shared::clone(bytes), piece))
            }
            Self::File { file, offset, len } => {
                if !pull.copies && *len > READ_BYTES_MAX {
                    let most = pull.most.min(*len).min(LOADED_BYTES);
                    let loaded = pull.local.engine.files().load(file, *offset, most);
                    let count = loaded.await.map_err(SendError::Unreadable)?;
                    if count > 0 {
                        let piece = Payload::File {
                            file: file.clone(),
                            offset: *offset,
                            len: count,
                        };
                        (*offset, *len) = (*offset + count, *len - count);
                        return Ok(piece);
                    }
                }
                let most = pull.most.min(*len).min(pull.read_most);
                let count = read(pull.local, file, *offset, clamp(most), buffer).await?;
                (*offset, *len) = (*offset + count as u64, *len - count as u64);
                Ok(Payload::Copy(buffer.get(..count).unwrap_or_default()))
            }
        }
    }
}

/// Reads up to `most` bytes into the beginning of `buffer`, which is one of the worker's; returns their number.
async fn read<E: Engine>(
    local: &Local<E>,
    file: &FileOf<E>,
    offset: u64,
    most: usize,
    buffer: &mut Vec<u8>,
) -> Result<usize, SendError> {
    if buffer.capacity() == 0 {
        *buffer = local.take_buffer_for(most);
    }
    if buffer.len() < most {
        buffer.resize(most, 0);
    }
    let target = buffer.get_mut(..most).unwrap_or_default();
    match local.engine.files().read_at(file, offset, target).await {
        // The file ended early: the announced length cannot be kept.
        Ok(0) => Err(SendError::Lost(StreamError::Truncated)),
        read => read.map_err(SendError::Unreadable),
    }
}

fn put_back<E: Engine>(buffer: &mut Vec<u8>, local: &Local<E>) {
    if buffer.capacity() > 0 {
        local.put_buffer(std::mem::take(buffer));
    }
}

fn clamp(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Bytes of a piece read from a file, and the approximate size of a compressed one: nginx's `output_buffers 2 32k`
/// together.
pub(crate) const PIECE_BYTES: u64 = 64 * 1024;

/// Bytes of a piece read from a file for a client that has taken all before it at once: so many leave in one call, which
/// wakes a reader on the same machine once.
pub(crate) const LONG_PIECE_BYTES: u64 = 256 * 1024;

/// Bytes up to which a file is read also where the engine could send it by itself: they leave with the head in one call,
/// and reading says by the way whether they are in memory.
const READ_BYTES_MAX: u64 = 16 * 1024;

/// Bytes of a file that are handed over to the engine at once, so that the next are loaded while it sends them: nginx's
/// `sendfile_max_chunk`.
const LOADED_BYTES: u64 = 2 * 1024 * 1024;

#[cfg(test)]
mod tests;
