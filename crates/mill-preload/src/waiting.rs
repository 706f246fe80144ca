//! Calls that wait: turns, then spinning as `polling=` says, then sleep in the kernel with everything that can end the wait.
//!
//! A signal ends a wait as it does in the kernel. While a thread spins, the handlers count (signals.rs). Before it sleeps, signals
//! are blocked, looked for once more, and delivered only inside ppoll(2), which says so; so none is missed between a look and
//! the sleep.

use crate::doorbell::doorbell;
use crate::held::{Held, StackNumbers};
use crate::memory::{errno, returned};
use crate::originals;
use crate::signals::whole::Whole;
use crate::signals::{Handled, Rings};
use crate::stack::{Stack, now};
use crate::{sets, stacks, turner};
use core::cell::Cell;
use core::ffi::c_int;
use core::mem::MaybeUninit;
use libc::{pollfd, sigset_t, timespec};
use mill_sockets::errno::Errno;
use mill_sockets::slab::Number;
use mill_stack::polling::Polling;
use mill_tcp::time::{Duration, Instant};
use smallvec::SmallVec;
use std::os::fd::{AsFd, AsRawFd};

/// Whose turns a wait makes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Turned {
    Stacks(StackNumbers),
    /// Those of this set, of which there may be more while the wait lasts.
    OfSet(Number),
}

impl Turned {
    fn stacks(self) -> StackNumbers {
        match self {
            Self::Stacks(stacks) => stacks,
            Self::OfSet(set) => sets::stacks_of(set),
        }
    }
}

/// Descriptors of the kernel that a wait looks at: usually one, with the doorbell and the sources of a stack.
pub(crate) type PollList = SmallVec<[pollfd; 8]>;

/// What ends a wait, and what it may do until then.
#[derive(Debug)]
pub(crate) struct Wait<'a> {
    pub(crate) turned: Turned,
    pub(crate) deadline: Option<Instant>,
    /// The signals that are blocked while it lasts; `None` for those that are now.
    pub(crate) mask: Option<&'a sigset_t>,
    /// What this thread had handled when the program's call began: a signal that comes later ends it, as in the kernel.
    pub(crate) handled: Handled,
    /// Whether a thread may spin for it: not where nothing of the stack can end it yet.
    pub(crate) spins: bool,
    /// Whether what a turn of a moment ago has brought is enough to look at first.
    pub(crate) is_lazy: bool,
    /// Descriptors of the kernel; what they report is in them when an attempt is made.
    pub(crate) kernel: &'a mut PollList,
}

impl<'a> Wait<'a> {
    /// Of a call on one socket, which waits no longer than its timeout (`SO_RCVTIMEO`, `SO_SNDTIMEO`).
    pub(crate) fn of_call(
        number: Number,
        timeout: Option<Duration>,
        handled: Handled,
        kernel: &'a mut PollList,
    ) -> Self {
        Self {
            turned: Turned::Stacks(StackNumbers::of(number)),
            deadline: timeout.map(|timeout| now() + timeout),
            mask: None,
            handled,
            spins: true,
            is_lazy: false,
            kernel,
        }
    }
}

/// What an attempt may know of the kernel's descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// They were not looked at.
    Unknown,
    /// So many have something to report.
    Ready(c_int),
}

/// Tries until `attempt` gives something; `None` when the time is over. `EINTR` after a signal.
pub(crate) fn until<R>(
    wait: Wait<'_>,
    mut attempt: impl FnMut(&mut Held, &[pollfd], Kernel) -> Option<R>,
) -> Result<Option<R>, Errno> {
    let handled = wait.handled;
    let mut is_lazy = wait.is_lazy;
    let mut kernel = Kernel::Unknown;
    loop {
        let began = now();
        let stacks = wait.turned.stacks();
        let mut held = Held::lock(stacks)?;
        let is_recent = core::mem::take(&mut is_lazy) && held.were_turned_lately(began);
        if !is_recent {
            held.turn(began);
        }
        if let Some(result) = attempt(&mut held, wait.kernel, kernel) {
            held.heed_sleepers();
            return Ok(Some(result));
        }
        if is_recent {
            continue;
        }
        held.say_nothing();
        if handled.is_outdated() {
            return Err(Errno::INTERRUPTED);
        }
        let is_over = wait.deadline.is_some_and(|deadline| deadline <= began);
        if is_over && (kernel != Kernel::Unknown || wait.kernel.is_empty()) {
            return Ok(None);
        }
        let pause = pause(&mut held, began, wait.spins);
        let is_sleep = !is_over && matches!(pause, Pause::Sleep { .. });
        if !is_sleep && wait.mask.is_none() {
            drop(held);
            kernel = match is_over || is_due(began, wait.kernel) {
                true => Kernel::Ready(look(wait.kernel)?),
                false => Kernel::Unknown,
            };
            continue;
        }
        // Without a doorbell, for want of a descriptor, frames end the sleep all the same.
        let doorbell = is_sleep.then(doorbell).flatten();
        let mut ends: SmallVec<[c_int; 4]> = doorbell.into_iter().collect();
        let until = match pause {
            Pause::Sleep { until, is_woken } if is_sleep => {
                let sources = held.each().filter(|_| is_woken);
                ends.extend(sources.map(|stack| stack.sources.as_fd().as_raw_fd()));
                earlier(wait.deadline, until)
            }
            _ => Some(began),
        };
        if let Some(doorbell) = doorbell {
            held.add_sleeper(doorbell, until);
        }
        drop(held);
        // A handler that leaves the call by siglongjmp(3) does so once this thread is no sleeper any more. With a mask of the call its own
        // it may be for signals that are blocked without.
        let whole = wait.mask.is_none().then(Whole::begin);
        let polled = match (wait.mask, doorbell) {
            (None, Some(doorbell)) => {
                // A signal that comes before the thread sleeps rings as well. They are not blocked for that, or the kernel would
                // choose another thread for one that is the process's.
                let _rings = Rings::begin(doorbell);
                poll_unless(handled, || poll(wait.kernel, &ends, until, began, None))
            }
            (mask, _) => {
                let blocked = Blocked::all();
                let mask = Some(mask.unwrap_or(&blocked.before));
                poll_unless(handled, || poll(wait.kernel, &ends, until, began, mask))
            }
        };
        if let Some(doorbell) = doorbell {
            leave(doorbell, stacks);
        }
        drop(whole);
        kernel = Kernel::Ready(polled?);
    }
}

/// Polls, unless a handler has run meanwhile.
fn poll_unless(
    handled: Handled,
    poll: impl FnOnce() -> Result<c_int, Errno>,
) -> Result<c_int, Errno> {
    match handled.is_outdated() {
        true => Err(Errno::INTERRUPTED),
        false => poll(),
    }
}

/// Whether a call that has transferred nothing is begun anew: after handlers with `SA_RESTART`, unless its time is bounded
/// (signal(7)). From then on only signals that come later end it.
pub(crate) fn is_restarted<R>(
    result: &Result<R, Errno>,
    handled: &mut Handled,
    timeout: Option<Duration>,
) -> bool {
    let is_interrupted = matches!(result, Err(Errno::INTERRUPTED)) && timeout.is_none();
    is_interrupted && handled.go_on()
}

/// The same for a call that waits for a socket of a stack alone.
pub(crate) fn of_call<R>(
    number: Number,
    timeout: Option<Duration>,
    handled: Handled,
    mut attempt: impl FnMut(&mut Stack) -> Option<R>,
) -> Result<Option<R>, Errno> {
    let kernel = &mut PollList::new();
    let wait = Wait::of_call(number, timeout, handled, kernel);
    until(wait, |held, _, _| attempt(held.of(number)?))
}

thread_local! {
    /// When this thread has asked the kernel last.
    static ASKED_AT: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Whether the kernel is to be asked for its descriptors, by a thread that spins.
fn is_due(now: Instant, kernel: &[pollfd]) -> bool {
    if kernel.is_empty() {
        return false;
    }
    let asked_at = ASKED_AT.get();
    let is_due = asked_at.is_none_or(|asked_at| now.since(asked_at) >= ASK_INTERVAL);
    if is_due {
        ASKED_AT.set(Some(now));
    }
    is_due
}

/// Looks what the kernel's descriptors report now; says how many of them.
fn look(kernel: &mut [pollfd]) -> Result<c_int, Errno> {
    let count = libc::nfds_t::try_from(kernel.len()).unwrap_or(0);
    // SAFETY: the pointer is to a slice of that many.
    returned(unsafe { originals::poll(kernel.as_mut_ptr(), count, 0) })
}

/// What a thread does between two turns.
#[derive(Clone, Copy, Debug)]
enum Pause {
    Spin,
    Sleep {
        until: Option<Instant>,
        /// Whether frames end it.
        is_woken: bool,
    },
}

/// The most wakeful of what the stacks need.
fn pause(held: &mut Held, now: Instant, spins: bool) -> Pause {
    let pauses = held.each().map(|stack| pause_of(stack, now, spins));
    let nothing = Pause::Sleep {
        until: None,
        is_woken: false,
    };
    pauses.fold(nothing, |sum, pause| match (sum, pause) {
        (
            Pause::Sleep { until, is_woken },
            Pause::Sleep {
                until: other,
                is_woken: is_other_woken,
            },
        ) => Pause::Sleep {
            until: earlier(until, other),
            is_woken: is_woken | is_other_woken,
        },
        _ => Pause::Spin,
    })
}

fn pause_of(stack: &Stack, now: Instant, spins: bool) -> Pause {
    let next = stack.sockets.next_turn();
    if next.is_some_and(|next| next <= now) {
        return Pause::Spin;
    }
    let idle = now.since(stack.worked_at);
    let sleep = |until: Option<Instant>, is_woken| Pause::Sleep { until, is_woken };
    match stack.polling {
        _ if !spins => sleep(next, true),
        Polling::Spin => Pause::Spin,
        Polling::Adaptive(spin) if idle < spin => Pause::Spin,
        Polling::SleepSpin(_) if idle.is_zero() => Pause::Spin,
        Polling::Interrupt | Polling::Adaptive(_) => sleep(next, true),
        Polling::SleepSpin(pause) => sleep(earlier(next, Some(now + pause)), false),
        Polling::Rate(hz) => {
            let pause = Duration::from_secs(1) / hz.max(1);
            sleep(earlier(next, Some(now + pause)), false)
        }
    }
}

fn earlier(first: Option<Instant>, second: Option<Instant>) -> Option<Instant> {
    match (first, second) {
        (Some(first), Some(second)) => Some(first.min(second)),
        (first, second) => first.or(second),
    }
}

/// Waits for the kernel's descriptors and for what ends the sleep; says how many of the former have something to report.
fn poll(
    kernel: &mut PollList,
    ends: &[c_int],
    until: Option<Instant>,
    now: Instant,
    mask: Option<&sigset_t>,
) -> Result<c_int, Errno> {
    let own = kernel.len();
    kernel.extend(ends.iter().map(|end| pollfd {
        fd: *end,
        events: libc::POLLIN,
        revents: 0,
    }));
    let timeout = until.map(|until| {
        let left = until.since(now);
        timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        }
    });
    let timeout = timeout
        .as_ref()
        .map_or(core::ptr::null(), core::ptr::from_ref);
    let mask = mask.map_or(core::ptr::null(), core::ptr::from_ref);
    let count = libc::nfds_t::try_from(kernel.len()).unwrap_or(0);
    Whole::permit_cancellation();
    // SAFETY: the pointers are to a vector of that many, to a local or null, and to a mask that outlives the call, or null.
    let found = unsafe { originals::ppoll(kernel.as_mut_ptr(), count, timeout, mask) };
    let failed = (found == -1).then(errno);
    Whole::end_permission();
    kernel.truncate(own);
    if let Some(failed) = failed {
        return Err(failed);
    }
    let ready = kernel.iter().filter(|one| one.revents != 0).count();
    Ok(c_int::try_from(ready).unwrap_or(c_int::MAX))
}

/// All signals are blocked, until this value is dropped.
struct Blocked {
    before: sigset_t,
}

impl Blocked {
    fn all() -> Self {
        let mut all = MaybeUninit::<sigset_t>::uninit();
        let mut before = MaybeUninit::<sigset_t>::uninit();
        // SAFETY: the pointer is to room for a set, which the function fills.
        unsafe { libc::sigfillset(all.as_mut_ptr()) };
        // SAFETY: the first set is filled, the second is room for one.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
        // SAFETY: the call has filled it: it cannot fail with these arguments.
        let before = unsafe { before.assume_init() };
        Self { before }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the set is the one that was there before.
        unsafe {
            libc::pthread_sigmask(
                libc::SIG_SETMASK,
                &raw const self.before,
                core::ptr::null_mut(),
            )
        };
    }
}

/// This thread sleeps no more.
fn leave(doorbell: c_int, stacks: StackNumbers) {
    for number in stacks.iter() {
        stacks::with_stack(number, |stack| {
            stack.remove_sleeper(doorbell);
        });
        turner::call(number);
    }
    let mut count = [0_u8; 8];
    // SAFETY: the pointer is to a local of that size; the descriptor does not block.
    unsafe { originals::read(doorbell, count.as_mut_ptr().cast(), count.len()) };
}

/// How often a thread that spins asks the kernel.
const ASK_INTERVAL: Duration = Duration::from_micros(20);
