//! Reading a file of a zone, with all its checksums.

use crate::local::{FileOf, Local};
use mill_cache::disk::{BLOCK_BYTES, Damage, HEADER_BYTES, Header, Record, check_blocks};
use mill_runtime::engine::Engine;
use mill_runtime::files::{FileError, FileErrorKind, Files, Symlinks};
use std::fmt;
use std::sync::Arc;

/// A file whose tail is read, and matches its checksums.
pub(super) struct OpenObject<E: Engine> {
    file: FileOf<E>,
    header: Header,
    tail: Vec<u8>,
}

/// Why a file cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    Call(FileError),
    Damaged(Damage),
}

impl Unreadable {
    /// Whether the file is gone, as it may be at any time: `rm` is a way to purge.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::Call(error) if error.kind == FileErrorKind::NotFound)
    }
}

impl From<FileError> for Unreadable {
    fn from(error: FileError) -> Self {
        Self::Call(error)
    }
}

impl From<Damage> for Unreadable {
    fn from(damage: Damage) -> Self {
        Self::Damaged(damage)
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(error) => write!(out, "{} failed ({})", error.call, error.code),
            Self::Damaged(damage) => damage.fmt(out),
        }
    }
}

impl<E: Engine> OpenObject<E> {
    /// Opens the file at this path and reads all but its content.
    pub(super) async fn open(path: &[u8], local: &Local<E>) -> Result<Self, Unreadable> {
        let files = local.engine.files();
        let (file, metadata) = files.open(path, Symlinks::Follow).await?;
        let mut start = [0; HEADER_BYTES];
        read_all(&file, 0, &mut start, local).await?;
        let header = Header::parse(&start, metadata.len)?;
        // Not longer than the file, which the header was compared with.
        let mut tail = vec![0; usize::try_from(header.tail_len).map_err(|_| Damage::Form)?];
        read_all(&file, header.tail_offset(), &mut tail, local).await?;
        Record::parse(&header, &tail)?;
        Ok(Self { file, header, tail })
    }

    /// What is beside the content.
    pub(super) fn record(&self) -> Result<Record<'_>, Damage> {
        Record::parse(&self.header, &self.tail)
    }

    /// Bytes of content.
    pub(super) const fn content_len(&self) -> u64 {
        self.header.content_len
    }

    /// All of the content, each block of which matches its checksum.
    pub(super) async fn content(&self, local: &Local<E>) -> Result<Arc<[u8]>, Unreadable> {
        let len = usize::try_from(self.header.content_len).map_err(|_| Damage::Form)?;
        let mut content: Arc<[u8]> = std::iter::repeat_n(0, len).collect();
        let bytes = Arc::get_mut(&mut content).ok_or(Damage::Form)?;
        let mut block = 0;
        for piece in bytes.chunks_mut(PIECE_BYTES) {
            let offset = HEADER_BYTES as u64 + (block * BLOCK_BYTES) as u64;
            read_all(&self.file, offset, piece, local).await?;
            check_blocks(self.record()?.sums(), block, piece)?;
            block += PIECE_BYTES / BLOCK_BYTES;
        }
        Ok(content)
    }
}

/// Fills the buffer; a file that ends before is damaged.
async fn read_all<E: Engine>(
    file: &FileOf<E>,
    offset: u64,
    buffer: &mut [u8],
    local: &Local<E>,
) -> Result<(), Unreadable> {
    let mut done = 0;
    while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
        let files = local.engine.files();
        match files.read_at(file, offset + done as u64, rest).await? {
            0 => return Err(Damage::Length.into()),
            count => done += count,
        }
    }
    Ok(())
}

/// Bytes that are read in one call: whole blocks.
const PIECE_BYTES: usize = 4 * BLOCK_BYTES;
