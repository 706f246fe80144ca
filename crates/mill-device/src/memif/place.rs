//! The socket at which the ends of an interface connect.

use mill_sys::descriptor::wait_readable;
use mill_sys::seqpacket;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::Duration;

/// As [`listener`], but retries for two seconds while another process holds the socket: a process that was killed keeps
/// its sockets until its last thread has ended. A file that is no socket is not retried.
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
                // No descriptors: waits for the time alone.
                wait_readable(&[], Some(BUSY_PAUSE))?;
            }
            result => return result,
        }
    }
}

/// Listens at `path`, for `MemifLink::serve`. The file stays when the listener is closed, as another process may have
/// replaced it by then.
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

/// Whether the file is the socket of a process that has ended: no process listens there.
fn is_left_over(path: &Path, name: &[u8]) -> bool {
    let refused = io::ErrorKind::ConnectionRefused;
    is_socket(path) == Some(true)
        && seqpacket::connect(name).is_err_and(|error| error.kind() == refused)
}

/// `None` if there is no such file, as for a name that begins with `@`.
fn is_socket(path: &Path) -> Option<bool> {
    let file = std::fs::metadata(path).ok()?;
    Some(file.file_type().is_socket())
}

/// A socket's name as the kernel expects it: `@` stands for the zero byte of an abstract name.
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

/// How often, and at which interval, a socket in use is retried: nginx's numbers for ports.
const BUSY_TRIES_MAX: u32 = 4;
const BUSY_PAUSE: Duration = Duration::from_millis(500);
