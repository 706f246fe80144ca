//! Namespaces of threads.

use crate::process::check;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Moves the calling thread into a network namespace, an open file of /run/netns or of /proc/PID/ns. Sockets it opens and
/// /proc/sys/net as it sees it are that namespace's; threads it starts inherit it, its process's others do not.
pub fn enter_network(namespace: &impl AsFd) -> io::Result<()> {
    let descriptor = namespace.as_fd().as_raw_fd();
    // SAFETY: setns(2) takes no pointer; the descriptor is open through the call.
    check(unsafe { libc::setns(descriptor, libc::CLONE_NEWNET) })
}

/// Moves the calling thread into a network namespace of its own, with nothing in it but a loopback that is down. It
/// vanishes with the thread and whatever it has started there.
pub fn leave_network() -> io::Result<()> {
    // SAFETY: unshare(2) takes no pointer.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) })
}

/// Gives the calling thread a mount namespace of its own, with what is mounted now. Threads and processes that it starts
/// inherit it; what is mounted there vanishes with the last of them, if it was made private first.
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
