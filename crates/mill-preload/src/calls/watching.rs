//! epoll_ctl(2): a set of the kernel, and one of the stack beside it as soon as it watches a socket of ours.

use super::events::ours;
use crate::descriptors::{self, Entry, own};
use crate::early::{self, Watched};
use crate::memory::{done, errno, set_errno, values};
use crate::stack::Stack;
use crate::{kernel_options, listening, originals, sets, stacks};
use core::ffi::c_int;
use libc::epoll_event;
use mill_device::AnyLink;
use mill_sockets::epoll_set::Interest;
use mill_sockets::errno::Errno;
use mill_sockets::slab::Number;
use mill_sockets::sockets::Sockets;

/// # Safety
/// As epoll_ctl(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn epoll_ctl(
    set: c_int,
    operation: c_int,
    fd: c_int,
    event: *mut epoll_event,
) -> c_int {
    let is_added = operation == libc::EPOLL_CTL_ADD;
    let number = match descriptors::find(fd) {
        Entry::Stream(number) => Ok(number),
        // The kernel's part of a listener is watched by the kernel.
        Entry::Listener(number) => Err(Some(number)),
        Entry::Set(inner) => return control_set(set, operation, fd, inner, event),
        Entry::Kernel if is_added => match listening::of(fd) {
            None if let Some(inner) = set_at(fd) => {
                return control_set(set, operation, fd, inner, event);
            }
            listener => Err(listener),
        },
        Entry::Lost => return done(Err(Errno::NOT_CONNECTED)),
        _ => Err(None),
    };
    // SAFETY: the caller's promise.
    let original = || unsafe { originals::epoll_ctl(set, operation, fd, event) };
    // SAFETY: the caller's promise.
    let event = || unsafe { values(event.cast_const(), 1) }.first();
    match number {
        Ok(number) => done(control(set, operation, fd, number, event())),
        Err(None) => {
            let result = original();
            if result == 0 {
                note_early(set, operation, fd, event());
            }
            result
        }
        Err(Some(number)) => {
            let result = original();
            // The kernel's is one with that of the process that has forked this one, or was forked by it, and knows what that has added.
            let is_there = is_added && result == -1 && errno() == Errno::EXISTS;
            if result == 0 || is_there {
                // Both sets have the same entries, unless another thread closes one of the descriptors now.
                let changed = control(set, operation, fd, number, event());
                if operation == libc::EPOLL_CTL_MOD && changed == Err(Errno::NO_ENTRY) {
                    let _ = control(set, libc::EPOLL_CTL_ADD, fd, number, event());
                }
            }
            if is_there {
                set_errno(libc::EEXIST);
            }
            result
        }
    }
}

/// The stack's set beside one of the kernel that another set shall watch.
fn set_at(fd: c_int) -> Option<Number> {
    let is_candidate = stacks::is_made() && !stacks::is_inside();
    if is_candidate && sets::is_set(fd) {
        ours(fd)
    } else {
        None
    }
}

/// A set that watches another one: both the kernel's and the stack's do.
fn control_set(
    set: c_int,
    operation: c_int,
    fd: c_int,
    inner: Number,
    event: *mut epoll_event,
) -> c_int {
    // SAFETY: the pointer is that of epoll_ctl(2).
    let result = unsafe { originals::epoll_ctl(set, operation, fd, event) };
    if result != 0 {
        return result;
    }
    // SAFETY: as above.
    let event = unsafe { values(event.cast_const(), 1) }.first();
    let interest = event.map(|event| Interest {
        events: event.events,
        data: event.u64,
    });
    // In each stack both sets have the same entries, unless another thread closes one of the descriptors now.
    for number in sets::stacks_of(inner).iter() {
        let _ = stacks::with_stack(number, |stack| {
            let inner = sets::number_in(stack, fd)?;
            let set = sets::number_in(stack, set)?;
            let sockets = &mut stack.sockets;
            match (operation, interest) {
                (libc::EPOLL_CTL_ADD, Some(interest)) => {
                    sockets.watch_set(set, inner, fd, interest)
                }
                (libc::EPOLL_CTL_MOD, Some(interest)) => {
                    sockets.change_watch_of_set(set, inner, fd, interest)
                }
                _ => sockets.unwatch_set(set, inner, fd),
            }
        });
    }
    if let Entry::Set(outer) = descriptors::find(set) {
        let interest = interest.filter(|_| operation != libc::EPOLL_CTL_DEL);
        stacks::with(outer, |_| sets::nest([outer, inner], fd, interest));
        wake(outer);
    }
    result
}

/// Threads that wait for a set, or for one that watches it, look for the stacks in which it is.
fn wake(first: Number) {
    let each = stacks::with(first, |_| sets::with_outer(first));
    for first in each.into_iter().flatten() {
        stacks::with(first, Stack::wake);
    }
}

/// Remembers how a socket of the kernel is watched that may become the stack's.
fn note_early(set: c_int, operation: c_int, fd: c_int, event: Option<&epoll_event>) {
    match (operation, event) {
        (libc::EPOLL_CTL_ADD, Some(event)) if is_unconnected(fd) => {
            early::add(fd, Watched { set, event: *event });
        }
        (libc::EPOLL_CTL_MOD, Some(event)) => early::change(fd, set, Some(*event)),
        (libc::EPOLL_CTL_DEL, _) => early::change(fd, set, None),
        _ => {}
    }
}

fn is_unconnected(fd: c_int) -> bool {
    let option = |name| kernel_options::number(fd, libc::SOL_SOCKET, name);
    !stacks::is_inside()
        && stacks::is_offered()
        && option(libc::SO_PROTOCOL) == Some(libc::IPPROTO_TCP)
        && option(libc::SO_ACCEPTCONN) == Some(0)
        && !listening::has_peer(fd)
}

/// A socket has become the stack's: sets that watched it at the kernel watch it there.
pub(super) fn take_over(fd: c_int, number: Number) {
    for watched in early::take(fd) {
        let is_over = is_over(&watched, fd);
        let nothing = core::ptr::null_mut();
        // The set may have been closed by this number, and live by another one.
        let numbers = core::iter::once(watched.set).chain(sets::duplicates(watched.set));
        let mut numbers = numbers.filter(|set| {
            // SAFETY: the operation takes no event.
            let left = unsafe { originals::epoll_ctl(*set, libc::EPOLL_CTL_DEL, fd, nothing) };
            left == 0
        });
        if let Some(set) = numbers.next() {
            let interest = interest(&watched.event);
            let _ = within(set, number, |sockets, set| {
                sockets.watch(set, number, fd, interest)?;
                match is_over {
                    true => sockets.end_one_shot(set, number, fd),
                    false => Ok(()),
                }
            });
        }
    }
}

/// Whether a set has told its one-shot event of a descriptor (`EPOLLONESHOT`): then no condition is left of what it watches for, as the
/// kernel shows (proc_pid_fdinfo(5)). Without /proc it may tell another one.
fn is_over(watched: &Watched, fd: c_int) -> bool {
    let one_shot = libc::EPOLLONESHOT.cast_unsigned();
    if watched.event.events & one_shot == 0 {
        return false;
    }
    let path = format!("/proc/thread-self/fdinfo/{}", watched.set);
    let shown = own::during(|| std::fs::read_to_string(path)).unwrap_or_default();
    let mut events = shown.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let is_of_it = words.next() == Some("tfd:") && words.next()?.parse() == Ok(fd);
        let events = is_of_it.then(|| words.nth(1)).flatten()?;
        u32::from_str_radix(events, 16).ok()
    });
    events.next().is_some_and(|events| events & !FLAGS == 0)
}

/// `EP_PRIVATE_BITS` of the kernel, which are no conditions.
const FLAGS: u32 = Interest::ONESHOT | Interest::EDGE | Interest::EXCLUSIVE | EPOLLWAKEUP;
const EPOLLWAKEUP: u32 = 1 << 29;

fn control(
    set: c_int,
    operation: c_int,
    fd: c_int,
    number: Number,
    event: Option<&epoll_event>,
) -> Result<c_int, Errno> {
    let interest = event.map(interest);
    within(set, number, |sockets, set| match (operation, interest) {
        (libc::EPOLL_CTL_ADD, Some(interest)) => sockets.watch(set, number, fd, interest),
        (libc::EPOLL_CTL_MOD, Some(interest)) => sockets.change_watch(set, number, fd, interest),
        (libc::EPOLL_CTL_DEL, _) => sockets.unwatch(set, number, fd),
        (libc::EPOLL_CTL_ADD | libc::EPOLL_CTL_MOD, None) => Err(Errno::FAULT),
        _ => Err(Errno::INVALID),
    })
}

fn interest(event: &epoll_event) -> Interest {
    Interest {
        events: event.events,
        data: event.u64,
    }
}

/// Changes what a set watches in the stack of a socket.
fn within(
    set: c_int,
    number: Number,
    change: impl FnOnce(&mut Sockets<AnyLink>, Number) -> Result<(), Errno>,
) -> Result<c_int, Errno> {
    let changed = stacks::on(number, |stack| {
        let set = sets::number_in(stack, set)?;
        change(&mut stack.sockets, set)?;
        // Another thread may wait for it already.
        stack.wake();
        Ok(set)
    })?;
    // That thread may not know yet that the set is in this stack, too.
    if let Entry::Set(first) = descriptors::find(set)
        && first != changed
    {
        wake(first);
    }
    Ok(0)
}
