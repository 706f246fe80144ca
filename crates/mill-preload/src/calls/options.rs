//! Options.

use crate::descriptors::fresh::{self, Fresh};
use crate::descriptors::{self, Entry};
use crate::memory::{done, input, output, places};
use crate::{borrowing, kernel_options, originals, refused_options, stacks};
use core::ffi::{c_int, c_void};
use libc::socklen_t;
use mill_sockets::errno::Errno;
use mill_sockets::slab::Number;

/// # Safety
/// As setsockopt(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn setsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    let has_len = c_int::try_from(len).is_ok();
    // SAFETY: the caller's promise.
    let bytes = || unsafe { input(value, len as usize) };
    if let Entry::Fresh(fresh) = descriptors::peek(fd)
        && (level, name) == (libc::IPPROTO_TCP, libc::TCP_NODELAY)
        && has_len
        && !value.is_null()
        && let Some(number) = bytes().first_chunk()
    {
        let nodelay = c_int::from_ne_bytes(*number) != 0;
        if fresh::change(fd, fresh, Fresh { nodelay, ..fresh }) {
            return 0;
        }
    }
    match descriptors::find(fd) {
        Entry::Stream(_) if !has_len => done(Err(Errno::INVALID)),
        Entry::Stream(_) if value.is_null() && len as usize >= size_of::<c_int>() => {
            done(Err(Errno::FAULT))
        }
        Entry::Stream(number) => done(match set(number, level, name, bytes()) {
            Err(Errno::NO_OPTION) => refused_options::of_stream(level, name),
            result => result,
        }),
        Entry::Listener(number) => {
            // SAFETY: the caller's promise.
            let result = unsafe { originals::setsockopt(fd, level, name, value, len) };
            if result == 0 {
                let is_taken = set(number, level, name, bytes()).is_ok();
                if !is_taken {
                    refused_options::of_listener(level, name);
                }
            }
            result
        }
        Entry::Lost => done(Err(Errno::NOT_CONNECTED)),
        Entry::Borrowed(place) if borrowing::has_option(level, name) => {
            done(match borrowing::set(place, level, name, bytes()) {
                Err(Errno::NO_OPTION) => refused_options::of_stream(level, name),
                result => result,
            })
        }
        _ => {
            kernel_options::on_set(level, name);
            // SAFETY: the caller's promise.
            let result = unsafe { originals::setsockopt(fd, level, name, value, len) };
            if result == 0 {
                refused_options::before(fd, level, name);
            }
            result
        }
    }
}

fn set(number: Number, level: c_int, name: c_int, value: &[u8]) -> Result<c_int, Errno> {
    stacks::on(number, |stack| {
        if (level, name) == INCOMING_CPU {
            // As on Linux the next segment decides; a number is wanted all the same.
            let number: Option<&[u8; size_of::<c_int>()]> = value.first_chunk();
            return number.map(|_| 0).ok_or(Errno::INVALID);
        }
        stack.sockets.set_option(number, level, name, value)?;
        if ENDING_WAITS.contains(&(level, name)) {
            stack.wake();
        }
        // Programs push what waits by an option. Where calls do not wait, the next turn sends it.
        if level == libc::IPPROTO_TCP && stack.sockets.options(number)?.waits {
            stack.sockets.flush();
        }
        Ok(0)
    })
}

/// By these a reader or writer that sleeps in another thread may have what it waits for.
const ENDING_WAITS: [(c_int, c_int); 3] = [
    (libc::SOL_SOCKET, libc::SO_RCVLOWAT),
    (libc::SOL_SOCKET, libc::SO_SNDBUF),
    (libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT),
];

/// Which processor brought the last segment.
const INCOMING_CPU: (c_int, c_int) = (libc::SOL_SOCKET, libc::SO_INCOMING_CPU);

/// The value of an option of the stack.
fn get(number: Number, level: c_int, name: c_int) -> Result<Vec<u8>, Errno> {
    stacks::on(number, |stack| {
        if (level, name) != INCOMING_CPU {
            return stack.sockets.option(number, level, name);
        }
        // The thread that calls turns the stack.
        // SAFETY: it takes nothing.
        let cpu = unsafe { libc::sched_getcpu() };
        Ok(cpu.to_ne_bytes().to_vec())
    })
}

/// # Safety
/// As getsockopt(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    let entry = descriptors::find(fd);
    let is_ours = match entry {
        Entry::Stream(_) => true,
        Entry::Borrowed(_) => borrowing::has_option(level, name),
        _ => false,
    };
    if !is_ours {
        // SAFETY: the caller's promise.
        return unsafe { originals::getsockopt(fd, level, name, value, len) };
    }
    // SAFETY: the caller's promise.
    let [len] = (unsafe { places(len, 1) }) else {
        return done(Err(Errno::FAULT));
    };
    let Ok(room) = c_int::try_from(*len) else {
        return done(Err(Errno::INVALID));
    };
    if value.is_null() && room > 0 {
        return done(Err(Errno::FAULT));
    }
    let found = match entry {
        Entry::Stream(number) => get(number, level, name),
        entry => borrowing::option(entry, level, name),
    };
    done(found.map(|found| {
        // SAFETY: the caller's promise.
        let into = unsafe { output(value, *len as usize) };
        let count = match into.len() {
            // Options of IPv4 are bytes for those that have no room for a number.
            1..4 if level == libc::IPPROTO_IP => 1,
            room => found.len().min(room),
        };
        into[..count].copy_from_slice(&found[..count]);
        *len = socklen_t::try_from(count).unwrap_or(0);
        0
    }))
}
