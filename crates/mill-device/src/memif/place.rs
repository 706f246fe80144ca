//! Where the ends of an interface find each other.

use mill_sys::seqpacket;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Listens at `path`, for `MemifLink::serve`. The file stays when the listener is closed, as whoever has it next may
/// have made another there.
pub fn listener(path: &Path) -> io::Result<OwnedFd> {
    let name = name(path);
    match seqpacket::listen(&name, BACKLOG) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let is_socket = std::fs::metadata(path).is_ok_and(|file| file.file_type().is_socket());
            let refused = io::ErrorKind::ConnectionRefused;
            if !is_socket || !seqpacket::connect(&name).is_err_and(|error| error.kind() == refused)
            {
                return Err(error);
            }
            // Nobody listens there: it is left of a process that was killed.
            std::fs::remove_file(path)?;
            seqpacket::listen(&name, BACKLOG)
        }
        listening => listening,
    }
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
