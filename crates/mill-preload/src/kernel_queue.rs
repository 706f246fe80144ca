//! The kernel's queue of a listener whose calls wait, from which several processes and threads accept: each looks whether a connection is
//! there and takes it, as one step. Otherwise the second of two would wait in the kernel, and not hear of the stack's connections.
//!
//! Processes keep each other out by a record lock on the listener's socket (fcntl(2)), which needs nothing that they share beside that,
//! and which the kernel releases with its holder.

use crate::lock::{Lock, Locked};
use crate::memory::{errno, returned};
use crate::originals;
use core::ffi::c_int;
use mill_sockets::errno::Errno;

/// A process's lock does not keep its own threads out.
static OF_THREADS: Lock<()> = Lock::new(());

/// For fork(2).
pub(crate) fn lock() -> Locked {
    Box::new(OF_THREADS.lock())
}

/// Takes a connection by `accept`, which does not wait then; `None` if there is none, or if another process is about to take one.
pub(crate) fn take(
    listener: c_int,
    accept: impl FnOnce() -> c_int,
) -> Option<Result<c_int, Errno>> {
    let _of_threads = OF_THREADS.lock();
    // Any other error is a kernel without locks of sockets, where it is as in programs that poll before they accept.
    if let Err(Errno::AGAIN | Errno(libc::EACCES)) = set_lock(listener, libc::F_WRLCK) {
        // The other one needs microseconds, if it is not stopped.
        let _ = poll(None, PAUSE_MS);
        return None;
    }
    let accepted = poll(Some(listener), 0).then(|| returned(accept()));
    let _ = set_lock(listener, libc::F_UNLCK);
    accepted
}

/// Whether the listener has a connection, within so many milliseconds.
fn poll(listener: Option<c_int>, timeout_ms: c_int) -> bool {
    let mut polled = libc::pollfd {
        fd: listener.unwrap_or(-1),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: the pointer is to a local, of which there is one.
    unsafe { originals::poll(&raw mut polled, 1, timeout_ms) == 1 }
}

fn set_lock(listener: c_int, kind: c_int) -> Result<(), Errno> {
    // SAFETY: it is plain numbers, for which zero is valid: the whole file.
    let mut lock: libc::flock = unsafe { core::mem::zeroed() };
    lock.l_type = libc::c_short::try_from(kind).unwrap_or(0);
    // SAFETY: the command takes a pointer, to a local here.
    match unsafe { originals::fcntl(listener, libc::F_SETLK, (&raw mut lock).addr()) } {
        -1 => Err(errno()),
        _ => Ok(()),
    }
}

const PAUSE_MS: c_int = 1;
