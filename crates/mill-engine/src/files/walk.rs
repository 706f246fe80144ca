//! From a path to an open file, through or around symbolic links.

use mill_runtime::files::Symlinks;
use mill_sys::file::{self, IfCold, Status};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Opens what is at `path`; component by component, examining each link on the way, as `disable_symlinks` says.
pub(super) fn open(path: &[u8], symlinks: Symlinks, cold: IfCold) -> io::Result<OwnedFd> {
    let (from, same_owner) = match symlinks {
        Symlinks::Follow => return file::open(path, cold),
        Symlinks::Refuse { from } => (from, false),
        Symlinks::RefuseUnlessSameOwner { from } => (from, true),
    };
    let (trusted, rest) = path.split_at_checked(from).unwrap_or((&[], path));
    let trusted = if trusted.is_empty() { b"/" } else { trusted };
    let mut directory = file::open_path(None, trusted, true, cold)?;
    let (parents, name) = match rest.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => rest.split_at(slash + 1),
        None => rest.split_at(0),
    };
    let parents = parents.split(|byte| *byte == b'/');
    for parent in parents.filter(|name| !name.is_empty()) {
        directory = open_parent(directory.as_fd(), parent, same_owner, cold)?;
    }
    if name.is_empty() {
        // With a slash at its end the path names what is in the directory under this name: itself. For a file the
        // kernel says ENOTDIR.
        return file::open_within(directory.as_fd(), b".", cold);
    }
    match file::open_beneath(directory.as_fd(), name, cold) {
        Err(error) if same_owner && error.raw_os_error() == Some(ELOOP) => {
            let link = link_status_in(directory.as_fd(), name, cold)?;
            owned_as(&link, file::open_within(directory.as_fd(), name, cold)?)
        }
        opened => opened,
    }
}

/// Opens a directory on the way.
fn open_parent(
    directory: BorrowedFd<'_>,
    name: &[u8],
    same_owner: bool,
    cold: IfCold,
) -> io::Result<OwnedFd> {
    let opened = file::open_path(Some(directory), name, false, cold)?;
    let status = file::status_of(opened.as_fd())?;
    if !status.is_symlink() {
        return Ok(opened);
    }
    if same_owner {
        return owned_as(&status, file::open_path(Some(directory), name, true, cold)?);
    }
    // What the kernel says of a link where a directory was asked for, and nginx passes on.
    Err(io::Error::from_raw_os_error(ENOTDIR))
}

/// Passes on what a link led to, if it has the link's owner. What is examined is what was opened: another
/// file cannot take its place between the two.
fn owned_as(link: &Status, target: OwnedFd) -> io::Result<OwnedFd> {
    if file::status_of(target.as_fd())?.owner == link.owner {
        Ok(target)
    } else {
        Err(io::Error::from_raw_os_error(ELOOP))
    }
}

/// Examines a link in a directory.
fn link_status_in(directory: BorrowedFd<'_>, name: &[u8], cold: IfCold) -> io::Result<Status> {
    file::status_of(file::open_path(Some(directory), name, false, cold)?.as_fd())
}

/// Linux's error numbers (asm-generic/errno.h).
const ENOTDIR: i32 = 20;
const ELOOP: i32 = 40;
