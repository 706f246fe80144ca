//! Files through the kernel: each call returns at once.

use mill_bypass::FileBytes;
use mill_runtime::files::{
    DirectoryEntry, FileError, FileErrorKind, FileKind, Files, Metadata, Symlinks,
};
use mill_runtime::time::UnixTime;
use mill_sys::file::{self, Status};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::rc::Rc;

/// The file system of the process. Calls block on a cold disk, as nginx's do without `aio`.
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelFiles;

/// An open file or directory.
#[derive(Clone, Debug)]
pub struct KernelFile(Rc<OwnedFd>);

impl KernelFile {
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl FileBytes for KernelFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize, FileError> {
        file::read_at(self.as_fd(), offset, into).map_err(failed("pread()"))
    }
}

impl Files for KernelFiles {
    type File = KernelFile;

    async fn open(
        &self,
        path: &[u8],
        symlinks: Symlinks,
    ) -> Result<(KernelFile, Metadata), FileError> {
        let opened = match symlinks {
            Symlinks::Follow => file::open(path).map_err(failed("open()"))?,
            checked => open_checked(path, checked).map_err(failed("openat()"))?,
        };
        let status = file::status_of(opened.as_fd()).map_err(failed("fstat()"))?;
        Ok((KernelFile(Rc::new(opened)), metadata(&status)))
    }

    async fn metadata(&self, path: &[u8], symlinks: Symlinks) -> Result<Metadata, FileError> {
        let status = match symlinks {
            Symlinks::Follow => file::status(path).map_err(failed("stat()"))?,
            checked => {
                let opened = open_checked(path, checked).map_err(failed("openat()"))?;
                file::status_of(opened.as_fd()).map_err(failed("fstat()"))?
            }
        };
        Ok(metadata(&status))
    }

    async fn read_at(
        &self,
        file: &KernelFile,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize, FileError> {
        file::read_at(file.as_fd(), offset, buffer).map_err(failed("pread()"))
    }

    async fn list(&self, path: &[u8]) -> Result<Vec<DirectoryEntry>, FileError> {
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

    fn real_path(&self, path: &[u8]) -> Result<Vec<u8>, FileError> {
        let path = Path::new(OsStr::from_bytes(path));
        let real = std::fs::canonicalize(path).map_err(failed("realpath()"))?;
        Ok(real.into_os_string().into_vec())
    }
}

/// Opens component by component, examining each link on the way (`disable_symlinks`).
fn open_checked(path: &[u8], symlinks: Symlinks) -> io::Result<OwnedFd> {
    let (from, same_owner) = match symlinks {
        Symlinks::Follow => return file::open(path),
        Symlinks::Refuse { from } => (from, false),
        Symlinks::RefuseUnlessSameOwner { from } => (from, true),
    };
    let (trusted, rest) = path.split_at_checked(from).unwrap_or((&[], path));
    let trusted = if trusted.is_empty() { b"/" } else { trusted };
    let mut directory = file::open_path(None, trusted, true)?;
    let (parents, name) = match rest.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => rest.split_at(slash + 1),
        None => rest.split_at(0),
    };
    let parents = parents.split(|byte| *byte == b'/');
    for parent in parents.filter(|name| !name.is_empty()) {
        directory = open_parent(directory.as_fd(), parent, same_owner)?;
    }
    if name.is_empty() {
        // With a slash at its end the path names what is in the directory under this name: itself. For a file the
        // kernel says ENOTDIR.
        return file::open_within(directory.as_fd(), b".");
    }
    match file::open_beneath(directory.as_fd(), name) {
        Err(error) if same_owner && error.raw_os_error() == Some(ELOOP) => {
            let link = link_status_in(directory.as_fd(), name)?;
            owned_as(&link, file::open_within(directory.as_fd(), name)?)
        }
        opened => opened,
    }
}

/// Opens a directory on the way.
fn open_parent(directory: BorrowedFd<'_>, name: &[u8], same_owner: bool) -> io::Result<OwnedFd> {
    let opened = file::open_path(Some(directory), name, false)?;
    let status = file::status_of(opened.as_fd())?;
    if !status.is_symlink() {
        return Ok(opened);
    }
    if same_owner {
        return owned_as(&status, file::open_path(Some(directory), name, true)?);
    }
    // What the kernel says of a link where a directory was asked for, and nginx passes on.
    Err(io::Error::from_raw_os_error(ENOTDIR))
}

/// Passes on what a link led to, if it has the link's owner. What is examined is what was opened: nobody can put
/// another file in its place between the two.
fn owned_as(link: &Status, target: OwnedFd) -> io::Result<OwnedFd> {
    if file::status_of(target.as_fd())?.owner == link.owner {
        Ok(target)
    } else {
        Err(io::Error::from_raw_os_error(ELOOP))
    }
}

/// Examines a link in a directory.
fn link_status_in(directory: BorrowedFd<'_>, name: &[u8]) -> io::Result<Status> {
    file::status_of(file::open_path(Some(directory), name, false)?.as_fd())
}

/// Examines a link, not what it leads to.
fn link_status(path: &[u8]) -> io::Result<Status> {
    file::status_of(file::open_path(None, path, false)?.as_fd())
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

fn failed(call: &'static str) -> impl Fn(io::Error) -> FileError {
    move |error| {
        let code = error.raw_os_error().unwrap_or(0);
        FileError {
            kind: kind_of(code),
            call,
            code,
        }
    }
}

fn kind_of(code: i32) -> FileErrorKind {
    match code {
        ENOENT => FileErrorKind::NotFound,
        ENOTDIR => FileErrorKind::NotDirectory,
        ENAMETOOLONG => FileErrorKind::NameTooLong,
        EACCES | EPERM => FileErrorKind::PermissionDenied,
        ELOOP => FileErrorKind::Symlink,
        EMFILE | ENFILE => FileErrorKind::Exhausted,
        _ => FileErrorKind::Other,
    }
}

/// Linux's error numbers (asm-generic/errno.h), the same on every architecture for these.
const EPERM: i32 = 1;
const ENOENT: i32 = 2;
const EACCES: i32 = 13;
const ENOTDIR: i32 = 20;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
const ENAMETOOLONG: i32 = 36;
const ELOOP: i32 = 40;
