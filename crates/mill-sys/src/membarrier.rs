//! A memory barrier on all threads of this process at once: membarrier(2).

use crate::process::check;
use std::io;

/// Makes [`barrier`] possible in this process. A few microseconds in a process of one thread, some milliseconds in others, for the
/// kernel waits until each CPU knows. `ENOSYS` before Linux 4.14, other errors where a filter of seccomp(2) forbids it.
pub fn register() -> io::Result<()> {
    run(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
}

/// Each other thread of this process that runs executes a full memory barrier before this returns, as this thread does; one that does not
/// run has executed one when it stopped. Some microseconds: an interrupt on each CPU that runs a thread of the process. `EPERM`
/// without [`register`].
pub fn barrier() -> io::Result<()> {
    run(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
}

fn run(command: libc::c_int) -> io::Result<()> {
    // SAFETY: membarrier(2) takes three numbers and no pointer.
    check(unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_registered_can_have_barriers() {
        match register() {
            Ok(()) => barrier().unwrap(),
            Err(error) => println!("not tested: membarrier(2): {error}"),
        }
    }
}
