//! Which signals' handlers have run, so that a wait knows whether one has ended it.
//!
//! The program's handlers are called by one of this library, which counts them for the thread: a handler that ran between a look
//! at the sockets and the sleep ends the wait all the same, and `SA_RESTART` has its meaning. signal(2) and sigaction(2)
//! tell the program of its own handlers only.

use crate::memory::{done, returned, set_errno};
use crate::originals;
use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use libc::{SA_RESTART, SA_SIGINFO, sighandler_t, siginfo_t};

/// Numbers of signals, and one more.
const COUNT: usize = 65;

/// The program's handlers, 0 where there is none, and their flags.
static HANDLERS: [AtomicUsize; COUNT] = [const { AtomicUsize::new(0) }; COUNT];
static FLAGS: [AtomicI32; COUNT] = [const { AtomicI32::new(0) }; COUNT];

thread_local! {
    /// Handlers that this thread has run: those that end a call, and those after which it is restarted.
    static RUN: Cell<[u32; 2]> = const { Cell::new([0; 2]) };
}

/// What had run when a call began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before([u32; 2]);

impl Before {
    pub(crate) fn now() -> Self {
        Self(RUN.get())
    }

    pub(crate) fn has_run(self) -> bool {
        RUN.get() != self.0
    }

    /// Whether only such handlers have run since that let a call go on.
    pub(crate) fn lets_go_on(self) -> bool {
        let [ends, _] = RUN.get();
        self.has_run() && ends == self.0[0]
    }
}

extern "C" fn on_signal(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let Some((handler, flags)) = of(signal) else {
        return;
    };
    let (handler, flags) = (
        handler.load(Ordering::Acquire),
        flags.load(Ordering::Acquire),
    );
    let [ends, goes_on] = RUN.get();
    RUN.set(match flags & SA_RESTART {
        0 => [ends.wrapping_add(1), goes_on],
        _ => [ends, goes_on.wrapping_add(1)],
    });
    if handler == 0 {
        return;
    }
    if flags & SA_SIGINFO != 0 {
        // SAFETY: the program gave it as a handler of this kind.
        let handler = unsafe {
            core::mem::transmute::<usize, extern "C" fn(c_int, *mut siginfo_t, *mut c_void)>(
                handler,
            )
        };
        handler(signal, info, context);
    } else {
        // SAFETY: the program gave it as a handler of this kind.
        let handler = unsafe { core::mem::transmute::<usize, extern "C" fn(c_int)>(handler) };
        handler(signal);
    }
}

fn of(signal: c_int) -> Option<(&'static AtomicUsize, &'static AtomicI32)> {
    let index = usize::try_from(signal).ok()?;
    Some((HANDLERS.get(index)?, FLAGS.get(index)?))
}

fn ours() -> usize {
    (on_signal as extern "C" fn(c_int, *mut siginfo_t, *mut c_void)) as usize
}

/// # Safety
/// As sigaction(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn sigaction(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    let Some((handler, flags)) = of(signal) else {
        // SAFETY: the caller's promise.
        return unsafe { originals::sigaction(signal, new, old) };
    };
    let before = (
        handler.load(Ordering::Acquire),
        flags.load(Ordering::Acquire),
    );
    // SAFETY: the caller's promise.
    let new = unsafe { new.as_ref() };
    let mut installed = new.copied();
    if let Some(action) = &mut installed
        && !matches!(action.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN)
    {
        handler.store(action.sa_sigaction, Ordering::Release);
        flags.store(action.sa_flags, Ordering::Release);
        action.sa_sigaction = ours();
        action.sa_flags |= SA_SIGINFO;
    }
    let installed = installed
        .as_ref()
        .map_or(core::ptr::null(), core::ptr::from_ref);
    // SAFETY: the caller's promise; the first pointer is null or to a local.
    let result = unsafe { originals::sigaction(signal, installed, old) };
    if result == -1 {
        handler.store(before.0, Ordering::Release);
        flags.store(before.1, Ordering::Release);
        return result;
    }
    // SAFETY: the caller's promise.
    if let Some(old) = unsafe { old.as_mut() }
        && old.sa_sigaction == ours()
    {
        old.sa_sigaction = before.0;
        old.sa_flags = (old.sa_flags & !SA_SIGINFO) | (before.1 & SA_SIGINFO);
    }
    result
}

/// # Safety
/// As signal(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn signal(signal: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: the caller's promise.
    unsafe { install(signal, handler, SA_RESTART) }
}

/// # Safety
/// As signal(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn bsd_signal(signal: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: the caller's promise.
    unsafe { install(signal, handler, SA_RESTART) }
}

/// # Safety
/// As sysv_signal(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn __sysv_signal(signal: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: the caller's promise.
    unsafe { install(signal, handler, libc::SA_RESETHAND | libc::SA_NODEFER) }
}

/// # Safety
/// As sysv_signal(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn sysv_signal(signal: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: the caller's promise.
    unsafe { __sysv_signal(signal, handler) }
}

/// # Safety
/// As signal(2).
unsafe fn install(signal: c_int, handler: sighandler_t, flags: c_int) -> sighandler_t {
    if handler == libc::SIG_ERR {
        set_errno(libc::EINVAL);
        return libc::SIG_ERR;
    }
    // SAFETY: all zeros are an action: the default one, without flags.
    let mut action = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
    action.sa_sigaction = handler;
    action.sa_flags = flags;
    let mut old = action;
    // SAFETY: the pointers are to locals; the handler is the caller's promise.
    match unsafe { sigaction(signal, &raw const action, &raw mut old) } {
        0 => old.sa_sigaction,
        _ => libc::SIG_ERR,
    }
}

/// # Safety
/// As siginterrupt(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn siginterrupt(signal: c_int, ends: c_int) -> c_int {
    // SAFETY: all zeros are an action: the default one, without flags.
    let mut action = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
    // SAFETY: the pointer is to a local.
    let asked = returned(unsafe { sigaction(signal, core::ptr::null(), &raw mut action) });
    if let Err(errno) = asked {
        return done(Err(errno));
    }
    match ends {
        0 => action.sa_flags |= SA_RESTART,
        _ => action.sa_flags &= !SA_RESTART,
    }
    // SAFETY: the pointer is to a local; the handler was there before.
    unsafe { sigaction(signal, &raw const action, core::ptr::null_mut()) }
}
