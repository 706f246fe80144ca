//! bind(2) and listen(2), which streams of the stack refuse, and otherwise are the kernel's.

use crate::declared;
use crate::descriptors::{self, Entry};
use crate::memory::{done, errno};
use crate::placeholder::{self, Family};
use crate::{address, kernel_options, originals, own_addresses, stacks};
use core::ffi::c_int;
use libc::{sockaddr, socklen_t};
use mill_sockets::errno::Errno;
use mill_sockets::slab::Number;

/// # Safety
/// As bind(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn bind(fd: c_int, address: *const sockaddr, len: socklen_t) -> c_int {
    match descriptors::find(fd) {
        // Once a connection is over its socket has no port any more.
        Entry::Stream(number) if !is_idle(number) => done(stacks::on(number, |stack| {
            let is_over = stack.sockets.is_over(number);
            is_over.then_some(0).ok_or(Errno::INVALID)
        })),
        Entry::Stream(number) => match leave_placeholder(fd, number) {
            // SAFETY: the caller's promise.
            Ok(()) => unsafe { bind_in_kernel(fd, address, len) },
            Err(errno) => done(Err(errno)),
        },
        Entry::Lost => done(Err(Errno::NOT_CONNECTED)),
        // SAFETY: the caller's promise.
        _ => unsafe { bind_in_kernel(fd, address, len) },
    }
}

/// # Safety
/// As bind(2).
unsafe fn bind_in_kernel(fd: c_int, address: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: the caller's promise.
    let result = unsafe { originals::bind(fd, address, len) };
    if result == 0 || errno() != Errno::ADDRESS_NOT_AVAILABLE {
        return result;
    }
    // SAFETY: the caller's promise; the kernel has read the address.
    let wanted = unsafe { address::parse(address, len) };
    match wanted.is_some_and(|wanted| own_addresses::allow(fd, wanted.ip())) {
        // SAFETY: the caller's promise.
        true => unsafe { originals::bind(fd, address, len) },
        false => done(Err(Errno::ADDRESS_NOT_AVAILABLE)),
    }
}

/// # Safety
/// As listen(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn listen(fd: c_int, backlog: c_int) -> c_int {
    match descriptors::find(fd) {
        Entry::Stream(_) => done(Err(Errno::INVALID)),
        Entry::Lost => done(Err(Errno::NOT_CONNECTED)),
        Entry::Listener(number) => {
            // SAFETY: the call takes no pointer.
            let result = unsafe { originals::listen(fd, backlog) };
            if result == 0 {
                let backlog = kernel_options::of_listener(fd).listen.backlog;
                stacks::with(number, |stack| stack.sockets.set_backlog(number, backlog));
            }
            result
        }
        _ => {
            // SAFETY: the call takes no pointer.
            let result = unsafe { originals::listen(fd, backlog) };
            if result == 0 {
                declared::note(fd);
            }
            result
        }
    }
}

/// A stream that is not connected any more is bound where a socket of the kernel is, for its next connect(2).
fn leave_placeholder(fd: c_int, number: Number) -> Result<(), Errno> {
    let (is_ipv6, waits) = stacks::on(number, |stack| {
        let options = stack.sockets.options(number)?;
        Ok((options.is_ipv6, options.waits))
    })?;
    let family = match is_ipv6 {
        false => Family::Ipv4,
        true => Family::Ipv6,
    };
    placeholder::leave(fd, family, waits)
}

fn is_idle(number: Number) -> bool {
    stacks::with(number, |stack| stack.sockets.is_idle(number)) == Some(true)
}
