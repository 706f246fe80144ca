//! Namespaces of threads.

use crate::process::check;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Moves the calling thread into a network namespace, given by an open file of /run/netns or of /proc/PID/ns. Sockets
/// that it opens and its view of /proc/sys/net belong to that namespace. Threads that it starts inherit it; other
/// threads of the process do not change.
pub fn enter_network(namespace: &impl AsFd) -> io::Result<()> {
    let descriptor = namespace.as_fd().as_raw_fd();
    // SAFETY: setns(2) takes no pointer; the descriptor is open through the call.
    check(unsafe { libc::setns(descriptor, libc::CLONE_NEWNET) })
}

/// Moves the calling thread into a new network namespace that has nothing but a loopback interface, which is down. It
/// is removed with the thread and all that was started in it.
pub fn leave_network() -> io::Result<()> {
    // SAFETY: unshare(2) takes no pointer.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) })
}

/// Gives the calling thread a mount namespace of its own, with a copy of the current mounts. Threads and processes that
/// it starts inherit it; if mounts were made private first, what is mounted there is removed with the last of them.
pub fn leave_mounts() -> io::Result<()> {
    // SAFETY: unshare(2) takes no pointer.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_namespace_is_refused() {
        let file = std::fs::File::open("/proc/self/stat").unwrap();
        assert!(enter_network(&file).is_err());
    }
}
