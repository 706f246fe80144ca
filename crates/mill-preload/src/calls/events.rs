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
    let at_kernel = |timeout_ms| {
        // SAFETY: the caller's promise.
        unsafe { originals::epoll_wait(set, events, count, timeout_ms) }
    };
    // SAFETY: the caller's promise.
    unsafe { wait_for((set, timeout_ms), (events, count), None, at_kernel) }
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
    let at_kernel = |timeout_ms| {
        // SAFETY: the caller's promise.
        unsafe { originals::epoll_pwait(set, events, count, timeout_ms, mask) }
    };
    // SAFETY: the caller's promise.
    let mask = unsafe { mask.as_ref() };
    // SAFETY: the caller's promise.
    unsafe { wait_for((set, timeout_ms), (events, count), mask, at_kernel) }
}

/// Waits for a set, at the kernel as long as it has nothing of the stack.
///
/// # Safety
/// As epoll_wait(2).
unsafe fn wait_for(
    (set, timeout_ms): (c_int, c_int),
    (events, count): (*mut epoll_event, c_int),
    mask: Option<&sigset_t>,
    at_kernel: impl Fn(c_int) -> c_int,
) -> c_int {
    let mut timeout = milliseconds(timeout_ms);
    let number = match ours(set) {
        Some(number) => number,
        None => {
            let until = timeout.map(|timeout| now() + timeout);
            // SAFETY: the caller's promise.
            match unsafe { at_kernel::wait((set, timeout_ms), events, at_kernel) } {
                Some(found) => return found,
                None => timeout = until.map(|until| until.since(now())),
            }
            match ours(set) {
                Some(number) => number,
                // It was closed meanwhile.
                None => return done(Err(Errno::BAD_DESCRIPTOR)),
            }
        }
    };
    if events.is_null() && count > 0 {
        return done(Err(Errno::FAULT));
    }
    // SAFETY: the caller's promise.
    let events = unsafe { places(events, usize::try_from(count).unwrap_or(0)) };
    done(wait(set, number, events, timeout, mask))
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
