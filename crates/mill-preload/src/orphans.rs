//! Connections that outlive their process: those that other processes have, too (`lending.rs`), and those whose peers have not acknowledged all
//! that was written.
//!
//! In the kernel such a socket is an orphan once its process has ended, and goes on. Here it is of the process's stacks, so that a process which
//! ends leaves a child that goes on with these. The child has nothing else of the program: no descriptors, no streams, no session, no signals.
//!
//! ```text
//! process that ends                          child
//!   closes what is its own (process/end.rs)
//!   reserves what it has of the device
//!   fork(2) ────────────────────────────────▶ closes the program's descriptors
//!   leaves its stacks to the child            turns the stacks
//!   ends, and with it its locks ────────────▶ takes the locks, by which others see that it lives
//!                                             ends with the last orphan
//! ```
//!
//! It is a process like any other one of the program that has connections and listens nowhere: those that listen take over its part of the
//! device. A process that SIGKILL ends, or a fault, leaves nothing, and the keeper tells its peers.

use crate::descriptors::{self, Entry, own};
use crate::memory::errno;
use crate::noting;
use crate::showing::{self, Showing};
use crate::signals::whole::Whole;
use crate::stack::{Stack, is_device_gone, now};
use crate::stacks::{self, Guard};
use crate::{allocator, borrowing, originals, say, signals, turner};
use core::cell::Cell;
use core::ffi::{c_int, c_uint};
use libc::pollfd;
use mill_sys::process::{self, Pid};
use mill_sys::{descriptor, passing};
use mill_tcp::time::{Duration, Instant};
use smallvec::SmallVec;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

thread_local! {
    /// This thread forks such a child: handlers of fork(2) have nothing to do.
    static IS_LEAVING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread's fork(2) makes such a child.
pub(crate) fn is_leaving() -> bool {
    IS_LEAVING.get()
}

/// Leaves the stacks, whose sockets are closed, to a child; `false` if there is none, and this process still has them.
pub(crate) fn leave() -> bool {
    // A handler in the midst of a call of its own thread finds the stacks as they are.
    if stacks::is_inside() {
        return false;
    }
    let _whole = Whole::begin();
    // By its end the child says that it has closed the program's descriptors.
    let Ok((said, by_child)) = own::during(passing::pair) else {
        return false;
    };
    let mut guards = stacks::lock_all();
    for stack in guards.iter_mut().filter_map(Guard::stack) {
        stack.sockets.link().reserve_ownership();
    }
    let mask = turner::block_signals();
    IS_LEAVING.set(true);
    let parent = Pid::own();
    let child = fork();
    match child {
        0 => {
            for guard in &mut guards {
                // SAFETY: this is a child after fork(2), and has no other thread.
                unsafe { guard.survive() };
            }
            drop(guards);
            own::close(said);
            go_on(parent, by_child)
        }
        -1 => {
            for stack in guards.iter_mut().filter_map(Guard::stack) {
                let _ = stack.sockets.link().renew_ownership();
            }
        }
        _ => stacks::abandon_all(&mut guards),
    }
    IS_LEAVING.set(false);
    own::close(by_child);
    if child > 0 {
        // What waits for this process may begin with the same files and addresses.
        let _ = descriptor::wait_readable(&[said.as_fd()], Some(CLOSING_MAX));
    }
    own::close(said);
    turner::restore_signals(&mask);
    child > 0
}

/// Forks without the handlers of fork(3): the C library's own lock of its allocator may be that of the thread which a signal has interrupted.
/// The child uses the library's heap only.
fn fork() -> c_int {
    let limit = own::lock();
    allocator::before_fork();
    // SAFETY: the child does not return to the program; all locks that it needs are this thread's.
    let mut child = unsafe { originals::_Fork() };
    if child == -1 && errno().0 == libc::ENOSYS && !signals::is_in_handler() {
        // SAFETY: as above, with an older C library.
        child = unsafe { originals::fork() };
    }
    allocator::after_fork();
    drop(limit);
    child
}

/// The child's life.
fn go_on(parent: Pid, by_child: OwnedFd) -> ! {
    leave_program();
    own::close(by_child);
    // Under the program's name.
    let mut showings: SmallVec<[Showing; 1]> = stacks::made().filter_map(shown).collect();
    let _ = process::set_name(c"mill-orphans");
    let mut locks = Locks::Parents(parent, now() + PATIENCE);
    let mut noted_at = None;
    loop {
        let began = now();
        if !locks.take() {
            // Nothing may touch the device any more.
            exit();
        }
        let all: SmallVec<[Turned; 1]> = stacks::made().filter_map(turn).collect();
        if !all.iter().any(|one| one.goes_on) || is_device_gone() {
            break;
        }
        let has_worked = all.iter().any(|one| one.has_worked);
        let is_due = noted_at.is_none_or(|at| began.since(at) >= INTERVAL);
        let note_later = (has_worked && !is_due).then(|| began + INTERVAL);
        if is_due && has_worked {
            noted_at = Some(began);
            for number in stacks::made() {
                stacks::with_stack(number, noting::go_on);
            }
            showings.iter_mut().for_each(Showing::now_and_then);
        }
        let nexts = all.iter().filter_map(|one| one.next);
        let next = nexts.chain(note_later).chain(locks.next(began)).min();
        sleep(&all, next.map(|next| next.since(began)));
    }
    for number in stacks::made() {
        stacks::with_stack(number, end);
    }
    exit()
}

fn exit() -> ! {
    // SAFETY: nothing of this process is left to be done.
    unsafe { originals::_exit(0) };
    unreachable!("it does not return")
}

/// Stands in for what the parent shows of a stack.
fn shown(number: u8) -> Option<Showing> {
    showing::leave(number);
    stacks::with_stack(number, |stack| stack.show()).flatten()
}

/// What one stack has done, and waits for.
struct Turned {
    goes_on: bool,
    has_worked: bool,
    next: Option<Instant>,
    sources: c_int,
}

fn turn(number: u8) -> Option<Turned> {
    stacks::with_stack(number, |stack| {
        let now = now();
        stack.turn(now);
        stack.leave();
        Turned {
            goes_on: stack.has_orphans(),
            has_worked: stack.worked_at == now,
            next: stack.sockets.next_turn(),
            sources: stack.sources.as_fd().as_raw_fd(),
        }
    })
}

fn end(stack: &mut Stack) {
    stack.end_loans();
    stack.sockets.list_young(false);
    if let Some(noting) = stack.noting.take() {
        noting.clear();
    }
    stack.turn(now());
    // The parent may still have the locks; nothing is reserved for this process any more.
    let _ = stack.sockets.link().renew_ownership();
}

/// Until frames come, another process says something, or it is time.
fn sleep(all: &[Turned], timeout: Option<Duration>) {
    let mut sources: SmallVec<[pollfd; 1]> = all
        .iter()
        .map(|one| pollfd {
            fd: one.sources,
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    let timeout_ms = timeout.map_or(-1, |timeout| {
        c_int::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(c_int::MAX)
    });
    let count = libc::nfds_t::try_from(sources.len()).unwrap_or(0);
    // SAFETY: the pointer is to a slice of that many.
    unsafe { originals::poll(sources.as_mut_ptr(), count, timeout_ms) };
}

/// By which other processes see that this one lives, and that a part of the device is its own. They are of one process at a time.
enum Locks {
    /// The parent has them until it has ended. From then on until this time they may be released.
    Parents(Pid, Instant),
    Own,
}

impl Locks {
    /// Takes them if the parent has ended. `false` if another process has a part of the device meanwhile, which this one has to leave alone.
    fn take(&mut self) -> bool {
        let Self::Parents(parent, until) = self else {
            return true;
        };
        let are_taken = stacks::made().all(|number| {
            let taken = stacks::with_stack(number, |stack| {
                let link = stack.sockets.link();
                let taken = link.take_locks().is_ok();
                if !taken {
                    link.reserve_ownership();
                }
                taken
            });
            taken != Some(false)
        });
        if are_taken {
            *self = Self::Own;
        } else if Pid::parent() == *parent {
            *until = now() + PATIENCE;
        } else if *until < now() {
            return false;
        }
        true
    }

    fn next(&self, now: Instant) -> Option<Instant> {
        matches!(self, Self::Parents(..)).then(|| now + LOOK_INTERVAL)
    }
}

/// What is the program's ends with it.
fn leave_program() {
    let mut own: Vec<c_uint> = descriptors::all()
        .filter(|(_, entry)| *entry == Entry::Private)
        .filter_map(|(descriptor, _)| c_uint::try_from(descriptor).ok())
        .collect();
    own.sort_unstable();
    let mut first = 0;
    for descriptor in own {
        if first < descriptor {
            close(first, descriptor - 1);
        }
        first = descriptor + 1;
    }
    close(first, c_uint::MAX);
    // What this process has of its own parent's connections.
    borrowing::lose_all();
    say::be_silent();
    let _ = process::new_session();
    // As any process it ends when it is asked to; the keeper tells the peers.
    signals::let_end(libc::SIGTERM);
}

fn close(first: c_uint, last: c_uint) {
    // SAFETY: the call takes numbers, of descriptors that no value of the library owns.
    unsafe { originals::close_range(first, last, 0) };
}

/// How long the parent waits for the child, which may wait for a processor.
const CLOSING_MAX: Duration = Duration::from_secs(1);

/// How often connections are noted and shown.
const INTERVAL: Duration = Duration::from_millis(100);

/// How often it is looked whether the parent has ended, and how long after that its locks may be another one's.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);
const PATIENCE: Duration = Duration::from_secs(2);
