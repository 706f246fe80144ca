//! Turns of the stack while its program computes: a thread that looks every few milliseconds whether anything else has
//! turned it, so that peers get their acknowledgements and timers go off. It visits: the program's thread goes on to have the stack's lock without
//! an atomic operation.

use crate::noting;
use crate::showing::Showing;
use crate::stack::now;
use crate::stacks::{try_visit, turns, visit};
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

/// Starts the thread of a stack, which also shows what that does.
pub(crate) fn start(number: u8, showing: Option<Showing>) {
    let before = block_signals();
    let started = thread::Builder::new()
        .name(String::from("millstream"))
        .stack_size(STACK_BYTES)
        .spawn(move || run(number, showing));
    if started.is_err() {
        crate::say::say(
            "the stack has no thread of its own: it is turned by calls of the program only",
        );
    }
    restore_signals(&before);
}

/// A thread inherits the mask: signals are the program's.
pub(crate) fn block_signals() -> libc::sigset_t {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the pointer is to room for a set, which the function fills.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: the first set is filled, the second is room for one.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    // SAFETY: the call has filled it: it cannot fail with these arguments.
    unsafe { before.assume_init() }
}

pub(crate) fn restore_signals(before: &libc::sigset_t) {
    // SAFETY: the set is the one that was there before.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, core::ptr::null_mut()) };
}

fn run(number: u8, mut showing: Option<Showing>) {
    let turns = turns(number);
    let mut known = turns.load(Ordering::Relaxed);
    let mut noted = known;
    let mut rounds = 0_u32;
    loop {
        thread::park_timeout(INTERVAL);
        rounds += 1;
        if rounds >= NOTED_ROUNDS && note(number, &mut noted, rounds >= 2 * NOTED_ROUNDS) {
            rounds = 0;
        }
        if let Some(showing) = &mut showing {
            showing.now_and_then();
        }
        let now_turned = turns.load(Ordering::Relaxed);
        if core::mem::replace(&mut known, now_turned) != now_turned {
            continue;
        }
        let Some(mut guard) = try_visit(number) else {
            continue;
        };
        // Threads that sleep are woken by frames and timers themselves.
        if let Some(stack) = guard.stack()
            && stack.sleepers.is_empty()
        {
            stack.turn(now());
            stack.sockets.flush();
            known = turns.load(Ordering::Relaxed);
        }
    }
}

/// Has the connections noted if there was a turn since; `false` if another thread has the stack, and this one is not to wait.
fn note(number: u8, noted: &mut u32, waits: bool) -> bool {
    let turns = turns(number).load(Ordering::Relaxed);
    if turns == *noted {
        return true;
    }
    let Some(mut guard) = try_visit(number).or_else(|| waits.then(|| visit(number))) else {
        return false;
    };
    if let Some(stack) = guard.stack() {
        noting::go_on(stack);
        *noted = turns;
    }
    true
}

/// How often connections are noted: ten times a second.
const NOTED_ROUNDS: u32 = 25;

/// Shorter than the delay of a peer's acknowledgements, and than its patience with one that is missing (RFC 6298).
const INTERVAL: Duration = Duration::from_millis(4);

/// Between two turns of a process that ends.
pub(crate) const PAUSE: Duration = Duration::from_micros(200);

const STACK_BYTES: usize = 256 * 1024;
