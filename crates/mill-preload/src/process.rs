//! The beginning and the end of the process, and fork(2).

use crate::calls::numbers::close_ours;
use crate::descriptors::{self, Entry};
use crate::noting::Noting;
use crate::stack::{self, Guard, now};
use crate::{alone, environment, keeper, originals, own_addresses, showing, turner};
use core::cell::RefCell;
use core::ffi::c_int;
use mill_keeper::request::VARIABLE;
use mill_tcp::time::Duration;
use std::thread;

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
    showing::begin();
    environment::begin();
    own_addresses::begin();
    keeper::begin(keeper);
    stack::offer();
    // SAFETY: the functions live as long as the process; this library is never unloaded.
    unsafe { libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child)) };
    // SAFETY: as above.
    unsafe { libc::atexit(end) };
}

thread_local! {
    /// The stack's lock while fork(2) copies it, so that no other thread has it then.
    static FORKING: RefCell<Option<Guard>> = const { RefCell::new(None) };
}

extern "C" fn before_fork() {
    FORKING.with(|forking| *forking.borrow_mut() = Some(stack::lock()));
}

extern "C" fn in_parent() {
    FORKING.with(|forking| *forking.borrow_mut() = None);
}

/// The stack, its connections and its listeners stay the parent's. What the kernel listens at may become this process's.
extern "C" fn in_child() {
    FORKING.with(|forking| {
        if let Some(guard) = forking.borrow_mut().as_mut() {
            guard.forget();
        }
    });
    in_parent();
    for (descriptor, entry) in descriptors::all() {
        match entry {
            Entry::Stream(_) => descriptors::set(descriptor, Entry::Lost),
            Entry::Listener(_) | Entry::Set(_) => descriptors::set(descriptor, Entry::Kernel),
            Entry::Kernel | Entry::Lost | Entry::Private => true,
        };
    }
}

/// # Safety
/// As _exit(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn _exit(status: c_int) -> ! {
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

/// Connections that are open are closed, as the kernel does when a process ends, and what was written before is sent.
extern "C" fn end() {
    if !stack::is_made() {
        return;
    }
    for (descriptor, entry) in descriptors::all() {
        match entry {
            Entry::Stream(number) => {
                stack::with(|stack| stack.sockets.close(number, descriptor));
            }
            // What waits there may be for processes that have its socket, too.
            Entry::Listener(_) => {
                close_ours(descriptor, entry);
            }
            _ => {}
        }
    }
    // What its peers have to know they hear from the connections themselves.
    stack::with(|stack| stack.noting.take().map(Noting::clear));
    let deadline = now() + PATIENCE;
    while now() < deadline {
        let goes_on = stack::with(|stack| {
            stack.turn(now());
            stack.leave();
            stack.sockets.has_unsent() || stack.sockets.has_waiting()
        });
        if goes_on != Some(true) {
            return;
        }
        thread::park_timeout(turner::PAUSE);
    }
}

/// How long an ending process stays for what its peers have not acknowledged.
const PATIENCE: Duration = Duration::from_secs(2);
