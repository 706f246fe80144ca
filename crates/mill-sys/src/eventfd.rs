//! A descriptor that is readable after a signal (eventfd(2)).

use crate::process::check;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Signals that cannot block.
mod signaller;

pub use signaller::Signaller;

/// Makes one, non-blocking in both directions.
pub fn create() -> io::Result<OwnedFd> {
    // SAFETY: eventfd takes numbers.
    let number = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    check(number)?;
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Makes it readable, in two system calls: a peer with a duplicate may have made it blocking and full, in which case it
/// is readable already. If the peer does so between the two calls, this one blocks: for such peers there is
/// [`Signaller`].
pub fn signal(descriptor: BorrowedFd<'_>) -> io::Result<()> {
    let mut entry = libc::pollfd {
        fd: descriptor.as_raw_fd(),
        events: libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: the pointer is to one entry, which outlives the call; the call does not wait.
    check(unsafe { libc::poll(&raw mut entry, 1, 0) })?;
    if entry.revents & libc::POLLOUT == 0 {
        return Ok(());
    }
    let one = 1_u64.to_ne_bytes();
    // SAFETY: the pointer and length describe `one`, which outlives the call.
    let written = unsafe { libc::write(descriptor.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    if written == -1 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::WouldBlock {
            return Err(error);
        }
    }
    Ok(())
}

/// Whether a descriptor from a peer is an anonymous file such as [`create`] makes: no other kind of those accepts, or
/// blocks on, a write of eight bytes. A pipe or a regular file is none.
pub fn is_one(descriptor: BorrowedFd<'_>) -> io::Result<bool> {
    let own = create()?;
    Ok(identity(descriptor)? == identity(std::os::fd::AsFd::as_fd(&own))?)
}

/// All anonymous files share one inode.
fn identity(descriptor: BorrowedFd<'_>) -> io::Result<(u64, u64)> {
    // SAFETY: a stat is plain numbers, for which zero is valid.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: fstat writes a stat, which the pointer is to.
    check(unsafe { libc::fstat(descriptor.as_raw_fd(), &raw mut status) })?;
    Ok((status.st_dev, status.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{descriptor, passing};
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::time::Duration;

    fn is_readable(event: &OwnedFd) -> bool {
        descriptor::wait_readable(&[event.as_fd()], Some(Duration::ZERO)).unwrap()[0]
    }

    #[test]
    fn a_signal_makes_it_readable() {
        let event = create().unwrap();
        assert!(!is_readable(&event));
        signal(event.as_fd()).unwrap();
        signal(event.as_fd()).unwrap();
        assert!(is_readable(&event));
    }

    #[test]
    fn a_full_and_blocking_one_does_not_block_the_caller() {
        let event = create().unwrap();
        let mut file = std::fs::File::from(event.try_clone().unwrap());
        file.write_all(&(u64::MAX - 1).to_ne_bytes()).unwrap();
        descriptor::set_nonblocking(event.as_fd(), false).unwrap();
        signal(event.as_fd()).unwrap();
        assert!(is_readable(&event));
    }

    #[test]
    fn files_and_sockets_are_none() {
        assert!(is_one(create().unwrap().as_fd()).unwrap());
        let file = passing::memory_file(c"none").unwrap();
        assert!(!is_one(file.as_fd()).unwrap());
        let (near, _far) = passing::pair().unwrap();
        assert!(!is_one(near.as_fd()).unwrap());
    }
}
