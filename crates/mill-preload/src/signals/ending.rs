//! Signals that end a program which has no handler for them.
//!
//! The kernel goes on with what a process has written and not sent yet, and with connections that other processes have, whatever ends the
//! process. Here that is left to a child (`orphans.rs`), and what waits to be accepted to other processes, by code of the process itself: a
//! handler in the place of the default action, which ends the process by the same signal afterwards. sigaction(2) tells the program that
//! the action is the default one.
//!
//! A signal that ends the process with a dump of its memory means a fault, and is left alone.

use super::whole::Whole;
use super::{before_the_programs, handler, let_end};
use crate::{memory, originals, process};
use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, Ordering};
use libc::sigaction as Action;
use mill_sys::process::Pid;

/// Those by which programs are ended (signal(7)).
const SIGNALS: [c_int; 7] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGPIPE,
    libc::SIGALRM,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

/// The process that has stacks; 0 as long as none is made.
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// From now on this process has something to leave.
pub(crate) fn begin() {
    let own = Pid::own().number();
    // The default action does not end the first process of a namespace (pid_namespaces(7)), which a handler would.
    if own == 1 || PROCESS.swap(own, Ordering::Relaxed) == own {
        return;
    }
    for signal in SIGNALS {
        watch(signal);
    }
}

/// Puts a handler in the place of the default action.
fn watch(signal: c_int) {
    // SAFETY: zero is valid for a structure of plain numbers.
    let mut action: Action = unsafe { core::mem::zeroed() };
    // SAFETY: the pointer is to a local.
    let asked = unsafe { originals::sigaction(signal, core::ptr::null(), &raw mut action) };
    if asked == 0
        && action.sa_sigaction == libc::SIG_DFL
        && let Some(handler) = handler(signal)
    {
        handler.note_default(&action);
        action.sa_sigaction = before_the_programs();
        action.sa_flags = libc::SA_SIGINFO;
        // SAFETY: the pointer is to a local.
        unsafe { originals::sigaction(signal, &raw const action, core::ptr::null_mut()) };
    }
}

/// Whether the default action of a signal is this one.
pub(super) fn is_watched(signal: c_int) -> bool {
    SIGNALS.contains(&signal) && PROCESS.load(Ordering::Relaxed) == Pid::own().number()
}

/// The default action.
pub(super) fn end(signal: c_int) {
    // A child that shares the memory (vfork(2)) ends alone. In the midst of the library's work nothing can be left.
    let is_whole = PROCESS.load(Ordering::Relaxed) == Pid::own().number() && !Whole::is_on();
    // The signal may have come to a thread with little room.
    let leaves = is_whole && memory::can_be_had(ROOM_BYTES);
    let ended = leaves.then(|| stacker::grow(ROOM_BYTES, || process::end_by(signal)));
    if ended != Some(process::Ended::Later) {
        end_now(signal);
    }
}

/// Ends the process by a signal.
pub(crate) fn end_now(signal: c_int) {
    let_end(signal);
    // SAFETY: the call takes a number.
    unsafe { libc::raise(signal) };
}

/// Of a machine stack for what an ending process does.
const ROOM_BYTES: usize = 1 << 20;
