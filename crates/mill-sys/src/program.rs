//! Starting programs: what they must not inherit.

use crate::process::check;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Makes the program the leader of its own process group, which a terminal's Ctrl-C does not reach, with no signal
/// blocked. Since Rust 1.66 a child inherits the signal mask of the thread that starts it: a thread that reads its
/// signals from a descriptor would start children that ignore SIGTERM.
pub fn on_its_own(command: &mut Command) -> &mut Command {
    command.process_group(0);
    // SAFETY: between fork and exec the closure only makes two async-signal-safe calls (signal-safety(7)) and allocates nothing.
    unsafe { command.pre_exec(unblock_all) }
}

fn unblock_all() -> io::Result<()> {
    // SAFETY: the set is plain numbers, for which zero is valid.
    let mut none: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a set that outlives the call.
    check(unsafe { libc::sigemptyset(&raw mut none) })?;
    // SAFETY: the set is initialised; the old mask is not asked for.
    check(unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::{Signal, SignalDescriptor};
    use std::process::Stdio;

    /// SigBlk of /proc/self/status, in a child of a thread that reads its signals from a descriptor.
    fn blocked(prepare: impl FnOnce(&mut Command) + Send + 'static) -> String {
        // A thread of its own, as the mask is per thread.
        let thread = std::thread::spawn(move || {
            let _signals = SignalDescriptor::open_for(&[Signal::WindowChange]).unwrap();
            let mut command = Command::new("grep");
            command
                .args(["SigBlk", "/proc/self/status"])
                .stdin(Stdio::null());
            prepare(&mut command);
            String::from_utf8(command.output().unwrap().stdout).unwrap()
        });
        thread.join().unwrap()
    }

    #[test]
    fn a_child_on_its_own_has_no_signal_blocked_although_its_parent_has() {
        assert_eq!(blocked(|_| {}), "SigBlk:\t0000000008000000\n");
        let own = blocked(|command| {
            on_its_own(command);
        });
        assert_eq!(own, "SigBlk:\t0000000000000000\n");
    }
}
