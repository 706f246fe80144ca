//! The calls that [`super::KernelFiles`] makes, by the worker where they need not wait, or by a helper thread.

use super::error::{self, failed};
use super::walk;
use mill_runtime::files::{DirectoryEntry, FileError, FileKind, Metadata, Symlinks, Visibility};
use mill_runtime::time::UnixTime;
use mill_sys::file::{self, IfCold, Status};
use std::ffi::OsStr;
use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Opens what is at `path` and says what it is.
pub(super) fn open(
    path: &[u8],
    symlinks: Symlinks,
    cold: IfCold,
) -> Result<(OwnedFd, Metadata), FileError> {
    let opened = walk::open(path, symlinks, cold).map_err(failed(open_call(symlinks)))?;
    let status = file::status_of(opened.as_fd()).map_err(failed("fstat()"))?;
    Ok((opened, metadata(&status)))
}

/// The status of what is at `path`. A call that must not wait opens it for examination: stat(2) always waits.
pub(super) fn examine(
    path: &[u8],
    symlinks: Symlinks,
    cold: IfCold,
) -> Result<Metadata, FileError> {
    let status = match (symlinks, cold) {
        (Symlinks::Follow, IfCold::Wait) => file::status(path).map_err(failed("stat()"))?,
        (Symlinks::Follow, IfCold::Fail) => match file::open_path(None, path, true, cold) {
            Ok(found) => file::status_of(found.as_fd()).map_err(failed("stat()"))?,
            // No descriptor is left, and stat(2) takes none.
            Err(error) if error::is_exhausted(&error) => {
                file::status(path).map_err(failed("stat()"))?
            }
            Err(error) => return Err(failed("stat()")(error)),
        },
        (checked, cold) => return Ok(open(path, checked, cold)?.1),
    };
    Ok(metadata(&status))
}

const fn open_call(symlinks: Symlinks) -> &'static str {
    match symlinks {
        Symlinks::Follow => "open()",
        _ => "openat()",
    }
}

/// Up to `len` bytes from `offset` on.
pub(super) fn read(file: BorrowedFd<'_>, offset: u64, len: usize) -> Result<Vec<u8>, FileError> {
    let mut bytes = vec![0; len];
    let count = file::read_at(file, offset, &mut bytes).map_err(failed("pread()"))?;
    bytes.truncate(count);
    Ok(bytes)
}

/// Reads from `offset` on, for the page cache alone; returns how many bytes were there, at most [`LOADED_MAX`].
pub(super) fn load(file: BorrowedFd<'_>, offset: u64, len: u64) -> Result<u64, FileError> {
    let mut piece = [0; LOAD_BYTES];
    let len = len.min(LOADED_MAX);
    let mut done = 0;
    while done < len {
        match file::read_at(file, offset + done, &mut piece).map_err(failed("pread()"))? {
            // The file has become shorter, which sending it will find out.
            0 => return Ok(len),
            count => done += count as u64,
        }
    }
    Ok(len)
}

/// Makes a file, and up to `levels` directories for it.
pub(super) fn create(
    path: &[u8],
    levels: usize,
    visibility: Visibility,
) -> Result<(OwnedFd, Metadata), FileError> {
    let path = Path::new(OsStr::from_bytes(path));
    let created = match create_in_directory(path, visibility) {
        Err(error) if error.raw_os_error() == Some(ENOENT) && levels > 0 => {
            create_directories(path, levels).map_err(failed("mkdir()"))?;
            create_in_directory(path, visibility)
        }
        created => created,
    };
    let created = created.map_err(failed("open()"))?;
    let status = file::status_of(created.as_fd()).map_err(failed("fstat()"))?;
    Ok((created, metadata(&status)))
}

fn create_in_directory(path: &Path, visibility: Visibility) -> io::Result<OwnedFd> {
    if visibility == Visibility::Named {
        return create_named(path);
    }
    let directory = path.parent().unwrap_or(path);
    match file::create_unnamed(directory.as_os_str().as_bytes()) {
        Err(error) if is_unnamed_unsupported(&error) => {
            let created = create_named(path)?;
            std::fs::remove_file(path)?;
            Ok(created)
        }
        created => created,
    }
}

/// The file system, or the kernel, knows no files without names.
fn is_unnamed_unsupported(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(EOPNOTSUPP | EISDIR | EINVAL))
}

fn create_named(path: &Path) -> io::Result<OwnedFd> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    Ok(options.open(path)?.into())
}

/// Makes the directories above `path` that are missing, the `levels` lowest at most.
pub(super) fn create_directories(path: &Path, levels: usize) -> io::Result<()> {
    let above: Vec<&Path> = path.ancestors().skip(1).take(levels).collect();
    for directory in above.into_iter().rev() {
        match DirBuilder::new().mode(0o700).create(directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Writes all of `bytes`.
pub(super) fn write(file: BorrowedFd<'_>, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
    let mut done = 0;
    while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
        match file::write_at(file, offset + done as u64, rest) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            written => done += written.map_err(failed("pwrite()"))?,
        }
    }
    Ok(())
}

/// The entries of a directory. Waits for the disk.
pub(super) fn list(path: &[u8]) -> Result<Vec<DirectoryEntry>, FileError> {
    let entries = std::fs::read_dir(OsStr::from_bytes(path)).map_err(failed("opendir()"))?;
    let mut listed = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed("readdir()"))?;
        let path = entry.path();
        let path = path.as_os_str().as_bytes();
        let status = file::status(path).or_else(|error| match error.raw_os_error() {
            // A link that leads nowhere is an entry, too: the link itself.
            Some(ENOENT | ELOOP) => link_status(path),
            _ => Err(error),
        });
        let metadata = status.ok().as_ref().map(metadata);
        listed.push(DirectoryEntry {
            name: entry.file_name().into_vec(),
            metadata,
        });
    }
    Ok(listed)
}

/// Examines a link, not what it leads to.
fn link_status(path: &[u8]) -> io::Result<Status> {
    file::status_of(file::open_path(None, path, false, IfCold::Wait)?.as_fd())
}

fn metadata(status: &Status) -> Metadata {
    let kind = if status.is_regular() {
        FileKind::Regular
    } else if status.is_directory() {
        FileKind::Directory
    } else {
        FileKind::Other
    };
    Metadata {
        kind,
        len: status.len,
        modified: UnixTime {
            seconds: status.modified_s,
            nanos: status.modified_ns,
        },
        inode: status.inode,
        device: status.device,
        executable: status.is_executable(),
    }
}

/// Whether the kernel knows `RESOLVE_CACHED`, and nothing forbids it; `None` if that cannot be found out now.
pub(super) fn can_look_up_cached() -> Option<bool> {
    has_looked_up(file::open_path(None, b"/", true, IfCold::Fail).map(drop))
}

/// What such an opening says of all others. Without a free descriptor it says nothing.
fn has_looked_up(opened: io::Result<()>) -> Option<bool> {
    match opened.map_err(failed("open()")) {
        Err(error) if error::is_unsupported(error.code) => Some(false),
        Err(error) if !error::is_cold(&error) => None,
        _ => Some(true),
    }
}

/// Bytes that a helper thread reads ahead of `sendfile` in one call, and together: so many are on their way to the client
/// while the next are read.
const LOAD_BYTES: usize = 64 * 1024;
const LOADED_MAX: u64 = 512 * 1024;

/// Linux's error numbers (asm-generic/errno.h).
const ENOENT: i32 = 2;
const EISDIR: i32 = 21;
const EINVAL: i32 = 22;
const ELOOP: i32 = 40;
const EOPNOTSUPP: i32 = 95;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_of_descriptors_does_not_say_whether_the_kernel_looks_up_cached() {
        let [eperm, eagain, enfile, emfile] = [1, 11, 23, 24];
        let check = |code: i32, expected: Option<bool>| {
            let failed = Err(io::Error::from_raw_os_error(code));
            assert_eq!(has_looked_up(failed), expected, "{code}");
        };
        assert_eq!(has_looked_up(Ok(())), Some(true));
        check(eagain, Some(true));
        check(eperm, Some(false));
        check(emfile, None);
        check(enfile, None);
    }
}
