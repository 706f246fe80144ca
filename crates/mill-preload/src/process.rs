//! The beginning of the process, and fork(2).

use crate::calls::events::at_kernel;
use crate::calls::stdio;
use crate::descriptors::{self, Entry, fresh, own};
use crate::lending::{self, Loan};
use crate::lock::Locked;
use crate::signals::postponed;
use crate::stacks::{self, Guard};
use crate::{
    allocator, alone, borrowing, early, early_shutdown, environment, keeper, kernel_queue, lent,
    originals, orphans, own_addresses, placeholder, say, sets, showing, spawning, turner, vforked,
};
use core::cell::RefCell;
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering};
use mill_keeper::request::VARIABLE;
use mill_sockets::errno::Errno;
use std::sync::Once;

/// Its end.
mod end;
pub(crate) use end::{_exit, Ended, end_by};

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
    unsafe { libc::atexit(end::exit) };
}

thread_local! {
    /// The locks of the stacks while fork(2) copies them, so that no other thread has one then …
    static FORKING: RefCell<Vec<Guard>> = const { RefCell::new(Vec::new()) };

    /// What the parent lends its child by this fork(2).
    static LOANS: RefCell<Vec<Loan>> = const { RefCell::new(Vec::new()) };

    /// … those that are taken before them …
    static OUTER: RefCell<Vec<Locked>> = const { RefCell::new(Vec::new()) };

    /// … and those with which no other is taken, but for the last one. What follows on fork(2) needs them itself.
    static INNER: RefCell<Vec<Locked>> = const { RefCell::new(Vec::new()) };
}

extern "C" fn before_fork() {
    // A signal's handler may fork in the midst of a call of its thread, which has the locks that it needs.
    if stacks::is_inside() || orphans::is_leaving() {
        return;
    }
    end::begin_fork();
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
    // Those that have one of the others may make a descriptor.
    inner.push(own::lock());
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
    end::end_fork();
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
    end::in_child();
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
