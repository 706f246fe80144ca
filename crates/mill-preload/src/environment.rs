//! The environment of programs that this one starts: what put this library into the program puts it into them, also where the
//! program has made an environment of its own (nginx's new binary after `USR2`).

use crate::borrowing;
use crate::descriptors::fresh;
use core::ffi::{CStr, c_char};
use core::ptr::null;
use mill_keeper::request::{ADDRESSES, CLUSTER, STACKS, VARIABLE, VERBOSE};
use std::ffi::CString;
use std::sync::OnceLock;

/// `NAME=value`, as they were when the process began.
static OURS: OnceLock<Vec<CString>> = OnceLock::new();

/// Remembers them: the program may empty its environment later.
pub(crate) fn begin() {
    let found = [PRELOAD, VARIABLE, ADDRESSES, STACKS, CLUSTER, VERBOSE]
        .into_iter()
        .filter_map(|name| {
            let value = std::env::var(name).ok()?;
            CString::new(format!("{name}={value}")).ok()
        });
    let found = found.collect();
    OURS.get_or_init(|| found);
}

/// Calls `run`, which runs another program, with `environment` and with those of our variables that it lacks; `lent` are connections
/// that the program has beside those of this process. Sockets that are not used yet become the kernel's first.
///
/// # Safety
/// `environment` is null or an array of strings with a null pointer at its end, as for execve(2).
pub(crate) unsafe fn with_ours<R>(
    environment: *const *const c_char,
    lent: &[String],
    run: impl FnOnce(*const *const c_char) -> R,
) -> R {
    fresh::settle_all();
    let Some(ours) = OURS.get().filter(|ours| !ours.is_empty()) else {
        return run(environment);
    };
    let connections = borrowing::described(lent);
    let connections = connections.map(|value| format!("{}={value}", borrowing::VARIABLE));
    let connections = connections.and_then(|variable| CString::new(variable).ok());
    let mut all: Vec<*const c_char> = Vec::new();
    let mut place = environment;
    while !place.is_null() {
        // SAFETY: the caller's promise: the array goes on to a null pointer.
        let entry = unsafe { place.read() };
        if entry.is_null() {
            break;
        }
        // SAFETY: the caller's promise: each is a string.
        let name = name_of(unsafe { CStr::from_ptr(entry) });
        // Those of the former program.
        if name != borrowing::VARIABLE.as_bytes() {
            all.push(entry);
        }
        // SAFETY: as above.
        place = unsafe { place.add(1) };
    }
    let theirs = all.len();
    for own in ours {
        let is_there = all.iter().take(theirs).any(|entry| {
            // SAFETY: the caller's promise: each is a string.
            let entry = unsafe { CStr::from_ptr(*entry) };
            name_of(entry) == name_of(own)
        });
        if !is_there {
            all.push(own.as_ptr());
        }
    }
    all.extend(connections.iter().map(|variable| variable.as_ptr()));
    all.push(null());
    run(all.as_ptr())
}

fn name_of(entry: &CStr) -> &[u8] {
    let bytes = entry.to_bytes();
    bytes.split(|byte| *byte == b'=').next().unwrap_or_default()
}

const PRELOAD: &str = "LD_PRELOAD";
