//! shutdown(2) of sockets that are not connected yet: it fails, and in Linux the connection that follows is shut down in this direction
//! all the same (`inet_shutdown`).

use crate::descriptors::{self, Entry};
use crate::lock::{Lock, Locked};
use crate::memory::errno;
use crate::{kernel_options, placeholder};
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering};
use mill_sockets::errno::Errno;
use mill_sockets::sockets::closing::Half;

/// By the names that the kernel has for sockets and gives no other ones (`SO_COOKIE`), the latest last.
static SHUT: Lock<Vec<(u64, Half)>> = Lock::new(Vec::new());

/// Most programs do no such thing.
static HAS_ANY: AtomicBool = AtomicBool::new(false);

/// For fork(2).
pub(crate) fn lock() -> Locked {
    Box::new(SHUT.lock())
}

/// shutdown(2) of a socket of the kernel has failed just now.
#[cold]
pub(crate) fn note(fd: c_int, half: Half) {
    let error = errno();
    // Another thread may be about to close a connection of the stack: its number is a placeholder's then, which many have.
    if error == Errno::NOT_CONNECTED
        && descriptors::peek(fd) == Entry::Kernel
        && kernel_options::is_tcp(fd)
        && let Some(cookie) = kernel_options::cookie(fd)
        && !placeholder::is_named(cookie)
    {
        let mut all = SHUT.lock();
        if all.len() >= SHUT_MAX {
            all.remove(0);
        }
        all.push((cookie, half));
        HAS_ANY.store(true, Ordering::Release);
    }
    crate::memory::set_errno(error.0);
}

/// A socket was dissolved (connect(2) to no address), and is as a new one.
pub(crate) fn forget(fd: c_int) {
    if HAS_ANY.load(Ordering::Acquire)
        && let Some(cookie) = kernel_options::cookie(fd)
    {
        SHUT.lock().retain(|(other, _)| *other != cookie);
    }
}

/// What a program has shut down of a socket of the kernel before connect(2).
pub(crate) fn of(fd: c_int) -> Vec<Half> {
    if !HAS_ANY.load(Ordering::Acquire) {
        return Vec::new();
    }
    let Some(cookie) = kernel_options::cookie(fd) else {
        return Vec::new();
    };
    let all = SHUT.lock();
    let of_it = all.iter().filter(|(other, _)| *other == cookie);
    of_it.map(|(_, half)| *half).collect()
}

/// How many are known.
const SHUT_MAX: usize = 1024;
