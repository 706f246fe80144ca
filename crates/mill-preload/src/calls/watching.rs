//! epoll(7): a set of the kernel, and one of the stack beside it as soon as it watches a socket of ours.

use crate::descriptors::{self, Entry};
use crate::early::{self, Watched};
use crate::memory::{done, places, returned, time_of, values};
use crate::stack::{Stack, now};
use crate::waiting::{self, Kernel, Turned, Wait};
use crate::{kernel_options, listening, originals, sets, stacks};
use core::cell::RefCell;
use core::ffi::c_int;
use libc::{epoll_event, pollfd, sigset_t, timespec};
use mill_sockets::epoll_set::{Event, Interest};
use mill_sockets::errno::Errno;
use mill_sockets::slab::Number;
use mill_tcp::time::{Duration, Instant};

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
            if result == 0 {
                // Both sets have the same entries, unless another thread closes one of the descriptors now.
                let _ = control(set, operation, fd, number, event());
            }
            result
        }
    }
}

/// The stack's set beside one of the kernel that another set shall watch.
fn set_at(fd: c_int) -> Option<Number> {
    let is_candidate = stacks::is_made() && !stacks::is_inside();
    let is_set = is_candidate
        && std::fs::read_link(format!("/proc/self/fd/{fd}"))
            .is_ok_and(|kind| kind.as_os_str() == "anon_inode:[eventpoll]");
    if is_set { ours(fd) } else { None }
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
        let nothing = core::ptr::null_mut();
        // SAFETY: the operation takes no event.
        let left = unsafe { originals::epoll_ctl(watched.set, libc::EPOLL_CTL_DEL, fd, nothing) };
        if left == 0 {
            let event = Some(&watched.event);
            let _ = control(watched.set, libc::EPOLL_CTL_ADD, fd, number, event);
        }
    }
}

fn control(
    set: c_int,
    operation: c_int,
    fd: c_int,
    number: Number,
    event: Option<&epoll_event>,
) -> Result<c_int, Errno> {
    let interest = event.map(|event| Interest {
        events: event.events,
        data: event.u64,
    });
    let changed = stacks::on(number, |stack| {
        let set = sets::number_in(stack, set)?;
        let sockets = &mut stack.sockets;
        match (operation, interest) {
            (libc::EPOLL_CTL_ADD, Some(interest)) => sockets.watch(set, number, fd, interest)?,
            (libc::EPOLL_CTL_MOD, Some(interest)) => {
                sockets.change_watch(set, number, fd, interest)?;
            }
            (libc::EPOLL_CTL_DEL, _) => sockets.unwatch(set, number, fd)?,
            (libc::EPOLL_CTL_ADD | libc::EPOLL_CTL_MOD, None) => return Err(Errno::FAULT),
            _ => return Err(Errno::INVALID),
        }
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

/// The stack's set beside the kernel's, once the process has a stack: another thread may add a socket of it while this one
/// waits.
fn ours(set: c_int) -> Option<Number> {
    match descriptors::find(set) {
        Entry::Set(number) => Some(number),
        Entry::Kernel if stacks::is_made() && !stacks::is_inside() => {
            let stack = stacks::home_or_any()?;
            stacks::with_stack(stack, |stack| sets::number_in(stack, set).ok())?
        }
        _ => None,
    }
}

/// # Safety
/// As epoll_wait(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn epoll_wait(
    set: c_int,
    events: *mut epoll_event,
    count: c_int,
    timeout_ms: c_int,
) -> c_int {
    let Some(number) = ours(set) else {
        // SAFETY: the caller's promise.
        return unsafe { originals::epoll_wait(set, events, count, timeout_ms) };
    };
    if events.is_null() && count > 0 {
        return done(Err(Errno::FAULT));
    }
    // SAFETY: the caller's promise.
    let events = unsafe { places(events, usize::try_from(count).unwrap_or(0)) };
    done(wait(set, number, events, milliseconds(timeout_ms), None))
}

/// # Safety
/// As epoll_pwait(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn epoll_pwait(
    set: c_int,
    events: *mut epoll_event,
    count: c_int,
    timeout_ms: c_int,
    mask: *const sigset_t,
) -> c_int {
    let Some(number) = ours(set) else {
        // SAFETY: the caller's promise.
        return unsafe { originals::epoll_pwait(set, events, count, timeout_ms, mask) };
    };
    if events.is_null() && count > 0 {
        return done(Err(Errno::FAULT));
    }
    // SAFETY: the caller's promise.
    let events = unsafe { places(events, usize::try_from(count).unwrap_or(0)) };
    // SAFETY: the caller's promise.
    let mask = unsafe { mask.as_ref() };
    done(wait(set, number, events, milliseconds(timeout_ms), mask))
}

/// # Safety
/// As epoll_pwait2(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn epoll_pwait2(
    set: c_int,
    events: *mut epoll_event,
    count: c_int,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    let Some(number) = ours(set) else {
        // SAFETY: the caller's promise.
        return unsafe { originals::epoll_pwait2(set, events, count, timeout, mask) };
    };
    if events.is_null() && count > 0 {
        return done(Err(Errno::FAULT));
    }
    // SAFETY: the caller's promise.
    let events = unsafe { places(events, usize::try_from(count).unwrap_or(0)) };
    // SAFETY: the caller's promise.
    let timeout = unsafe { timeout.as_ref() };
    // SAFETY: as above.
    let mask = unsafe { mask.as_ref() };
    match timeout.map(time_of).transpose() {
        Ok(timeout) => done(wait(set, number, events, timeout, mask)),
        Err(errno) => done(Err(errno)),
    }
}

/// A timeout of poll(2) and epoll(7); `None` is for ever.
pub(super) fn milliseconds(timeout_ms: c_int) -> Option<Duration> {
    let timeout_ms = u64::try_from(timeout_ms).ok()?;
    Some(Duration::from_millis(timeout_ms))
}

thread_local! {
    /// Memory for the stack's events, and when this thread asked the kernel last.
    static FOUND: RefCell<(Vec<Event>, Option<Instant>)> = const { RefCell::new((Vec::new(), None)) };
}

fn wait(
    set: c_int,
    number: Number,
    events: &mut [epoll_event],
    timeout: Option<Duration>,
    mask: Option<&sigset_t>,
) -> Result<c_int, Errno> {
    if events.is_empty() {
        return Err(Errno::INVALID);
    }
    let began = now();
    let (mut found, mut asked_at) = FOUND.take();
    let mut kernel = vec![pollfd {
        fd: set,
        events: libc::POLLIN,
        revents: 0,
    }];
    let wait = Wait {
        turned: Turned::OfSet(number),
        deadline: timeout.map(|timeout| began + timeout),
        mask,
        spins: has_watches(number),
        // A program may ask for one event at a time, as nginx accepts: no turn for each.
        is_lazy: true,
        kernel: &mut kernel,
    };
    let result = waiting::until(wait, |held, _, kernel| {
        found.clear();
        for number in core::iter::once(number).chain(sets::further(number)) {
            if let Some(stack) = held.of(number) {
                let room = events.len() - found.len();
                stack.sockets.collect(number, room, &mut found);
            }
        }
        for (place, event) in events.iter_mut().zip(&found) {
            place.events = event.events.0;
            place.u64 = event.data;
        }
        // Where the stack always has events the kernel's are not to wait for ever.
        let at = held.worked_at();
        let is_due = asked_at.is_none_or(|asked| at.since(asked) >= ASK_INTERVAL);
        let rest = events.get_mut(found.len()..).unwrap_or_default();
        let of_kernel = match kernel {
            Kernel::Ready(1..) => collect_kernel(set, rest),
            Kernel::Unknown if is_due && !found.is_empty() => {
                asked_at = Some(at);
                collect_kernel(set, rest)
            }
            _ => Ok(0),
        };
        let of_stack = c_int::try_from(found.len()).unwrap_or(0);
        match of_kernel {
            Err(errno) if of_stack == 0 => Some(Err(errno)),
            of_kernel => {
                let count = of_stack + of_kernel.unwrap_or(0);
                (count > 0).then_some(Ok(count))
            }
        }
    });
    FOUND.set((found, asked_at));
    result?.unwrap_or(Ok(0))
}

/// Whether a set watches a socket of any stack.
fn has_watches(first: Number) -> bool {
    let watches = |number| stacks::with(number, |stack| stack.sockets.has_watches(number));
    let further = stacks::with(first, |_| sets::further(first));
    let further = further.into_iter().flatten();
    core::iter::once(first)
        .chain(further)
        .any(|number| watches(number) == Some(true))
}

/// The kernel's events, without a wait.
fn collect_kernel(set: c_int, into: &mut [epoll_event]) -> Result<c_int, Errno> {
    if into.is_empty() {
        return Ok(0);
    }
    let count = c_int::try_from(into.len()).unwrap_or(c_int::MAX);
    // SAFETY: the pointer is to room for so many events.
    returned(unsafe { originals::epoll_wait(set, into.as_mut_ptr(), count, 0) })
}

/// How often the kernel is asked while the stack has events.
const ASK_INTERVAL: Duration = Duration::from_micros(100);
