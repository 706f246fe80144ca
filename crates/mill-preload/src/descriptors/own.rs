//! Descriptors that the library makes for itself. Their numbers are far above those of the program, which would otherwise get others
//! than it counts on (wrk has tables of as many descriptors as it needs); and programs that close all they know do not close them.

use super::{Entry, set};
use crate::lock::{Lock, Locked};
use crate::originals;
use crate::signals::whole::Whole;
use core::cell::Cell;
use core::ffi::c_int;
use mill_sys::rlimit::{Limit, Resource};
use std::os::fd::{IntoRawFd, OwnedFd};

thread_local! {
    /// What this thread makes is the library's.
    static MAKING: Cell<bool> = const { Cell::new(false) };
}

/// Whether what this thread makes is the library's.
pub(crate) fn is_making() -> bool {
    MAKING.get()
}

/// Runs `make`, whose descriptors are the library's.
#[inline]
pub(crate) fn during<R>(make: impl FnOnce() -> R) -> R {
    let _whole = Whole::begin();
    let before = MAKING.replace(true);
    let made = make();
    MAKING.set(before);
    made
}

/// Runs a handler of the program, which may interrupt the library: what it makes is the program's.
pub(crate) fn not_during(handler: impl FnOnce()) {
    let before = MAKING.replace(false);
    handler();
    MAKING.set(before);
}

/// A descriptor was made, unless it is -1; returns the number that it has from now on.
#[inline]
pub(crate) fn note(descriptor: c_int) -> c_int {
    if descriptor < 0 || !is_making() {
        return descriptor;
    }
    let descriptor = raise(descriptor);
    set(descriptor, Entry::Private);
    descriptor
}

/// Closes a descriptor of the library.
pub(crate) fn close(descriptor: impl Into<OwnedFd>) {
    let descriptor = descriptor.into().into_raw_fd();
    // The program's next descriptor may have this number.
    set(descriptor, Entry::Kernel);
    // SAFETY: the call takes no pointer, and the descriptor had one owner.
    unsafe { originals::close(descriptor) };
}

/// Gives a descriptor a number above the program's, if the process may have one.
fn raise(descriptor: c_int) -> c_int {
    let raised = match descriptor < LEAST {
        true => raise_to(descriptor, LEAST),
        false => descriptor,
    };
    match raised < LEAST + FEW {
        true => raised,
        false => raise_beyond(raised).unwrap_or(raised),
    }
}

/// The same from this number on.
fn raise_to(descriptor: c_int, least: c_int) -> c_int {
    // SAFETY: the command takes a number.
    let raised = unsafe {
        originals::fcntl(
            descriptor,
            libc::F_DUPFD_CLOEXEC,
            least.unsigned_abs() as usize,
        )
    };
    if raised == -1 {
        return descriptor;
    }
    // SAFETY: the call takes no pointer; the number was just made, and nothing else knows it.
    unsafe { originals::close(descriptor) };
    raised
}

/// Where the library has many, they would leave few numbers to a program that may have 1024, as is usual. They get numbers from its limit on:
/// the kernel compares a new number with the limit of that moment, and leaves those alone that there are. `None` if the process may not
/// have more, or if its limit is above `AMPLE`: then numbers are plenty, and one beyond it would enlarge the kernel's table.
fn raise_beyond(descriptor: c_int) -> Option<c_int> {
    let limit = Resource::Descriptors.limit().ok()?;
    let least = c_int::try_from(limit.soft).ok()?;
    if limit.soft >= limit.hard || limit.soft > AMPLE || descriptor >= least {
        return None;
    }
    // A child that goes on with the stacks may have it from a thread that is its parent's (orphans.rs).
    let _limit = LIMIT.try_lock()?;
    let raised = Limit {
        soft: limit.hard.min(limit.soft + ROOM),
        ..limit
    };
    // Another thread may set the limit of the program at the same time, which is to hold in the end.
    let before = Resource::Descriptors.exchange_limit(raised).ok()?;
    let beyond = raise_to(descriptor, least);
    let during = Resource::Descriptors.exchange_limit(before);
    if let Some(others) = during.ok().filter(|during| *during != raised) {
        let _ = Resource::Descriptors.set_limit(others);
    }
    Some(beyond)
}

/// The thread that has it may raise the limit for a moment, and takes no other lock. No child and no other program is to begin with the raised limit.
static LIMIT: Lock<()> = Lock::new(());

/// For fork(2).
pub(crate) fn lock() -> Locked {
    Box::new(LIMIT.lock())
}

/// Runs what begins with another program, which has the limit as it is.
pub(crate) fn with_limit<R>(run: impl FnOnce() -> R) -> R {
    // A child of clone(2) may have it from a thread that is its parent's, and waits for a moment only.
    let limit = (0..LIMIT_LOOKS).find_map(|_| {
        let limit = LIMIT.try_lock();
        if limit.is_none() {
            std::thread::yield_now();
        }
        limit
    });
    let result = run();
    drop(limit);
    result
}

/// How often it is looked whether the limit is as it was: some microseconds each.
const LIMIT_LOOKS: u32 = 1000;

/// As for the socket to the keeper (mill-keeper `launch.rs`).
const LEAST: c_int = 500;

/// So many descriptors of the library have numbers that the program could have.
const FEW: c_int = 100;

/// A program that may have more descriptors has numbers enough.
const AMPLE: u64 = 16384;

/// How many numbers beyond the limit of the program there are at most.
const ROOM: u64 = 65536;
