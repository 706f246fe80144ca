//! Signals that have come to a thread where it can't be interrupted (`whole.rs`), whose handlers wait until it can.
//!
//! A handler may do anything: fork(2) (PostgreSQL's postmaster up to version 15), use sockets, or not come back at all (siglongjmp(3)). In
//! the midst of a call it would find the locks taken by its own thread. What waits is run as the kernel would do it: with the
//! signals blocked that the handler wants blocked.

use crate::memory::{errno, set_errno};
use core::cell::{Cell, UnsafeCell};
use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicI32, Ordering};
use libc::{siginfo_t, sigset_t, ucontext_t};

thread_local! {
    static PLACES: [Place; COUNT] = const { [const { Place::new() }; COUNT] };

    /// Whether any waits.
    static HAS_ANY: Cell<bool> = const { Cell::new(false) };
}

/// A signal that waits.
struct Place {
    /// Its number; [`VACANT`], or [`CLAIMED`] while a handler writes what belongs to it.
    signal: AtomicI32,
    info: UnsafeCell<MaybeUninit<siginfo_t>>,
}

const VACANT: c_int = 0;
const CLAIMED: c_int = -1;

/// More than wait at a time for a few microseconds; threads with small stacks have room for them.
const COUNT: usize = 8;

impl Place {
    const fn new() -> Self {
        Self {
            signal: AtomicI32::new(VACANT),
            info: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Takes the place; `false` if it is taken.
    fn claim(&self) -> bool {
        let (from, to) = (VACANT, CLAIMED);
        let claimed = self
            .signal
            .compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
        claimed.is_ok()
    }
}

/// The first of those of which several can wait.
const REAL_TIME_LEAST: c_int = 32;

/// Faults can't wait: what has caused them would go on.
const FAULTS: [c_int; 7] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGTRAP,
    libc::SIGSYS,
    libc::SIGABRT,
];

/// Has a signal wait, in a handler of this thread; `false` if it can't. One that waits already is one, as in the kernel, but for
/// real-time signals (signal(7)).
pub(super) fn add(signal: c_int, info: *const siginfo_t) -> bool {
    if FAULTS.contains(&signal) {
        return false;
    }
    PLACES.with(|places| {
        if places
            .iter()
            .any(|place| place.signal.load(Ordering::Relaxed) == signal)
            && signal < REAL_TIME_LEAST
        {
            return true;
        }
        let Some(place) = places.iter().find(|place| place.claim()) else {
            return false;
        };
        // SAFETY: the kernel, or what calls its handler, has given it.
        let info = unsafe { info.read() };
        // SAFETY: the place is claimed by this call, which another handler of the thread may interrupt but not join.
        unsafe { place.info.get().write(MaybeUninit::new(info)) };
        place.signal.store(signal, Ordering::Release);
        HAS_ANY.set(true);
        true
    })
}

/// In a child after fork(2): what waits is its parent's.
pub(crate) fn forget() {
    PLACES.with(|places| {
        for place in places {
            place.signal.store(VACANT, Ordering::Relaxed);
        }
    });
    HAS_ANY.set(false);
}

/// Runs what waits, by a thread that may be interrupted.
#[inline]
pub(crate) fn run() {
    if HAS_ANY.get() {
        run_all();
    }
}

#[cold]
fn run_all() {
    let errno = errno();
    // A handler may not come back, and one that uses sockets comes here again: for those that it does not block.
    while let Some((signal, mut info)) = take() {
        let before = block(super::blocked_by(signal));
        let mut context = MaybeUninit::<ucontext_t>::zeroed();
        // SAFETY: the pointer is to room for one.
        unsafe { libc::getcontext(context.as_mut_ptr()) };
        super::call(signal, &raw mut info, context.as_mut_ptr().cast());
        // SAFETY: the set is the one that was there before.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, core::ptr::null_mut())
        };
    }
    set_errno(errno.0);
}

/// One that waits and that the thread does not block now.
fn take() -> Option<(c_int, siginfo_t)> {
    let mut blocked = MaybeUninit::<sigset_t>::uninit();
    // SAFETY: the second pointer is to room for a set.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, core::ptr::null(), blocked.as_mut_ptr()) };
    // SAFETY: the call has filled it: it cannot fail with these arguments.
    let blocked = super::bits(&unsafe { blocked.assume_init() });
    PLACES.with(|places| {
        let waiting = |place: &&Place| place.signal.load(Ordering::Acquire) > VACANT;
        let is_open = |place: &&Place| {
            let bit = place.signal.load(Ordering::Relaxed) - 1;
            blocked & 1 << (bit & 63) == 0
        };
        let place = places.iter().filter(waiting).find(is_open)?;
        // Those that are blocked go on to wait.
        HAS_ANY.set(places.iter().filter(waiting).count() > 1);
        // SAFETY: the place is another one's only once its number is vacant.
        let info = unsafe { place.info.get().read() };
        // SAFETY: it was written before the number was.
        let info = unsafe { info.assume_init() };
        Some((place.signal.swap(VACANT, Ordering::Release), info))
    })
}

/// Blocks these signals; returns what was blocked before.
fn block(signals: u64) -> sigset_t {
    let mut set = MaybeUninit::<sigset_t>::uninit();
    let mut before = MaybeUninit::<sigset_t>::uninit();
    // SAFETY: the pointer is to room for a set, which the function fills.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    for signal in (1..=64).filter(|signal| signals & 1 << (signal - 1) != 0) {
        // SAFETY: the set is filled; numbers that it does not take are refused.
        unsafe { libc::sigaddset(set.as_mut_ptr(), signal) };
    }
    // SAFETY: the first set is filled, the second is room for one.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), before.as_mut_ptr()) };
    // SAFETY: the call has filled it: it cannot fail with these arguments.
    unsafe { before.assume_init() }
}
