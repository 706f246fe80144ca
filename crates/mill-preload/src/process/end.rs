//! The end of the process: what its peers are told, and what outlives it.
//!
//! ```text
//! exit(3), _exit(2)   a signal (signals/ending.rs)
//!           │             │ once other threads have forked
//!           ▼             ▼
//! end       closes what is its own; what peers have not acknowledged, and others have, is left (orphans.rs)
//! ```

use crate::calls::numbers::close_ours;
use crate::calls::stdio;
use crate::descriptors::{self, Entry};
use crate::noting::Noting;
use crate::signals::ending;
use crate::stack::passing::Heir;
use crate::stack::{Stack, now};
use crate::{originals, orphans, stacks};
use core::cell::Cell;
use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, Ordering};
use mill_tcp::time::{Duration, Instant};

/// # Safety
/// As _exit(2).
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn _exit(status: c_int) -> ! {
    end();
    // SAFETY: the caller's promise.
    unsafe { originals::_exit(status) };
    unreachable!("it does not return")
}

/// # Safety
/// As _Exit(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn _Exit(status: c_int) -> ! {
    // SAFETY: the caller's promise.
    unsafe { _exit(status) }
}

/// exit(3) writes what streams of stdio hold back after this.
pub(super) extern "C" fn exit() {
    stdio::flush();
    end();
    // One that came meanwhile.
    let signal = ENDED_BY.load(Ordering::SeqCst);
    if signal != 0 {
        ending::end_now(signal);
    }
}

/// Where the process is in [`end`].
static ENDING: AtomicU8 = AtomicU8::new(NOT_YET);
const NOT_YET: u8 = 0;
const NOW: u8 = 1;
const DONE: u8 = 2;

/// A signal that is to end the process once that is done; 0 for none.
static ENDED_BY: AtomicI32 = AtomicI32::new(0);

/// What a signal that ends the process finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// All is done.
    Now,
    /// A thread does it, perhaps the one that the signal has interrupted, and the process ends then.
    Later,
}

/// Does what is done at the end of the process, which a signal is about to end.
pub(crate) fn end_by(signal: c_int) -> Ended {
    ENDED_BY.store(signal, Ordering::SeqCst);
    end();
    match ENDING.load(Ordering::SeqCst) {
        NOW => Ended::Later,
        _ => Ended::Now,
    }
}

/// Connections that are open are closed, as the kernel does when a process ends. What outlives it, a child goes on with (`orphans.rs`).
fn end() {
    let is_first = ENDING.compare_exchange(NOT_YET, NOW, Ordering::SeqCst, Ordering::SeqCst);
    if is_first.is_err() {
        return;
    }
    if stacks::is_made() && (ENDED_BY.load(Ordering::SeqCst) == 0 || have_forked()) {
        leave_all();
    }
    ENDING.store(DONE, Ordering::SeqCst);
}

fn leave_all() {
    close_all();
    give_devices();
    // Most peers acknowledge the last bytes at once.
    if !turn_until(now() + SOON, |stack| stack.has_loans()) || orphans::leave() {
        return end_all();
    }
    for number in stacks::made() {
        stacks::with_stack(number, Stack::end_loans);
    }
    turn_until(now() + PATIENCE, |_| false);
    end_all();
}

fn close_all() {
    for (descriptor, entry) in descriptors::all() {
        match entry {
            // Another thread may close it, too, and only one of them does.
            Entry::Stream(number) if descriptors::lose(descriptor, entry) => {
                stacks::with(number, |stack| stack.sockets.close(number));
            }
            // What waits there may be for processes that have its socket, too.
            Entry::Listener(_) => {
                close_ours(descriptor, entry);
            }
            _ => {}
        }
    }
}

/// Turns the stacks until a process that serves where this one did has its part of the device, if there is one.
fn give_devices() {
    let began = now();
    let seek = |number| {
        stacks::with_stack(number, |stack| {
            let heir = stack.seek_heir();
            stack.turn(now());
            heir
        })
    };
    loop {
        // All of them have their turns.
        let patience = match stacks::made().filter_map(seek).max() {
            None | Some(Heir::None) => return,
            Some(Heir::Possible) => SOON,
            Some(Heir::Certain) => HEIR_MAX,
        };
        let time = now().since(began);
        if time >= patience {
            return;
        }
        if time >= SOON {
            // Others may take only that.
            stacks::made().for_each(|number| {
                stacks::with_stack(number, Stack::leave);
            });
        }
        pause();
    }
}

/// What its peers have to know they have heard from the connections themselves.
fn end_all() {
    for number in stacks::made() {
        stacks::with_stack(number, |stack| {
            stack.sockets.list_young(false);
            stack.noting.take().map(Noting::clear)
        });
    }
}

/// Turns the stacks as long as one has something left to send, until this time at most; whether one has then, or `is_enough` for one.
fn turn_until(deadline: Instant, is_enough: impl Fn(&Stack) -> bool) -> bool {
    let goes_on = |number| {
        stacks::with_stack(number, |stack| {
            stack.turn(now());
            stack.leave();
            let has_left = stack.sockets.has_unsent() || stack.sockets.has_waiting();
            (has_left, is_enough(stack))
        })
    };
    loop {
        // All of them have their turns.
        let all: Vec<(bool, bool)> = stacks::made().filter_map(goes_on).collect();
        let has_left = all.iter().any(|(has_left, _)| *has_left);
        let is_enough = all.iter().any(|(_, is_enough)| *is_enough);
        if is_enough || !has_left || now() >= deadline {
            return is_enough || has_left;
        }
        pause();
    }
}

/// Threads that fork.
static FORKS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// This one does, and is among them.
    static IS_FORKING: Cell<bool> = const { Cell::new(false) };
}

/// From here on a signal that ends the process waits until this thread has forked: it may have come to a thread with a lock of the C library
/// that fork(3) waits for, and would wait for ours. Once it has begun to end the process no thread forks any more.
pub(super) fn begin_fork() {
    IS_FORKING.set(true);
    FORKS.fetch_add(1, Ordering::SeqCst);
    while ENDED_BY.load(Ordering::SeqCst) != 0 && ENDING.load(Ordering::SeqCst) == NOW {
        FORKS.fetch_sub(1, Ordering::SeqCst);
        pause();
        FORKS.fetch_add(1, Ordering::SeqCst);
    }
}

pub(super) fn end_fork() {
    if IS_FORKING.replace(false) {
        FORKS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether other threads have forked, within a moment.
fn have_forked() -> bool {
    let until = now() + SOON;
    while FORKS.load(Ordering::SeqCst) > 0 {
        if now() >= until {
            return false;
        }
        pause();
    }
    true
}

/// In a child after fork(2): what its parent is about is not its own.
pub(super) fn in_child() {
    ENDING.store(NOT_YET, Ordering::SeqCst);
    ENDED_BY.store(0, Ordering::SeqCst);
    FORKS.store(0, Ordering::SeqCst);
    IS_FORKING.set(false);
}

/// Between two turns. The standard library's pause would allocate by the C library, which a signal may have interrupted.
fn pause() {
    let time = libc::timespec {
        tv_sec: 0,
        tv_nsec: PAUSE_NS,
    };
    // SAFETY: there is no list; the time is a local.
    unsafe { originals::ppoll(core::ptr::null_mut(), 0, &raw const time, core::ptr::null()) };
}

const PAUSE_NS: libc::c_long = 200_000;

/// How long an ending process waits for acknowledgements before it leaves that to a child …
const SOON: Duration = Duration::from_millis(20);

/// … and where there is no child.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long one of many workers may wait for a processor until it takes the device.
const HEIR_MAX: Duration = Duration::from_millis(500);
