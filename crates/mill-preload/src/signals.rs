//! Signals that the program handles: calls that wait learn from here that one came, without a system call.
//!
//! The program's handlers stand behind ours, which counts, and has those wait that would interrupt the library where it can't be. What sigaction(2) tells the program is what it has set. A handler that
//! was installed around the C library is not seen: calls that sleep in the kernel end for it, those that spin or are about to sleep go on.

use crate::descriptors::own;
use crate::memory::set_errno;
use crate::originals;
use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering, compiler_fence};
use libc::{sigaction as Action, sighandler_t, siginfo_t, sigset_t};
use whole::Whole;

/// Handlers that wait.
pub(crate) mod postponed;

/// What they wait for.
pub(crate) mod whole;

/// Those that end the program.
pub(crate) mod ending;

/// The program's handler of one signal.
struct Handler {
    function: AtomicUsize,
    flags: AtomicI32,
    /// The signals that are blocked while it runs, a bit each.
    mask: AtomicU64,
}

/// By signal; the kernel has 64.
static HANDLERS: [Handler; 65] = [const {
    Handler {
        function: AtomicUsize::new(0),
        flags: AtomicI32::new(0),
        mask: AtomicU64::new(0),
    }
}; 65];

impl Handler {
    /// The default action is the program's, unless another thread sets a handler just now; also after a handler that was for one signal.
    fn note_default(&self, action: &Action) {
        let was_once = self.flags.load(Ordering::Acquire) & libc::SA_RESETHAND != 0;
        if was_once || self.function.load(Ordering::Acquire) == libc::SIG_DFL {
            self.function.store(libc::SIG_DFL, Ordering::Release);
            self.flags.store(action.sa_flags, Ordering::Release);
            self.mask.store(bits(&action.sa_mask), Ordering::Release);
        }
    }

    /// What the program has set.
    fn note(&self, action: &Action) {
        self.flags.store(action.sa_flags, Ordering::Release);
        self.mask.store(bits(&action.sa_mask), Ordering::Release);
        self.function.store(action.sa_sigaction, Ordering::Release);
    }
}

/// Signals that siginterrupt(3) was called for, as bits.
static INTERRUPTING: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static HANDLED: Cell<Handled> = const { Cell::new(Handled { all: 0, ending: 0 }) };

    /// What this thread is about to wait for: an eventfd.
    static DOORBELL: Cell<Option<c_int>> = const { Cell::new(None) };
}

/// As long as it lives each signal of this thread rings its doorbell: one that comes before the thread sleeps ends the sleep.
pub(crate) struct Rings(Option<c_int>);

impl Rings {
    pub(crate) fn begin(doorbell: c_int) -> Self {
        let before = DOORBELL.replace(Some(doorbell));
        // What follows looks at signals that have come until now.
        compiler_fence(Ordering::SeqCst);
        Self(before)
    }
}

impl Drop for Rings {
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        DOORBELL.set(self.0);
    }
}

/// In a handler.
fn ring() {
    if let Some(doorbell) = DOORBELL.get() {
        let one = 1_u64.to_ne_bytes();
        // SAFETY: the bytes live through the call; an eventfd takes eight.
        unsafe { originals::write(doorbell, one.as_ptr().cast(), one.len()) };
    }
}

/// How many signals a thread has handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handled {
    all: u32,
    /// Of them, those that end calls: without `SA_RESTART`.
    ending: u32,
}

impl Handled {
    pub(crate) fn by_this_thread() -> Self {
        HANDLED.get()
    }

    /// Whether any has come since.
    pub(crate) fn is_outdated(self) -> bool {
        self.all != Self::by_this_thread().all
    }

    /// If only such have come since that let a call go on, they are taken for seen.
    pub(crate) fn go_on(&mut self) -> bool {
        let handled = Self::by_this_thread();
        let goes_on = *self != handled && self.ending == handled.ending;
        if goes_on {
            *self = handled;
        }
        goes_on
    }
}

fn handler(signal: c_int) -> Option<&'static Handler> {
    HANDLERS.get(usize::try_from(signal).ok()?)
}

extern "C" fn on_signal(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let Some(handler) = handler(signal) else {
        return;
    };
    let flags = handler.flags.load(Ordering::Acquire);
    let handled = HANDLED.get();
    HANDLED.set(Handled {
        all: handled.all.wrapping_add(1),
        ending: match flags & libc::SA_RESTART {
            0 => handled.ending.wrapping_add(1),
            _ => handled.ending,
        },
    });
    ring();
    if Whole::is_on() && postponed::add(signal, info) {
        return;
    }
    call(signal, info, context);
}

/// The signals that are blocked while a signal's handler runs.
fn blocked_by(signal: c_int) -> u64 {
    let Some(handler) = handler(signal) else {
        return 0;
    };
    let own = match handler.flags.load(Ordering::Acquire) & libc::SA_NODEFER {
        0 => 1 << ((signal - 1) & 63),
        _ => 0,
    };
    handler.mask.load(Ordering::Acquire) | own
}

/// Gives a signal that is blocked its default action, and lets it in.
pub(crate) fn let_end(signal: c_int) {
    // SAFETY: zero is valid for a structure of plain numbers, and means the default.
    let action: Action = unsafe { core::mem::zeroed() };
    // SAFETY: the pointer is to a local.
    unsafe { originals::sigaction(signal, &raw const action, core::ptr::null_mut()) };
    // SAFETY: zero is a set that the function makes an empty one.
    let mut set: sigset_t = unsafe { core::mem::zeroed() };
    // SAFETY: the pointer is to a local.
    unsafe { libc::sigemptyset(&raw mut set) };
    // SAFETY: as above.
    unsafe { libc::sigaddset(&raw mut set, signal) };
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, core::ptr::null_mut()) };
}

thread_local! {
    /// Handlers that this thread is in: the program's, and the library's own that ends the process.
    static IN_HANDLERS: Cell<u32> = const { Cell::new(0) };
}

/// Whether a handler runs on this thread.
pub(crate) fn is_in_handler() -> bool {
    IN_HANDLERS.get() > 0
}

/// Calls the program's handler of a signal, or does what is done without one.
fn call(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let function = handler(signal).map_or(0, |handler| handler.function.load(Ordering::Acquire));
    IN_HANDLERS.set(IN_HANDLERS.get() + 1);
    match function {
        libc::SIG_DFL => ending::end(signal),
        // SAFETY: the program has given this function as its handler.
        function => unsafe { call_programs(function, signal, info, context) },
    }
    IN_HANDLERS.set(IN_HANDLERS.get().saturating_sub(1));
}

/// # Safety
/// The function is a handler; one that takes less ignores the other arguments.
unsafe fn call_programs(
    function: usize,
    signal: c_int,
    info: *mut siginfo_t,
    context: *mut c_void,
) {
    let function = core::ptr::with_exposed_provenance::<c_void>(function);
    // SAFETY: the caller's promise.
    let function = unsafe {
        core::mem::transmute::<*const c_void, extern "C" fn(c_int, *mut siginfo_t, *mut c_void)>(
            function,
        )
    };
    own::not_during(|| function(signal, info, context));
}

fn before_the_programs() -> sighandler_t {
    on_signal as *const c_void as sighandler_t
}

/// Whether it is a function, and not `SIG_DFL`, `SIG_IGN` or what stands in front of the program's.
fn is_of_program(function: sighandler_t) -> bool {
    ![libc::SIG_DFL, libc::SIG_IGN, before_the_programs()].contains(&function)
}

/// A set of signals, a bit each.
fn bits(set: &sigset_t) -> u64 {
    let has = |signal: &c_int| {
        // SAFETY: the pointer is to a set.
        let has = unsafe { libc::sigismember(core::ptr::from_ref(set), *signal) };
        has == 1
    };
    (1..=64)
        .filter(has)
        .fold(0, |bits, signal| bits | 1 << (signal - 1))
}

/// # Safety
/// As sigaction(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn sigaction(signal: c_int, new: *const Action, old: *mut Action) -> c_int {
    let Some(handler) = handler(signal) else {
        // SAFETY: the caller's promise.
        return unsafe { originals::sigaction(signal, new, old) };
    };
    let before = (
        handler.function.load(Ordering::Acquire),
        handler.flags.load(Ordering::Acquire),
    );
    // SAFETY: null, or the caller's promise.
    let mut wrapped = unsafe { new.as_ref() }.copied();
    if let Some(action) = &mut wrapped {
        let is_default = action.sa_sigaction == libc::SIG_DFL;
        if is_default || is_of_program(action.sa_sigaction) {
            handler.note(action);
        }
        if (is_default && ending::is_watched(signal)) || is_of_program(action.sa_sigaction) {
            action.sa_sigaction = before_the_programs();
            action.sa_flags = match is_default {
                true => libc::SA_SIGINFO,
                false => action.sa_flags | libc::SA_SIGINFO,
            };
        }
    }
    let wrapped = wrapped
        .as_ref()
        .map_or(core::ptr::null(), core::ptr::from_ref);
    // SAFETY: the first pointer is null or to a local, the second is the caller's promise.
    let result = unsafe { originals::sigaction(signal, wrapped, old) };
    if result == -1 {
        handler.function.store(before.0, Ordering::Release);
        handler.flags.store(before.1, Ordering::Release);
        return result;
    }
    // SAFETY: null, or the kernel has filled it.
    if let Some(old) = unsafe { old.as_mut() }
        && old.sa_sigaction == before_the_programs()
    {
        old.sa_sigaction = before.0;
        match before.0 {
            libc::SIG_DFL => old.sa_flags = before.1,
            _ => old.sa_flags &= !libc::SA_SIGINFO | before.1,
        }
    }
    result
}

/// # Safety
/// As sigaction(2), whose other name this is.
#[unsafe(no_mangle)]
unsafe extern "C" fn __sigaction(signal: c_int, new: *const Action, old: *mut Action) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { sigaction(signal, new, old) }
}

/// # Safety
/// As signal(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn signal(signal: c_int, function: sighandler_t) -> sighandler_t {
    let flags = match is_interrupting(signal) {
        true => 0,
        false => libc::SA_RESTART,
    };
    // SAFETY: the caller's promise.
    unsafe { install(signal, function, flags) }
}

/// # Safety
/// As signal(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn bsd_signal(number: c_int, function: sighandler_t) -> sighandler_t {
    // SAFETY: the caller's promise.
    unsafe { signal(number, function) }
}

/// # Safety
/// As sysv_signal(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn __sysv_signal(signal: c_int, function: sighandler_t) -> sighandler_t {
    // SAFETY: the caller's promise.
    unsafe { install(signal, function, libc::SA_RESETHAND | libc::SA_NODEFER) }
}

/// # Safety
/// As sysv_signal(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn sysv_signal(signal: c_int, function: sighandler_t) -> sighandler_t {
    // SAFETY: the caller's promise.
    unsafe { __sysv_signal(signal, function) }
}

/// # Safety
/// As siginterrupt(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn siginterrupt(signal: c_int, flag: c_int) -> c_int {
    let bit = 1_u64 << (signal & 63);
    // SAFETY: zero is valid for a structure of plain numbers.
    let mut action: Action = unsafe { core::mem::zeroed() };
    // SAFETY: the second pointer is to a local.
    if unsafe { sigaction(signal, core::ptr::null(), &raw mut action) } == -1 {
        return -1;
    }
    if flag == 0 {
        INTERRUPTING.fetch_and(!bit, Ordering::Relaxed);
        action.sa_flags |= libc::SA_RESTART;
    } else {
        INTERRUPTING.fetch_or(bit, Ordering::Relaxed);
        action.sa_flags &= !libc::SA_RESTART;
    }
    // SAFETY: the first pointer is to a local.
    unsafe { sigaction(signal, &raw const action, core::ptr::null_mut()) }
}

fn is_interrupting(signal: c_int) -> bool {
    INTERRUPTING.load(Ordering::Relaxed) & 1 << (signal & 63) != 0
}

/// # Safety
/// The handler is one, as signal(2) says.
unsafe fn install(signal: c_int, function: sighandler_t, flags: c_int) -> sighandler_t {
    if function == libc::SIG_ERR {
        set_errno(libc::EINVAL);
        return libc::SIG_ERR;
    }
    // SAFETY: zero is valid for a structure of plain numbers: no signal is blocked beside its own.
    let mut new: Action = unsafe { core::mem::zeroed() };
    new.sa_sigaction = function;
    new.sa_flags = flags;
    // SAFETY: as above.
    let mut old: Action = unsafe { core::mem::zeroed() };
    // SAFETY: the pointers are to locals.
    match unsafe { sigaction(signal, &raw const new, &raw mut old) } {
        -1 => libc::SIG_ERR,
        _ => old.sa_sigaction,
    }
}
