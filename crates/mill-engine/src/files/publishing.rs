//! A written file gets its permissions, its date and its path. Waits for the disk.

use super::error::failed;
use mill_runtime::files::{FileError, Publication};
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The directories of `to` are made; in another file system the file is copied.
pub(super) fn publish(
    file: BorrowedFd<'_>,
    from: &[u8],
    to: &[u8],
    publication: &Publication,
) -> Result<(), FileError> {
    let (from, to) = (path(from), path(to));
    let written = File::from(file.try_clone_to_owned().map_err(failed("dup()"))?);
    dress(&written, publication)?;
    let renamed = match std::fs::rename(from, to) {
        Err(error) if error.raw_os_error() == Some(ENOENT) => {
            make_directories(to, publication).map_err(failed("mkdir()"))?;
            std::fs::rename(from, to)
        }
        renamed => renamed,
    };
    match renamed {
        Err(error) if error.raw_os_error() == Some(EXDEV) => {
            copy(from, to, publication)?;
            std::fs::remove_file(from).map_err(failed("unlink()"))
        }
        renamed => renamed.map_err(failed("rename()")),
    }
}

/// Copies the file beside `to`, so that it has that path only once it is whole, as nginx does.
fn copy(from: &Path, to: &Path, publication: &Publication) -> Result<(), FileError> {
    let beside = beside(from, to);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut copied = options.open(&beside).map_err(failed("open()"))?;
    let mut source = File::open(from).map_err(failed("open()"))?;
    let done = io::copy(&mut source, &mut copied)
        .map_err(failed("write()"))
        .and_then(|_| dress(&copied, publication))
        .and_then(|()| std::fs::rename(&beside, to).map_err(failed("rename()")));
    if done.is_err() {
        // The first error is the one to tell.
        let _ = std::fs::remove_file(&beside);
    }
    done
}

/// `to` with the name of the temporary file, which no other one has at this time, behind it.
fn beside(from: &Path, to: &Path) -> PathBuf {
    let mut name = OsString::from(to);
    name.push(".");
    name.push(from.file_name().unwrap_or_default());
    name.into()
}

fn dress(file: &File, publication: &Publication) -> Result<(), FileError> {
    let permissions = Permissions::from_mode(publication.mode);
    file.set_permissions(permissions)
        .map_err(failed("chmod()"))?;
    if let Some(modified) = publication.modified {
        let since = Duration::from_secs(u64::try_from(modified.seconds).unwrap_or(0));
        let set = file.set_modified(SystemTime::UNIX_EPOCH + since);
        set.map_err(failed("utimes()"))?;
    }
    Ok(())
}

/// What may be read may be searched.
fn make_directories(to: &Path, publication: &Publication) -> io::Result<()> {
    let search = (publication.mode & 0o444) >> 2;
    let mut directories = DirBuilder::new();
    directories.recursive(true).mode(publication.mode | search);
    directories.create(to.parent().unwrap_or(to))
}

fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Linux's error numbers (asm-generic/errno-base.h).
const ENOENT: i32 = 2;
const EXDEV: i32 = 18;
