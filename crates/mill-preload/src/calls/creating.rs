//! Calls that make descriptors. What the library makes for itself is noted as its own, so that it is told from what other threads of
//! the program make at the same time.

use super::numbers::given;
use crate::descriptors::{fresh, own};
use crate::memory::done;
use crate::{originals, sets};
use core::ffi::{c_char, c_int, c_uint};
use mill_sockets::errno::Errno;

/// # Safety
/// As socket(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let made = match own::is_making() {
        true => None,
        false => fresh::make(domain, kind, protocol),
    };
    // SAFETY: the call takes no pointer.
    made.unwrap_or_else(|| own::note(given(unsafe { originals::socket(domain, kind, protocol) })))
}

/// # Safety
/// As socketpair(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn socketpair(
    domain: c_int,
    kind: c_int,
    protocol: c_int,
    ends: *mut c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let result = unsafe { originals::socketpair(domain, kind, protocol, ends) };
    if result == 0 {
        // SAFETY: the call has filled two numbers.
        let ends = unsafe { core::slice::from_raw_parts_mut(ends, 2) };
        for end in ends {
            *end = own::note(given(*end));
        }
    }
    result
}

/// # Safety
/// As eventfd(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn eventfd(count: c_uint, flags: c_int) -> c_int {
    // SAFETY: the call takes no pointer.
    own::note(given(unsafe { originals::eventfd(count, flags) }))
}

/// # Safety
/// As epoll_create1(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn epoll_create1(flags: c_int) -> c_int {
    // SAFETY: the call takes no pointer.
    let made = own::note(given(unsafe { originals::epoll_create1(flags) }));
    if !own::is_making() {
        sets::note_made(made);
    }
    made
}

/// # Safety
/// As epoll_create(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn epoll_create(size: c_int) -> c_int {
    if size <= 0 {
        return done(Err(Errno::INVALID));
    }
    // SAFETY: the call takes no pointer.
    unsafe { epoll_create1(0) }
}

/// # Safety
/// As timerfd_create(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn timerfd_create(clock: c_int, flags: c_int) -> c_int {
    // SAFETY: the call takes no pointer.
    own::note(given(unsafe { originals::timerfd_create(clock, flags) }))
}

/// # Safety
/// As memfd_create(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn memfd_create(name: *const c_char, flags: c_uint) -> c_int {
    // SAFETY: the caller's promise.
    own::note(given(unsafe { originals::memfd_create(name, flags) }))
}
