//! A file that is written, named and removed as a whole. Waits for the disk.

use super::calls::{self, create_directories};
use super::error::failed;
use mill_runtime::files::{FileError, FilePiece, StoredPath, Visibility};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Writes the pieces under the temporary path, and renames the file.
pub(super) fn store(stored: &StoredPath<'_>, pieces: &[FilePiece]) -> Result<(), FileError> {
    let done = write(stored, pieces).and_then(|()| name(stored));
    if done.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(path(stored.temporary));
    }
    done
}

fn write(stored: &StoredPath<'_>, pieces: &[FilePiece]) -> Result<(), FileError> {
    let (file, _) = calls::create(stored.temporary, stored.levels, Visibility::Named)?;
    let mut offset = 0;
    for (bytes, range) in pieces {
        let piece = bytes.get(range.clone()).unwrap_or_default();
        calls::write(file.as_fd(), offset, piece)?;
        offset += piece.len() as u64;
    }
    Ok(())
}

fn name(stored: &StoredPath<'_>) -> Result<(), FileError> {
    let (from, to) = (path(stored.temporary), path(stored.path));
    let renamed = match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create_directories(to, stored.levels).map_err(failed("mkdir()"))?;
            fs::rename(from, to)
        }
        renamed => renamed,
    };
    renamed.map_err(failed("rename()"))
}

/// Removes a file.
pub(super) fn discard(file: &[u8]) -> Result<(), FileError> {
    fs::remove_file(path(file)).map_err(failed("unlink()"))
}

fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
