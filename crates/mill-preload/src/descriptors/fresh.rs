//! TCP sockets that the program has made and not used yet. Such a descriptor is a duplicate of one unconnected socket, as the stack's
//! streams have, and what the program says of it is kept in the descriptor's entry: a connection of the stack then costs no socket of
//! the kernel. As soon as something is asked of it that only a socket of its own can answer, it becomes one.

use super::{Entry, exchange, peek};
use crate::placeholder::{self, Family};
use crate::signals::whole::Whole;
use crate::{originals, stacks};
use core::ffi::c_int;
use core::net::SocketAddr;
use mill_sockets::socket::Options;

/// What the program has said of a socket so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fresh {
    pub(crate) family: Family,
    /// Its calls wait (not `O_NONBLOCK`).
    pub(crate) waits: bool,
    /// `TCP_NODELAY`.
    pub(crate) nodelay: bool,
}

/// Instead of socket(2): `None` if the socket is to be the kernel's from the beginning.
#[inline]
pub(crate) fn make(domain: c_int, kind: c_int, protocol: c_int) -> Option<c_int> {
    let flags = kind & (libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC);
    let is_tcp = kind & !flags == libc::SOCK_STREAM && matches!(protocol, 0 | libc::IPPROTO_TCP);
    let family = Family::of(domain)?;
    if !is_tcp || !stacks::may_connect() {
        return None;
    }
    let descriptor = placeholder::duplicate(family, flags & libc::SOCK_CLOEXEC != 0).ok()?;
    let fresh = Fresh {
        family,
        waits: flags & libc::SOCK_NONBLOCK == 0,
        nodelay: false,
    };
    if super::set(descriptor, Entry::Fresh(fresh)) {
        return Some(descriptor);
    }
    // SAFETY: the number was just made, and nothing else knows it.
    unsafe { originals::close(descriptor) };
    None
}

/// Notes what the program says of the socket now. False if another thread has made something else of it meanwhile.
pub(crate) fn change(descriptor: c_int, from: Fresh, to: Fresh) -> bool {
    exchange(descriptor, Entry::Fresh(from), Entry::Fresh(to))
}

/// Makes it a socket of the kernel, with what was said of it. Without one, for want of memory or descriptors, the call that needs it
/// fails as on a connection that is lost; the next one tries again.
#[cold]
pub(super) fn settle(descriptor: c_int, fresh: Fresh) -> Entry {
    let _whole = Whole::begin();
    let Ok(made) = placeholder::socket(fresh.family, fresh.waits) else {
        return Entry::Lost;
    };
    if fresh.nodelay {
        set_nodelay(made);
    }
    match exchange(descriptor, Entry::Fresh(fresh), Entry::Kernel) {
        true => placeholder::put(made, descriptor),
        // Another thread was first.
        false => placeholder::discard(made),
    }
    match peek(descriptor) {
        Entry::Fresh(_) => Entry::Lost,
        entry => entry,
    }
}

/// Does so with all there are: another program may be about to have them.
pub(crate) fn settle_all() {
    for (descriptor, entry) in super::all() {
        if let Entry::Fresh(fresh) = entry {
            settle(descriptor, fresh);
        }
    }
}

fn set_nodelay(descriptor: c_int) {
    let on: c_int = 1;
    let len = libc::socklen_t::try_from(size_of::<c_int>()).unwrap_or(4);
    let (level, name) = (libc::IPPROTO_TCP, libc::TCP_NODELAY);
    // SAFETY: the value is a local of the stated size.
    unsafe { originals::setsockopt(descriptor, level, name, (&raw const on).cast(), len) };
}

impl Fresh {
    pub(super) const fn to_bits(self) -> u64 {
        let is_ipv6 = matches!(self.family, Family::Ipv6);
        is_ipv6 as u64 | (self.waits as u64) << 1 | (self.nodelay as u64) << 2
    }

    pub(super) const fn from_bits(bits: u64) -> Self {
        Self {
            family: match bits & 1 {
                0 => Family::Ipv4,
                _ => Family::Ipv6,
            },
            waits: bits & 2 != 0,
            nodelay: bits & 4 != 0,
        }
    }

    /// Whether its family has the target. What the kernel's socket answers otherwise, or to an address of IPv4 in one of IPv6, is left
    /// to that.
    pub(crate) const fn may_reach(self, target: SocketAddr) -> bool {
        match target {
            SocketAddr::V4(_) => matches!(self.family, Family::Ipv4),
            SocketAddr::V6(target) => {
                matches!(self.family, Family::Ipv6) && target.ip().to_ipv4_mapped().is_none()
            }
        }
    }

    /// The options of the connection that it becomes.
    pub(crate) fn options(self) -> Options {
        let mut options = Options {
            waits: self.waits,
            is_ipv6: self.family == Family::Ipv6,
            ..Options::default()
        };
        if self.nodelay {
            let on = 1_i32.to_ne_bytes();
            // Every stream takes it.
            let _ = options.set(libc::IPPROTO_TCP, libc::TCP_NODELAY, &on);
        }
        options
    }
}
