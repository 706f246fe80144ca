//! Descriptor tables: private ones for threads, close-on-exec, standard streams, and waiting for input.

use crate::process::check;
use std::cell::Cell;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Gives the calling thread a descriptor table of its own, a copy of the shared one. Other threads do not see what it
/// opens and closes afterwards, and RLIMIT_NOFILE counts for it alone.
pub fn unshare_table() -> io::Result<()> {
    // SAFETY: unshare(2) takes no pointer. Descriptors keep their numbers, so that every owner still owns the same
    // open file, in this table and in the old one.
    check(unsafe { libc::unshare(libc::CLONE_FILES) })?;
    TABLE.set(TABLES.fetch_add(1, Ordering::Relaxed));
    Ok(())
}

/// Which of this process's tables the calling thread has: 0 is the one that the process began with. Threads of a thread that has
/// called [`unshare_table`] have to be told.
pub(crate) fn table() -> u64 {
    TABLE.get()
}

thread_local! {
    static TABLE: Cell<u64> = const { Cell::new(0) };
}

/// The next table's number.
static TABLES: AtomicU64 = AtomicU64::new(1);

/// Sets whether reading and writing return `WouldBlock` instead of waiting; applies to all descriptors of the open
/// file.
pub fn set_nonblocking(descriptor: BorrowedFd<'_>, nonblocking: bool) -> io::Result<()> {
    // SAFETY: F_GETFL takes nothing.
    let flags = unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_GETFL) };
    check(flags)?;
    let flags = if nonblocking {
        flags | libc::O_NONBLOCK
    } else {
        flags & !libc::O_NONBLOCK
    };
    // SAFETY: F_SETFL takes a number.
    check(unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFL, flags) })
}

/// A close-on-exec duplicate of a descriptor that another thread owns and keeps open during the call; for a thread that
/// is about to leave the shared table.
pub fn duplicate(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: F_DUPFD_CLOEXEC takes a number, and fails for a descriptor that is not open.
    let duplicate = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    check(duplicate)?;
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(duplicate) })
}

/// A duplicate that programs inherit, with a number of at least `least`; nothing owns it.
pub fn inheritable(descriptor: BorrowedFd<'_>, least: RawFd) -> io::Result<RawFd> {
    // SAFETY: F_DUPFD takes a number.
    let duplicate = unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_DUPFD, least) };
    check(duplicate)?;
    Ok(duplicate)
}

/// Closes every descriptor of the calling thread's table but the standard streams and `kept`.
///
/// To be called after [`unshare_table`] or in a forked child only, before the thread has opened anything: the owners
/// of what is closed must live in other threads, or in frames that are never returned to.
pub fn close_all_but(kept: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut numbers: Vec<u32> = kept
        .iter()
        .filter_map(|descriptor| u32::try_from(descriptor.as_raw_fd()).ok())
        .collect();
    numbers.sort_unstable();
    let mut first = FIRST_AFTER_STREAMS;
    for number in numbers {
        if number > first {
            close_range(first, number - 1)?;
        }
        first = first.max(number.saturating_add(1));
    }
    close_range(first, u32::MAX)
}

/// Sets whether exec(2) closes a descriptor.
pub fn set_close_on_exec(descriptor: BorrowedFd<'_>, close: bool) -> io::Result<()> {
    let flags = if close { libc::FD_CLOEXEC } else { 0 };
    // SAFETY: F_SETFD takes a number.
    check(unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFD, flags) })
}

/// Takes ownership of a descriptor that this process inherited and that a parent named by its number; marks it
/// close-on-exec. Refuses the standard streams and numbers that are not open.
///
/// Has to be called once for each number, before anything else is opened: otherwise the number may belong to another
/// owner.
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    if u32::try_from(number).is_ok_and(|number| number < FIRST_AFTER_STREAMS) {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: F_SETFD takes a number, and fails for a descriptor that is not open.
    check(unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    // SAFETY: the descriptor is open, and by contract nothing in this process owns it yet.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// A standard stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Input,
    Output,
    Error,
}

/// Redirects a standard stream to another open file.
pub fn redirect(stream: Stream, target: BorrowedFd<'_>) -> io::Result<()> {
    let number = match stream {
        Stream::Input => libc::STDIN_FILENO,
        Stream::Output => libc::STDOUT_FILENO,
        Stream::Error => libc::STDERR_FILENO,
    };
    // SAFETY: dup2(2) takes no pointer; nothing owns the standard streams, so no owner loses its file.
    check(unsafe { libc::dup2(target.as_raw_fd(), number) })
}

/// Waits until one of `descriptors` is readable (or at its end), at most `timeout` (`None`: for ever); returns which
/// ones, in the same order. A signal handler does not end the wait.
pub fn wait_readable(
    descriptors: &[BorrowedFd<'_>],
    timeout: Option<Duration>,
) -> io::Result<Vec<bool>> {
    let mut entries: Vec<libc::pollfd> = descriptors
        .iter()
        .map(|descriptor| libc::pollfd {
            fd: descriptor.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    // Rounded up, so that the time has passed when no descriptor is ready.
    let timeout_ms = timeout.map_or(-1, |timeout| {
        i32::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX)
    });
    let count = libc::nfds_t::try_from(entries.len()).unwrap_or(0);
    // SAFETY: the pointer and count describe `entries`, which outlives the call.
    let result = unsafe { libc::poll(entries.as_mut_ptr(), count, timeout_ms) };
    match check(result) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(entries.iter().map(|entry| entry.revents != 0).collect()),
    }
}

/// Standard input, output and error are 0, 1 and 2.
const FIRST_AFTER_STREAMS: u32 = 3;

fn close_range(first: u32, last: u32) -> io::Result<()> {
    if first > last {
        return Ok(());
    }
    // SAFETY: close_range(2) takes no pointer; the caller of `close_all_but` answers for the owners.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passing;
    use std::os::fd::AsFd;

    #[test]
    fn a_thread_with_its_own_table_closes_nothing_of_the_others() {
        let file = passing::memory_file(c"shared").unwrap();
        let (near, far) = passing::pair().unwrap();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                unshare_table().unwrap();
                close_all_but(&[far.as_fd()]).unwrap();
                assert!(file.metadata().is_err(), "closed in this table");
                passing::send(far.as_fd(), b"still here", &[]).unwrap();
            });
            thread.join().unwrap();
        });
        assert!(file.metadata().is_ok(), "open in the old table");
        assert_eq!(passing::receive(near.as_fd(), &mut [0; 16]).unwrap().0, 10);
    }

    #[test]
    fn waiting_tells_which_of_several_has_input() {
        let (left, right) = passing::pair().unwrap();
        let ends = [left.as_fd(), right.as_fd()];
        assert_eq!(
            wait_readable(&ends, Some(Duration::ZERO)).unwrap(),
            [false, false]
        );
        passing::send(left.as_fd(), b"x", &[]).unwrap();
        assert_eq!(wait_readable(&ends, None).unwrap(), [false, true]);
    }

    #[test]
    fn standard_streams_and_closed_numbers_are_not_inherited() {
        for number in [-1, 0, 2, 1_000_000] {
            assert!(inherited(number).is_err(), "{number}");
        }
    }
}
