//! Turns of the stack while its program computes: a thread that looks every few milliseconds whether anything else has
//! turned it, so that peers get their acknowledgements and timers go off. It visits: the program's thread goes on to have the stack's lock without
//! an atomic operation.

use crate::lock::{Lock, Locked};
use crate::noting;
use crate::showing::Showing;
use crate::stack::now;
use crate::stacks::{COUNT_MAX, try_visit, turns, visit};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, Thread};
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

/// For each stack, its thread while that rests.
static RESTING: [Rest; COUNT_MAX as usize] = [const {
    Rest {
        is_on: AtomicBool::new(false),
        thread: Lock::new(None),
    }
}; COUNT_MAX as usize];

/// For fork(2).
pub(crate) fn locks() -> impl Iterator<Item = Locked> {
    let rests = RESTING.iter();
    rests.map(|rest| Box::new(rest.thread.lock()) as Locked)
}

/// After fork(2), which had their locks: a thread of the program may have wanted to end one meanwhile.
pub(crate) fn end_rests() {
    for rest in RESTING
        .iter()
        .filter(|rest| rest.is_on.load(Ordering::Relaxed))
    {
        rest.end();
    }
}

struct Rest {
    is_on: AtomicBool,
    thread: Lock<Option<Thread>>,
}

/// A thread of the program sleeps no more: from now on the stack has to be looked at again.
#[inline]
pub(crate) fn call(number: u8) {
    let rest = &RESTING[usize::from(number % COUNT_MAX)];
    if rest.is_on.load(Ordering::Relaxed) {
        rest.end();
    }
}

impl Rest {
    /// Parks the thread, for a tenth of a second where the stack has had no more turns than these.
    fn take(&self, turns: &AtomicU32, known: u32) {
        self.is_on.store(true, Ordering::SeqCst);
        if turns.load(Ordering::SeqCst) == known {
            thread::park_timeout(REST);
        }
        self.is_on.store(false, Ordering::Relaxed);
    }

    #[cold]
    fn end(&self) {
        // Whichever thread has it ends the rest as well.
        if let Some(thread) = self.thread.try_lock()
            && let Some(thread) = &*thread
        {
            thread.unpark();
        }
    }

    fn begin(&self) {
        let mut thread = self.thread.lock();
        *thread = Some(thread::current());
    }
}

fn run(number: u8, mut showing: Option<Showing>) {
    let rest = &RESTING[usize::from(number % COUNT_MAX)];
    rest.begin();
    let turns = turns(number);
    let mut known = turns.load(Ordering::Relaxed);
    let mut noted = known;
    let mut rounds = 0_u32;
    // Rounds in a row in which the program has slept.
    let mut slept = 0_u32;
    loop {
        if slept < NOTED_ROUNDS {
            thread::park_timeout(INTERVAL);
            rounds += 1;
        } else {
            rest.take(turns, known);
            rounds += NOTED_ROUNDS;
        }
        if rounds >= NOTED_ROUNDS && note(number, &mut noted, rounds >= 2 * NOTED_ROUNDS) {
            rounds = 0;
        }
        if let Some(showing) = &mut showing {
            showing.now_and_then();
        }
        let now_turned = turns.load(Ordering::Relaxed);
        let was_turned = core::mem::replace(&mut known, now_turned) != now_turned;
        let guard = (!was_turned).then(|| try_visit(number)).flatten();
        let Some(mut guard) = guard else {
            slept = 0;
            continue;
        };
        // Threads that sleep are woken by frames and timers themselves.
        slept += 1;
        let Some(stack) = guard.stack() else {
            continue;
        };
        if stack.sleepers.is_empty() {
            stack.turn(now());
            stack.sockets.flush();
            known = turns.load(Ordering::Relaxed);
            slept = 0;
        } else {
            // They may wait for anything but a listener's connections.
            stack.pass_neglected(now());
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

/// The same while all threads of the program sleep, each of which ends it.
const REST: Duration = Duration::from_millis(100);

const STACK_BYTES: usize = 256 * 1024;
