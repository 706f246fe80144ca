//! A source, and what was read of it ahead of a slow client: first in memory, then in a temporary file. It is given out
//! in that order: memory, file, source.

use super::source::Source;
use super::{PIECE_BYTES, Part, Pull, clamp};
use crate::exchange::SendError;
use crate::local::Local;
use crate::log::Text;
use crate::response::FieldLine;
use crate::temporary_file::{TemporaryFile, TemporaryFileError};
use mill_config::config::LogLevel;
use mill_config::config::settings::PassSettings;
use mill_http::range::ByteRange;
use mill_runtime::engine::Engine;
use mill_runtime::files::{Files, Visibility};
use mill_runtime::payload::Payload;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

/// Content that arrives while it is sent.
#[derive(Debug)]
pub struct Awaited<File, S: ?Sized = dyn Source> {
    room: Room,
    /// Read ahead into memory; `given` bytes of it were given out.
    memory: Vec<u8>,
    given: usize,
    /// Boxed: few answers need one.
    file: Option<Box<Ahead<File>>>,
    /// The log says that a file is used.
    is_noted: bool,
    /// Why reading has ended early: what was read before is given out first.
    failed: Option<SendError>,
    source: S,
}

/// How far it is read ahead.
#[derive(Clone, Debug)]
pub struct Room {
    /// `…_buffers`, or 0 where nothing is read ahead.
    pub memory_bytes: u64,
    /// `…_max_temp_file_size`; 0 for no file.
    pub file_bytes: u64,
    /// Where the file is, and how it is written.
    pub settings: Arc<PassSettings>,
}

impl Room {
    /// `buffering` replaces the setting.
    pub fn of(settings: Arc<PassSettings>, buffering: Option<bool>) -> Self {
        let buffers = buffering.unwrap_or(settings.buffering);
        let bytes = |bytes: u64| if buffers { bytes } else { 0 };
        Self {
            memory_bytes: bytes(settings.buffers.count.saturating_mul(settings.buffers.size)),
            file_bytes: bytes(settings.max_temp_file_size),
            settings,
        }
    }
}

/// The part of the content that is in a file.
#[derive(Debug)]
struct Ahead<File> {
    file: TemporaryFile<File>,
    /// What was not given out yet: it ends where the file ends.
    rest: Part<File>,
    /// What the disk had no room for: it follows the file.
    unwritten: Vec<u8>,
}

/// Where the next bytes go, and how many at most.
enum Place {
    Memory(usize),
    File(usize),
    Nowhere,
}

impl<File, S: Source> Awaited<File, S> {
    /// `memory` was read of the source already, and `failed` is why no more can be.
    pub const fn new(source: S, room: Room, memory: Vec<u8>, failed: Option<SendError>) -> Self {
        Self {
            room,
            memory,
            given: 0,
            file: None,
            is_noted: false,
            failed,
            source,
        }
    }
}

impl<File, S: Source + ?Sized> Awaited<File, S> {
    pub(super) fn cut(&mut self, range: ByteRange) {
        self.source.cut(range);
    }

    pub(super) fn trailers(&self) -> Vec<FieldLine> {
        self.source.trailers()
    }

    pub(super) fn remaining(&self) -> Option<u64> {
        Some(self.source.remaining()? + self.held())
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.failed.is_none() && self.held() == 0 && self.source.is_exhausted()
    }

    pub(super) fn needs_client(&self) -> bool {
        !self.room.settings.ignore_client_abort
    }

    /// Bytes that were read and not given out.
    fn held(&self) -> u64 {
        let file = self.file.as_ref();
        let file = file.map_or(0, |ahead| ahead.rest.len() + ahead.unwritten.len() as u64);
        (self.memory.len() - self.given) as u64 + file
    }

    fn place(&self) -> Place {
        let in_memory = self.memory.len() as u64;
        let in_file = self.file.as_ref().map_or(0, |ahead| ahead.file.len);
        if self.file.is_none() && in_memory < self.room.memory_bytes {
            return Place::Memory(clamp(self.room.memory_bytes - in_memory));
        }
        if in_file < self.room.file_bytes {
            let most = self.room.settings.temp_file_write.unwrap_or(PIECE_BYTES);
            let most = most.clamp(1, PIECE_BYTES);
            return Place::File(clamp(most.min(self.room.file_bytes - in_file)));
        }
        Place::Nowhere
    }

    fn give_memory(&mut self, most: usize, piece: &mut Vec<u8>) {
        let rest = self.memory.get(self.given..).unwrap_or_default();
        let given = rest.get(..most).unwrap_or(rest);
        piece.extend_from_slice(given);
        self.given += given.len();
        if self.given == self.memory.len() {
            self.memory.clear();
            self.given = 0;
        }
    }
}

impl<File: Clone, S: Source + ?Sized> Awaited<File, S> {
    /// The next piece. `buffer` is one of the worker's.
    pub(super) async fn next<'b, E: Engine<Files: Files<File = File>>>(
        &mut self,
        pull: &Pull<'_, E>,
        buffer: &'b mut Vec<u8>,
    ) -> Result<Option<Payload<'b, File>>, SendError> {
        if buffer.capacity() == 0 {
            *buffer = pull.local.take_buffer();
        }
        buffer.clear();
        let most = clamp(pull.most.min(PIECE_BYTES));
        if !self.memory.is_empty() {
            self.give_memory(most, buffer);
            return Ok(Some(Payload::Copy(buffer)));
        }
        if let Some(ahead) = &mut self.file {
            let piece = ahead.rest.next(pull, buffer).await?;
            if ahead.rest.is_empty() {
                // What follows goes to memory, or to a new file: ranges of this one may still wait to be sent.
                self.memory = std::mem::take(&mut ahead.unwritten);
                self.file = None;
            }
            return Ok(Some(piece));
        }
        if let Some(error) = self.failed {
            return Err(error);
        }
        let source = &mut self.source;
        let more = poll_fn(|_| source.poll_piece(most, buffer)).await?;
        Ok(more.then_some(Payload::Copy(buffer)))
    }

    /// Takes in what has arrived, as far as there is room. Called each time the task runs while the client does not take
    /// what was sent.
    pub(super) fn read_ahead<E: Engine<Files: Files<File = File>>>(&mut self, local: &Local<E>) {
        let mut share_left = SHARE_PER_TURN;
        while self.failed.is_none() && !self.source.is_exhausted() {
            let before = self.held();
            let read = match self.place() {
                Place::Memory(most) => self.source.poll_piece(most, &mut self.memory),
                Place::File(most) => self.read_to_file(most, local),
                Place::Nowhere => return self.source.pause(),
            };
            match read {
                Poll::Ready(Ok(true)) => {}
                Poll::Ready(Err(error)) => self.failed = Some(error),
                Poll::Ready(Ok(false)) | Poll::Pending => return,
            }
            share_left = share_left.saturating_sub(self.held() - before);
            if share_left == 0 {
                // A server that is faster than we are leaves other requests their turns.
                local.scheduler.wake(local.scheduler.current());
                return;
            }
        }
    }

    fn read_to_file<E: Engine<Files: Files<File = File>>>(
        &mut self,
        most: usize,
        local: &Local<E>,
    ) -> Poll<Result<bool, SendError>> {
        let mut piece = local.take_buffer();
        let read = self.source.poll_piece(most, &mut piece);
        if read == Poll::Ready(Ok(true))
            && let Err(error) = self.append(&piece, local)
        {
            self.source.note(format_args!("{error}"), LogLevel::Crit);
            // From now on the server waits for the client.
            self.room.file_bytes = 0;
            let behind = match &mut self.file {
                Some(ahead) => &mut ahead.unwritten,
                None => &mut self.memory,
            };
            behind.extend_from_slice(&piece);
        }
        local.put_buffer(piece);
        read
    }

    /// Appends to the file, and makes it if there is none: it counts once something is in it.
    fn append<E: Engine<Files: Files<File = File>>>(
        &mut self,
        bytes: &[u8],
        local: &Local<E>,
    ) -> Result<(), TemporaryFileError> {
        if let Some(ahead) = &mut self.file {
            return ahead.append(bytes, local);
        }
        let mut created = Box::new(self.create(local)?);
        created.append(bytes, local)?;
        self.file = Some(created);
        Ok(())
    }

    fn create<E: Engine<Files: Files<File = File>>>(
        &mut self,
        local: &Local<E>,
    ) -> Result<Ahead<File>, TemporaryFileError> {
        let directory = &self.room.settings.temp_path;
        let file = TemporaryFile::create(directory, Visibility::Unnamed, local)?;
        if !std::mem::replace(&mut self.is_noted, true) {
            let line = format_args!("{BUFFERED} {}", Text(&file.path));
            self.source.note(line, LogLevel::Warn);
        }
        let rest = Part::File {
            file: file.file.clone(),
            offset: 0,
            len: 0,
        };
        Ok(Ahead {
            file,
            rest,
            unwritten: Vec::new(),
        })
    }
}

impl<File> Ahead<File> {
    fn append<E: Engine<Files: Files<File = File>>>(
        &mut self,
        bytes: &[u8],
        local: &Local<E>,
    ) -> Result<(), TemporaryFileError> {
        self.file.append(bytes, local)?;
        if let Part::File { len, .. } = &mut self.rest {
            *len += bytes.len() as u64;
        }
        Ok(())
    }
}

/// nginx's line.
const BUFFERED: &str = "an upstream response is buffered to a temporary file";

/// Bytes that are read ahead for one request before other connections get their turn.
const SHARE_PER_TURN: u64 = 2 * 1024 * 1024;
