//! What the descriptors of the stack's sockets are duplicates of: a socket of the kernel for each address family, which does nothing.
//! All of them are that one socket, so a call that would change it needs a socket of the descriptor's own first.

use crate::descriptors::own;
use crate::lock::{Lock, Locked};
use crate::memory::returned;
use crate::{kernel_options, originals};
use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, Ordering};
use mill_sockets::errno::Errno;
use std::os::fd::{FromRawFd, OwnedFd};

/// Of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Ipv4,
    Ipv6,
}

impl Family {
    /// `None` for those that TCP does not have.
    #[inline]
    pub(crate) const fn of(domain: c_int) -> Option<Self> {
        match domain {
            libc::AF_INET => Some(Self::Ipv4),
            libc::AF_INET6 => Some(Self::Ipv6),
            _ => None,
        }
    }

    pub(crate) const fn domain(self) -> c_int {
        match self {
            Self::Ipv4 => libc::AF_INET,
            Self::Ipv6 => libc::AF_INET6,
        }
    }
}

/// Their descriptors, made when they are first needed. A child of fork(2) has them, too.
static IPV4: AtomicI32 = AtomicI32::new(-1);
static IPV6: AtomicI32 = AtomicI32::new(-1);

/// A descriptor, the lowest number that is free.
pub(crate) fn duplicate(family: Family, is_close_on_exec: bool) -> Result<c_int, Errno> {
    let place = match family {
        Family::Ipv4 => &IPV4,
        Family::Ipv6 => &IPV6,
    };
    let placeholder = match place.load(Ordering::Acquire) {
        -1 => make(place, family)?,
        made => made,
    };
    let command = match is_close_on_exec {
        true => libc::F_DUPFD_CLOEXEC,
        false => libc::F_DUPFD,
    };
    // SAFETY: the command takes a number.
    returned(unsafe { originals::fcntl(placeholder, command, 0) })
}

/// A descriptor in reserve: a program that has as many as it may have can still use all of its sockets.
static SPARE: Lock<Option<c_int>> = Lock::new(None);

/// For fork(2).
pub(crate) fn lock() -> Locked {
    Box::new(SPARE.lock())
}

/// A socket of the kernel, to be put in a placeholder's place.
pub(crate) fn socket(family: Family, waits: bool) -> Result<c_int, Errno> {
    let kind = match waits {
        true => libc::SOCK_STREAM | libc::SOCK_CLOEXEC,
        false => libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
    };
    // SAFETY: the call takes no pointer.
    let make = || returned(unsafe { originals::socket(family.domain(), kind, 0) });
    let made = make();
    if made != Err(Errno::NO_DESCRIPTOR) {
        return made;
    }
    let spare = SPARE.lock().take();
    let spare = spare.ok_or(Errno::NO_DESCRIPTOR)?;
    crate::descriptors::set(spare, crate::descriptors::Entry::Kernel);
    // SAFETY: the number is this library's, and nothing else uses it.
    unsafe { originals::close(spare) };
    make()
}

/// Gives the program's number this socket instead.
pub(crate) fn put(made: c_int, descriptor: c_int) {
    replace(made, descriptor);
    discard(made);
}

/// Gives the program's number a duplicate of this descriptor instead.
pub(crate) fn replace(made: c_int, descriptor: c_int) {
    // SAFETY: the command takes no argument.
    let flags = unsafe { originals::fcntl(descriptor, libc::F_GETFD, 0) };
    let flags = match flags & libc::FD_CLOEXEC {
        0 => 0,
        _ => libc::O_CLOEXEC,
    };
    // SAFETY: the call takes no pointer.
    unsafe { originals::dup3(made, descriptor, flags) };
}

/// A duplicate of what a descriptor of the program is for the kernel, of this library.
pub(crate) fn keep(descriptor: c_int) -> Option<OwnedFd> {
    let kept = own::during(|| {
        // SAFETY: the command takes a number.
        own::note(unsafe { originals::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 0) })
    });
    // SAFETY: the number was just made, and nothing else knows it.
    (kept >= 0).then(|| unsafe { OwnedFd::from_raw_fd(kept) })
}

/// Closes what [`socket`] has made, once it has its place, or needs none.
pub(crate) fn discard(made: c_int) {
    // SAFETY: the number was just made, and nothing else knows it.
    unsafe { originals::close(made) };
    reserve();
}

/// Whether the kernel's name for a socket (`SO_COOKIE`) is a placeholder's.
pub(crate) fn is_named(cookie: u64) -> bool {
    [&IPV4, &IPV6].iter().any(|place| {
        let placeholder = place.load(Ordering::Acquire);
        placeholder != -1 && kernel_options::cookie(placeholder) == Some(cookie)
    })
}

/// Gives the program's number a socket of its own, if it has none.
pub(crate) fn leave(descriptor: c_int, family: Family, waits: bool) -> Result<(), Errno> {
    let is_placeholder = kernel_options::cookie(descriptor).is_some_and(is_named);
    if is_placeholder {
        put(socket(family, waits)?, descriptor);
    }
    Ok(())
}

/// Has a descriptor in reserve again, if there is one to be had.
fn reserve() {
    let mut spare = SPARE.lock();
    let placeholder = IPV4
        .load(Ordering::Acquire)
        .max(IPV6.load(Ordering::Acquire));
    if spare.is_none() {
        let command = libc::F_DUPFD_CLOEXEC;
        // SAFETY: the command takes a number.
        let made = own::during(|| own::note(unsafe { originals::fcntl(placeholder, command, 0) }));
        *spare = returned(made).ok();
    }
}

#[cold]
fn make(place: &AtomicI32, family: Family) -> Result<c_int, Errno> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: socket(2) takes no pointer.
    let made = own::during(|| own::note(unsafe { originals::socket(family.domain(), kind, 0) }));
    let made = returned(made)?;
    match place.compare_exchange(-1, made, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {
            reserve();
            Ok(made)
        }
        Err(other) => {
            crate::descriptors::set(made, crate::descriptors::Entry::Kernel);
            // SAFETY: another thread was first, and nothing knows this one.
            unsafe { originals::close(made) };
            Ok(other)
        }
    }
}
