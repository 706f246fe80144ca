//! What the descriptors of the stack's sockets are duplicates of: a socket of the kernel for each address family, which does nothing.

use crate::descriptors::own;
use crate::memory::returned;
use crate::originals;
use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, Ordering};
use mill_sockets::errno::Errno;

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

#[cold]
fn make(place: &AtomicI32, family: Family) -> Result<c_int, Errno> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: socket(2) takes no pointer.
    let made = own::during(|| own::note(unsafe { originals::socket(family.domain(), kind, 0) }));
    let made = returned(made)?;
    match place.compare_exchange(-1, made, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Ok(made),
        Err(other) => {
            crate::descriptors::set(made, crate::descriptors::Entry::Kernel);
            // SAFETY: another thread was first, and nothing knows this one.
            unsafe { originals::close(made) };
            Ok(other)
        }
    }
}
