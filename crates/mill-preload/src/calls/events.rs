//! epoll_wait(2): the stack's events, and the kernel's behind them.

use crate::descriptors::{self, Entry};
use crate::memory::{done, places, returned, time_of};
use crate::signals::Handled;
use crate::stack::now;
use crate::waiting::{self, Kernel, Turned, Wait};
use crate::{originals, sets, stacks};
use core::cell::RefCell;
use core::ffi::c_int;
use libc::{epoll_event, pollfd, sigset_t, timespec};
use mill_sockets::epoll_set::Event;
use mill_sockets::errno::Errno;
use mill_sockets::slab::Number;
use mill_tcp::time::{Duration, Instant};
use smallvec::smallvec;

/// Waits before there is a stack.
pub(crate) mod at_kernel;

/// The stack's set beside the kernel's, once the process has a stack: another thread may add a socket of it while this one
/// waits.
pub(super) fn ours(set: c_int) -> Option<Number> {
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
    let at_kernel = |left| {
        // SAFETY: the caller's promise.
        unsafe { originals::epoll_wait(set, events, count, in_milliseconds(left)) }
    };
    let limit = milliseconds(timeout_ms);
    // SAFETY: the caller's promise.
    unsafe { wait_for((set, limit), (events, count), None, at_kernel) }
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
    let at_kernel = |left| {
        // SAFETY: the caller's promise.
        unsafe { originals::epoll_pwait(set, events, count, in_milliseconds(left), mask) }
    };
    let limit = milliseconds(timeout_ms);
    // SAFETY: the caller's promise.
    let mask = unsafe { mask.as_ref() };
    // SAFETY: the caller's promise.
    unsafe { wait_for((set, limit), (events, count), mask, at_kernel) }
}

/// Waits for a set, at the kernel as long as it has nothing of the stack.
///
/// # Safety
/// As epoll_wait(2).
unsafe fn wait_for(
    (set, limit): (c_int, Option<Duration>),
    (events, count): (*mut epoll_event, c_int),
    mask: Option<&sigset_t>,
    at_kernel: impl Fn(Option<Duration>) -> c_int,
) -> c_int {
    let mut limit = limit;
    let number = loop {
        if let Some(number) = ours(set) {
            break number;
        }
        let until = limit.map(|limit| now() + limit);
        // SAFETY: the caller's promise.
        match unsafe { at_kernel::wait((set, limit), events, &at_kernel) } {
            Some(found) => return found,
            // Of the stack, or of that of a process which has the set by fork(2).
            None => limit = until.map(|until| until.since(now())),
        }
    };
    if events.is_null() && count > 0 {
        return done(Err(Errno::FAULT));
    }
    // SAFETY: the caller's promise.
    let events = unsafe { places(events, usize::try_from(count).unwrap_or(0)) };
    done(wait(set, number, events, limit, mask))
}

/// Rounded up, so that it does not end before; -1 for ever.
fn in_milliseconds(left: Option<Duration>) -> c_int {
    left.map_or(-1, |left| {
        c_int::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(c_int::MAX)
    })
}

fn timespec_of(left: Duration) -> timespec {
    timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(left.subsec_nanos()),
    }
}

/// # Safety
/// As epoll_pwait2(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn epoll_pwait2(
    set: c_int,
    events: *mut epoll_event,
    count: c_int,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the caller's promise.
    let limit = unsafe { timeout.as_ref() }.map(time_of).transpose();
    let Ok(limit) = limit else {
        // SAFETY: the caller's promise.
        return unsafe { originals::epoll_pwait2(set, events, count, timeout, mask) };
    };
    let at_kernel = |left: Option<Duration>| {
        let left = left.map(timespec_of);
        let left = left.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
        // SAFETY: the caller's promise; the time is a local.
        unsafe { originals::epoll_pwait2(set, events, count, left, mask) }
    };
    // SAFETY: the caller's promise.
    let mask = unsafe { mask.as_ref() };
    // SAFETY: the caller's promise.
    unsafe { wait_for((set, limit), (events, count), mask, at_kernel) }
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
    let handled = Handled::by_this_thread();
    if events.is_empty() {
        return Err(Errno::INVALID);
    }
    let began = now();
    let (mut found, mut asked_at) = FOUND.take();
    let mut kernel = smallvec![pollfd {
        fd: set,
        events: libc::POLLIN,
        revents: 0,
    }];
    let wait = Wait {
        turned: Turned::OfSet(number),
        deadline: timeout.map(|timeout| began + timeout),
        mask,
        handled,
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
        let is_due = asked_at.is_none_or(|asked| began.since(asked) >= ASK_INTERVAL);
        let rest = events.get_mut(found.len()..).unwrap_or_default();
        let of_kernel = match kernel {
            Kernel::Ready(1..) => collect_kernel(set, rest),
            Kernel::Unknown if is_due && !found.is_empty() => {
                asked_at = Some(began);
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
