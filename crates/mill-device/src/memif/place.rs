//! Where the ends of an interface find each other.

use mill_sys::descriptor::wait_readable;
use mill_sys::seqpacket;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::Duration;

/// The same as [`listener`]; but a process that was killed has its sockets until its last thread has ended, so one that
/// another process has is asked for again, for two seconds. A file that is no socket never becomes one.
pub fn listener_when_free(path: &Path) -> io::Result<OwnedFd> {
    let mut tries_left = BUSY_TRIES_MAX;
    loop {
        match listener(path) {
            Err(error)
                if error.kind() == io::ErrorKind::AddrInUse
                    && tries_left > 0
                    && is_socket(path).unwrap_or(true) =>
            {
                tries_left -= 1;
                // Waits for nothing but the time.
                wait_readable(&[], Some(BUSY_PAUSE))?;
            }
            result => return result,
        }
    }
}

/// Listens at `path`, for `MemifLink::serve`. The file stays when the listener is closed, as whoever has it next may
/// have made another there.
pub fn listener(path: &Path) -> io::Result<OwnedFd> {
    let name = name(path);
    match seqpacket::listen(&name, BACKLOG) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_left_over(path, &name) => {
            std::fs::remove_file(path)?;
            seqpacket::listen(&name, BACKLOG)
        }
        listening => listening,
    }
}

/// Whether the file is a socket of a process that has ended: nobody listens there.
fn is_left_over(path: &Path, name: &[u8]) -> bool {
    let refused = io::ErrorKind::ConnectionRefused;
    is_socket(path) == Some(true)
        && seqpacket::connect(name).is_err_and(|error| error.kind() == refused)
}

/// Nothing if there is no such file, as of a name that begins with `@`.
fn is_socket(path: &Path) -> Option<bool> {
    let file = std::fs::metadata(path).ok()?;
    Some(file.file_type().is_socket())
}

/// A socket's name as the kernel wants it: what begins with `@` has no file.
pub(super) fn name(path: &Path) -> Vec<u8> {
    let mut name = path.as_os_str().as_encoded_bytes().to_vec();
    if let Some(first) = name.first_mut()
        && *first == b'@'
    {
        *first = 0;
    }
    name
}

/// Peers that may wait to be accepted; one of them will be served.
const BACKLOG: u16 = 8;

/// How often a socket that somebody has is asked for again, and how long after the last time: nginx's numbers for ports.
const BUSY_TRIES_MAX: u32 = 4;
const BUSY_PAUSE: Duration = Duration::from_millis(500);
