//! execve(2) and its kin: programs that this one starts have the library as well.
//!
//! execl(3) and execle(3) take lists of arguments, which no function of ours can: what they start has the environment that the
//! program gives it.

use crate::descriptors::{self, Entry, own};
use crate::stack::{Stack, now};
use crate::{environment, keeper, noting, originals, spawning, stacks};
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};
use libc::pid_t;
use mill_sockets::slab::Number;

type Strings = *const *const c_char;

unsafe extern "C" {
    /// The process's environment, as the program has it (environ(7)).
    #[link_name = "environ"]
    static ENVIRONMENT: AtomicPtr<*const c_char>;
}

fn present() -> Strings {
    // SAFETY: the C library's variable is a pointer, which lies where one of ours would.
    let environment = unsafe { &ENVIRONMENT };
    environment.load(Ordering::Relaxed)
}

/// Runs a program in place of this one, whose connections end: their peers hear of it from the keeper. What waits at listeners that the
/// program has waits for it there, as in the kernel.
///
/// # Safety
/// As [`environment::with_ours`].
unsafe fn replace_by(strings: Strings, run: impl FnOnce(Strings) -> c_int) -> c_int {
    let left = leave_waiting();
    noting::note_all();
    let run = |strings| own::with_limit(|| run(strings));
    // SAFETY: the caller's promise.
    let failed = unsafe { environment::with_ours(strings, &[], run) };
    for listener in left {
        stacks::with(listener, Stack::fetch);
    }
    failed
}

/// The listeners from which it has taken what waits.
fn leave_waiting() -> Vec<Number> {
    // The last segments of handshakes may lie in the device.
    for number in stacks::made() {
        stacks::with_stack(number, |stack| stack.turn(now()));
    }
    let mut left = Vec::new();
    for (descriptor, entry) in descriptors::all() {
        let Entry::Listener(number) = entry else {
            continue;
        };
        // SAFETY: the command takes no argument.
        let flags = unsafe { originals::fcntl(descriptor, libc::F_GETFD, 0) };
        if flags & libc::FD_CLOEXEC == 0
            && stacks::with(number, |stack| stack.leave_listening(number)) == Some(true)
        {
            left.push(number);
        }
    }
    left
}

/// # Safety
/// As execve(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn execve(path: *const c_char, arguments: Strings, strings: Strings) -> c_int {
    // SAFETY: the caller's promise.
    let run = |strings| unsafe { originals::execve(path, arguments, strings) };
    // SAFETY: the caller's promise.
    unsafe { replace_by(strings, run) }
}

/// # Safety
/// As execv(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn execv(path: *const c_char, arguments: Strings) -> c_int {
    // SAFETY: the caller's promise; the environment is the process's.
    unsafe { execve(path, arguments, present()) }
}

/// # Safety
/// As execvpe(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn execvpe(file: *const c_char, arguments: Strings, strings: Strings) -> c_int {
    // SAFETY: the caller's promise.
    let run = |strings| unsafe { originals::execvpe(file, arguments, strings) };
    // SAFETY: the caller's promise.
    unsafe { replace_by(strings, run) }
}

/// # Safety
/// As execvp(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn execvp(file: *const c_char, arguments: Strings) -> c_int {
    // SAFETY: the caller's promise; the environment is the process's.
    unsafe { execvpe(file, arguments, present()) }
}

/// # Safety
/// As fexecve(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn fexecve(fd: c_int, arguments: Strings, strings: Strings) -> c_int {
    // SAFETY: the caller's promise.
    let run = |strings| unsafe { originals::fexecve(fd, arguments, strings) };
    // SAFETY: the caller's promise.
    unsafe { replace_by(strings, run) }
}

/// # Safety
/// As posix_spawn(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn posix_spawn(
    process: *mut pid_t,
    path: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    arguments: Strings,
    strings: Strings,
) -> c_int {
    // SAFETY: the caller's promise.
    let run = |strings| unsafe {
        originals::posix_spawn(process, path, actions, attributes, arguments, strings)
    };
    let run = |strings| own::with_limit(|| run(strings));
    // SAFETY: the caller's promise.
    spawning::hand_over(actions, |lent| unsafe {
        environment::with_ours(strings, lent, run)
    })
}

/// # Safety
/// As posix_spawnp(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn posix_spawnp(
    process: *mut pid_t,
    file: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    arguments: Strings,
    strings: Strings,
) -> c_int {
    // SAFETY: the caller's promise.
    let run = |strings| unsafe {
        originals::posix_spawnp(process, file, actions, attributes, arguments, strings)
    };
    let run = |strings| own::with_limit(|| run(strings));
    // SAFETY: the caller's promise.
    spawning::hand_over(actions, |lent| unsafe {
        environment::with_ours(strings, lent, run)
    })
}

/// # Safety
/// As posix_spawn_file_actions_init(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn posix_spawn_file_actions_init(actions: *mut c_void) -> c_int {
    spawning::forget(actions);
    // SAFETY: the caller's promise.
    unsafe { originals::posix_spawn_file_actions_init(actions) }
}

/// # Safety
/// As posix_spawn_file_actions_destroy(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn posix_spawn_file_actions_destroy(actions: *mut c_void) -> c_int {
    spawning::forget(actions);
    // SAFETY: the caller's promise.
    unsafe { originals::posix_spawn_file_actions_destroy(actions) }
}

/// # Safety
/// As posix_spawn_file_actions_adddup2(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn posix_spawn_file_actions_adddup2(
    actions: *mut c_void,
    fd: c_int,
    new_fd: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let result = unsafe { originals::posix_spawn_file_actions_adddup2(actions, fd, new_fd) };
    if result == 0 {
        spawning::note(actions, fd, new_fd);
    }
    result
}

/// The library's socket to its keeper stays open, as for a program that closes all that it knows.
///
/// # Safety
/// As posix_spawn_file_actions_addclose(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn posix_spawn_file_actions_addclose(actions: *mut c_void, fd: c_int) -> c_int {
    if keeper::number() == Some(fd) {
        return 0;
    }
    // SAFETY: the caller's promise.
    unsafe { originals::posix_spawn_file_actions_addclose(actions, fd) }
}

/// # Safety
/// As posix_spawn_file_actions_addclosefrom_np(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn posix_spawn_file_actions_addclosefrom_np(
    actions: *mut c_void,
    from: c_int,
) -> c_int {
    let mut from = from;
    if let Some(keeper) = keeper::number().filter(|keeper| (0..=*keeper).contains(&from)) {
        for fd in from..keeper {
            // SAFETY: the caller's promise.
            match unsafe { originals::posix_spawn_file_actions_addclose(actions, fd) } {
                0 => {}
                // The process may have fewer descriptors than it has: those above stay open.
                libc::EBADF => return 0,
                result => return result,
            }
        }
        from = keeper + 1;
    }
    let is_moved = keeper::number().is_some_and(|keeper| from == keeper + 1);
    // SAFETY: the caller's promise.
    match unsafe { originals::posix_spawn_file_actions_addclosefrom_np(actions, from) } {
        // An older C library.
        -1 => libc::ENOSYS,
        libc::EBADF if is_moved => 0,
        result => result,
    }
}
