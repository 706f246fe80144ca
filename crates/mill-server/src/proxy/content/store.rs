//! The content of a request, read whole: in memory, or in a temporary file if it is longer than
//! `client_body_buffer_size`.

use super::PIECE_BYTES;
use super::memory::Memory;
use crate::exchange::{ContentError, Exchange};
use crate::local::{FileOf, Local};
use crate::log::Text;
use crate::request::{Request, StoredContent};
use crate::temporary_file::{TemporaryFile, TemporaryFileError};
use mill_config::config::LogLevel;
use mill_config::config::settings::ClientBodyFile;
use mill_runtime::engine::Engine;
use mill_runtime::files::Visibility;

/// Why the content could not be read, or kept.
pub(super) enum NotStored {
    Missing(ContentError),
    File(TemporaryFileError),
}

/// The content in memory, or all of it in the file.
type Stored<E> = (Memory, Option<TemporaryFile<FileOf<E>>>);

/// Reads the content. At most `client_body_buffer_size` bytes of it are in memory while more is awaited.
pub(super) async fn store<X: Exchange>(
    exchange: &mut X,
    request: &mut Request,
    local: &Local<X::Engine>,
) -> Result<Stored<X::Engine>, NotStored> {
    let memory_max = memory_bytes_max(request);
    let in_file_only = request.location.client_body.in_file_only != ClientBodyFile::Off;
    let len = request.message.head.content_length;
    let copied_max = len.map_or(0, clamp).min(memory_max);
    let mut memory = Memory::default();
    let mut file = None;
    let mut share_left = SHARE_PER_TURN;
    loop {
        // What has arrived is taken, even if it is more than is kept while waiting.
        let before = memory.len();
        let read = exchange.content_pieces(request, PIECE_BYTES, |piece| {
            memory.push(piece, copied_max, local);
        });
        if !read.await.map_err(NotStored::Missing)? {
            break;
        }
        share_left = share_left.saturating_sub(memory.len() - before);
        if file.is_some() || memory.len() >= memory_max {
            flush(&mut memory, &mut file, request, local)?;
        }
        if share_left == 0 {
            local.scheduler.yield_now().await;
            share_left = SHARE_PER_TURN;
        }
    }
    if file.is_some() || in_file_only {
        flush(&mut memory, &mut file, request, local)?;
    } else {
        keep_in_memory(&memory, request);
    }
    Ok((memory, file))
}

/// Keeps content for `$request_body`, if the configuration mentions it.
pub(super) fn keep_in_memory(memory: &Memory, request: &mut Request) {
    if request.site.mentions.request_body {
        let bytes = memory.parts().flatten().copied().collect();
        request.stored_content = Some(Box::new(StoredContent::Memory(bytes)));
    }
}

/// Content of known length that is little longer than the buffer stays in memory, as with nginx.
fn memory_bytes_max(request: &Request) -> usize {
    let settings = &request.location.client_body;
    let buffer = settings.buffer_size.max(1);
    let in_memory = match request.message.head.content_length {
        Some(len) if len <= buffer + buffer / 4 => len + 1,
        _ => buffer,
    };
    clamp(in_memory)
}

fn clamp(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Moves what is in memory to the file, and gives the memory back.
fn flush<E: Engine>(
    memory: &mut Memory,
    file: &mut Option<TemporaryFile<FileOf<E>>>,
    request: &mut Request,
    local: &Local<E>,
) -> Result<(), NotStored> {
    let file = match file {
        Some(file) => file,
        None => file.insert(create(request, local).map_err(NotStored::File)?),
    };
    for bytes in memory.parts().filter(|bytes| !bytes.is_empty()) {
        file.append(bytes, local).map_err(NotStored::File)?;
    }
    std::mem::take(memory).release(local);
    Ok(())
}

fn create<E: Engine>(
    request: &mut Request,
    local: &Local<E>,
) -> Result<TemporaryFile<FileOf<E>>, TemporaryFileError> {
    let settings = &request.location.client_body;
    let (visibility, level) = match settings.in_file_only {
        ClientBodyFile::Off => (Visibility::Unnamed, LogLevel::Warn),
        ClientBodyFile::On | ClientBodyFile::Clean => (Visibility::Named, LogLevel::Notice),
    };
    let file = TemporaryFile::create(&settings.temp_path, visibility, local)?;
    let path = Text(&file.path);
    local.log_error(Some(request), level, format_args!("{BUFFERED} {path}"));
    request.stored_content = Some(Box::new(StoredContent::File {
        path: file.path.clone(),
        is_removed: settings.in_file_only == ClientBodyFile::Clean,
    }));
    Ok(file)
}

/// Bytes of content that are taken from one client before other connections get their turn.
const SHARE_PER_TURN: usize = 2 * 1024 * 1024;

/// nginx's line.
const BUFFERED: &str = "a client request body is buffered to a temporary file";
