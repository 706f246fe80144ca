//! Calls beside fork(3) by which a process begins as a copy of this one. The C library runs no handlers for them (pthread_atfork(3)), so
//! the child forgets the stacks of its parent here.
//!
//! A child that shares this process's memory (`CLONE_VM`) or descriptors is none of them: it goes on with its sockets as a thread does.

use super::numbers;
use crate::memory::values;
use crate::signals::whole::Whole;
use crate::{originals, process, vforked};
use core::ffi::{c_int, c_long, c_void};
use core::ptr::with_exposed_provenance;

/// Handlers of signals wait meanwhile: with more than one thread, of which the library is one, the C library takes a lock of its own around
/// the handlers of pthread_atfork(3), for which one that forks would wait for ever.
///
/// # Safety
/// As fork(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn fork() -> c_int {
    let _whole = Whole::begin();
    // SAFETY: the caller's promise.
    unsafe { originals::fork() }
}

/// As fork(2), for which the parent waits: a child that shares its memory would close its sockets.
///
/// # Safety
/// As vfork(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn vfork() -> c_int {
    // SAFETY: the child has memory of its own, and runs what the program has it run.
    vforked::wait(|| unsafe { fork() })
}

/// As daemon(3), whose first process leaves its connections to the second one as any that ends by _exit(2).
///
/// # Safety
/// As daemon(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn daemon(keeps_directory: c_int, keeps_streams: c_int) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { fork() } {
        -1 => return -1,
        0 => {}
        // SAFETY: the first process ends here.
        _ => unsafe { process::_exit(0) },
    }
    // SAFETY: the call takes nothing.
    if unsafe { libc::setsid() } == -1 {
        return -1;
    }
    if keeps_directory == 0 {
        // SAFETY: the path is NUL-terminated.
        unsafe { libc::chdir(c"/".as_ptr()) };
    }
    match keeps_streams {
        0 => leave_streams(),
        _ => 0,
    }
}

/// Makes `/dev/null` of the standard streams.
fn leave_streams() -> c_int {
    // SAFETY: the path is NUL-terminated.
    let nothing = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) };
    if nothing == -1 {
        return -1;
    }
    for stream in 0..=2 {
        // SAFETY: the call takes numbers.
        unsafe { numbers::dup2(nothing, stream) };
    }
    if nothing > 2 {
        // SAFETY: as above.
        unsafe { numbers::close(nothing) };
    }
    0
}

/// # Safety
/// As _Fork(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn _Fork() -> c_int {
    // SAFETY: the caller's promise.
    process::forking(|| unsafe { originals::_Fork() })
}

/// What a child begins with.
type Run = extern "C" fn(*mut c_void) -> c_int;

/// The arguments behind the fourth are numbers and pointers, if there are any.
///
/// # Safety
/// As clone(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn clone(
    run: Run,
    stack: *mut c_void,
    flags: c_int,
    argument: *mut c_void,
    parent_id: usize,
    storage: usize,
    child_id: usize,
) -> c_int {
    let clone = |run: Run, argument| {
        // SAFETY: the caller's promise.
        unsafe { originals::clone(run, stack, flags, argument, parent_id, storage, child_id) }
    };
    if !is_copy(u64::from(flags.cast_unsigned())) {
        return clone(run, argument);
    }
    let mut beginning = Beginning { run, argument };
    process::forking(|| clone(begin, (&raw mut beginning).cast()))
}

struct Beginning {
    run: Run,
    argument: *mut c_void,
}

/// In the child.
extern "C" fn begin(beginning: *mut c_void) -> c_int {
    process::in_child();
    // SAFETY: the child has a copy of the caller's stack, in which this lies.
    let Beginning { run, argument } = unsafe { beginning.cast::<Beginning>().read() };
    let status = run(argument);
    // SAFETY: the child ends with what it has run.
    unsafe { process::_exit(status) }
}

/// Whether these flags of clone(2) make a process of its own, with memory, descriptors and thread-local storage as fork(2) has it.
const fn is_copy(flags: u64) -> bool {
    let shared = libc::CLONE_VM | libc::CLONE_FILES | libc::CLONE_SETTLS;
    flags & shared.cast_unsigned() as u64 == 0
}

/// The same by number, where the child goes on behind the call, on a copy of the caller's stack.
///
/// # Safety
/// As the call of this number.
pub(super) unsafe fn by_number(number: c_long, [a, b, c, d, e, f]: [usize; 6]) -> Option<c_long> {
    let is_copy = match number {
        libc::SYS_fork | libc::SYS_vfork => true,
        libc::SYS_clone => b == 0 && is_copy(a as u64),
        libc::SYS_clone3 => {
            let arguments = with_exposed_provenance::<u64>(a);
            // SAFETY: the caller's promise.
            let arguments = unsafe { values(arguments, b / size_of::<u64>()) };
            // The first is flags, the sixth a stack (`struct clone_args`).
            let is_copy = arguments.first().is_some_and(|flags| is_copy(*flags));
            is_copy && arguments.get(5) == Some(&0)
        }
        _ => return None,
    };
    let fork = |number| {
        // SAFETY: the caller's promise.
        process::forking(|| unsafe { originals::syscall(number, a, b, c, d, e, f) })
    };
    is_copy.then(|| match number {
        libc::SYS_vfork => vforked::wait(|| fork(libc::SYS_fork)),
        number => fork(number),
    })
}
