//! The beginning and the end of the process, and fork(2).

use crate::calls::events::at_kernel;
use crate::calls::numbers::close_ours;
use crate::calls::stdio;
use crate::descriptors::{self, Entry, fresh};
use crate::lending::{self, Loan};
use crate::lock::Locked;
use crate::noting::Noting;
use crate::signals::{ending, postponed};
use crate::stack::{Stack, now};
use crate::stacks::{self, Guard};
use crate::{
    allocator, alone, borrowing, early, early_shutdown, environment, keeper, kernel_queue, lent,
    originals, orphans, own_addresses, placeholder, say, sets, showing, spawning, turner, vforked,
};
use core::cell::{Cell, RefCell};
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, Ordering};
use mill_keeper::request::VARIABLE;
use mill_sockets::errno::Errno;
use mill_tcp::time::{Duration, Instant};
use std::sync::Once;

/// Runs before the program's main().
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

extern "C" fn begin() {
    originals::resolve_all();
    let keeper = std::env::var(VARIABLE).ok();
    let Some(keeper) = keeper.and_then(|number| number.parse::<c_int>().ok()) else {
        return alone::begin();
    };
    if !keeper::is_one(keeper) {
        return say::say(
            "this program stays on the kernel's network stack: what started it has closed the socket to the keeper",
        );
    }
    say::begin();
    showing::begin();
    environment::begin();
    own_addresses::begin();
    borrowing::recall();
    keeper::begin(keeper);
    stacks::offer();
    // SAFETY: the functions live as long as the process; this library is never unloaded.
    unsafe { libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child)) };
    // SAFETY: as above.
    unsafe { libc::atexit(exit) };
}

thread_local! {
    /// The locks of the stacks while fork(2) copies them, so that no other thread has one then …
    static FORKING: RefCell<Vec<Guard>> = const { RefCell::new(Vec::new()) };

    /// What the parent lends its child by this fork(2).
    static LOANS: RefCell<Vec<Loan>> = const { RefCell::new(Vec::new()) };

    /// … those that are taken before them …
    static OUTER: RefCell<Vec<Locked>> = const { RefCell::new(Vec::new()) };

    /// … and those with which no other is taken. What follows on fork(2) needs them itself.
    static INNER: RefCell<Vec<Locked>> = const { RefCell::new(Vec::new()) };
}

/// Threads that fork.
static FORKS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// This one does, and is among them.
    static IS_FORKING: Cell<bool> = const { Cell::new(false) };
}

/// From here on a signal that ends the process waits until this thread has forked: it may have come to a thread with a lock of the C library
/// that fork(3) waits for, and would wait for ours. Once it has begun to end the process no thread forks any more.
fn begin_fork() {
    IS_FORKING.set(true);
    FORKS.fetch_add(1, Ordering::SeqCst);
    while ENDED_BY.load(Ordering::SeqCst) != 0 && ENDING.load(Ordering::SeqCst) == NOW {
        FORKS.fetch_sub(1, Ordering::SeqCst);
        pause();
        FORKS.fetch_add(1, Ordering::SeqCst);
    }
}

fn end_fork() {
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

extern "C" fn before_fork() {
    // A signal's handler may fork in the midst of a call of its thread, which has the locks that it needs.
    if stacks::is_inside() || orphans::is_leaving() {
        return;
    }
    begin_fork();
    // The child may run another program by a function that is not ours (execl(3)).
    fresh::settle_all();
    OUTER.set(vec![stdio::lock(), lent::lock(), spawning::lock()]);
    FORKING.with(|forking| *forking.borrow_mut() = stacks::lock_all());
    LOANS.set(lending::prepare());
    vforked::before_fork();
    let mut inner = vec![
        borrowing::lock(),
        early::lock(),
        early_shutdown::lock(),
        placeholder::lock(),
        lent::lock_messages(),
        kernel_queue::lock(),
        sets::lock_names(),
    ];
    inner.extend(turner::locks());
    INNER.set(inner);
    allocator::before_fork();
}

extern "C" fn in_parent() {
    if orphans::is_leaving() {
        return;
    }
    allocator::after_fork();
    drop(INNER.take());
    turner::end_rests();
    vforked::in_parent();
    FORKING.with(|forking| {
        let mut guards = forking.borrow_mut();
        for loan in LOANS.take() {
            let guard = guards.get_mut(usize::from(loan.number));
            if let Some(stack) = guard.and_then(Guard::stack) {
                stack.lend(loan);
            }
        }
        borrowing::note_shared();
    });
    end_fork();
    unlock();
}

/// Handlers that have waited run as the last lock goes, and may fork.
fn unlock() {
    let locks = (FORKING.take(), OUTER.take());
    drop(locks);
}

/// The stacks, their connections and their listeners stay the parent's. What the kernel listens at may become this process's.
pub(crate) extern "C" fn in_child() {
    if orphans::is_leaving() {
        return;
    }
    allocator::after_fork();
    drop(INNER.take());
    FORKING.with(|forking| {
        let mut guards = forking.borrow_mut();
        if guards.is_empty() {
            // In the midst of a call, which ends in the child as well: no stack is lent, and no number means another's.
            borrowing::lose_all();
        } else {
            // SAFETY: of the parent's threads the child has the one that has forked.
            unsafe { stacks::forget_all(&mut guards) };
        }
    });
    // Signals that have come meanwhile are the parent's.
    postponed::forget();
    borrowing::begin(LOANS.take());
    leave_parents();
    unlock();
}

/// What else the child has of its parent.
fn leave_parents() {
    ENDING.store(NOT_YET, Ordering::SeqCst);
    ENDED_BY.store(0, Ordering::SeqCst);
    FORKS.store(0, Ordering::SeqCst);
    IS_FORKING.set(false);
    vforked::in_child();
    at_kernel::forget();
    lent::in_child();
    for (descriptor, entry) in descriptors::all() {
        match entry {
            Entry::Stream(number) => {
                HAS_LOST.store(true, Ordering::Relaxed);
                descriptors::set(descriptor, borrowing::inherited(number))
            }
            Entry::Listener(_) | Entry::Set(_) => descriptors::set(descriptor, Entry::Kernel),
            Entry::Kernel | Entry::Lost | Entry::Private | Entry::Fresh(_) => true,
            Entry::Inherited(_) | Entry::Borrowed(_) => true,
        };
    }
}

/// The process that began this one had connections.
static HAS_LOST: AtomicBool = AtomicBool::new(false);

/// The error of a call on a socket that is lost, as one of a forked child whose parent has the connection; said once.
#[cold]
pub(crate) fn lost() -> Errno {
    static SAID: Once = Once::new();
    if HAS_LOST.load(Ordering::Relaxed) {
        SAID.call_once(|| {
            say::say(
                "a child process uses a connection of the stack that its parent had, and gets none: its calls fail with ENOTCONN",
            );
        });
    }
    Errno::NOT_CONNECTED
}

/// Runs a call that forks, for which the C library runs no handlers (as it does for fork(3)). It returns 0 in the child.
pub(crate) fn forking<N: PartialEq + From<bool>>(fork: impl FnOnce() -> N) -> N {
    if !stacks::is_offered() {
        return fork();
    }
    before_fork();
    let result = fork();
    match result == N::from(false) {
        true => in_child(),
        false => in_parent(),
    }
    result
}

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
extern "C" fn exit() {
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
