//! Connections that another process is about to have, of a program that posix_spawn(3) starts or by a message (`SCM_RIGHTS`).
//!
//! During the call the descriptor of such a connection is a local socket for the kernel, and so for the other process; this process's calls
//! go by the descriptor's entry, and do not notice. Afterwards the stack moves bytes between the connection and the socket's other end,
//! as for a forked child (`lending.rs`). The other process knows the addresses by the name of that end (`borrowing/name.rs`), or by its
//! environment.

use crate::borrowing::{self, name};
use crate::descriptors::{self, Entry, own};
use crate::lock::{Lock, LockGuard, Locked};
use crate::{kernel_options, placeholder, stacks};
use core::ffi::c_int;
use core::net::SocketAddr;
use mill_sockets::slab::Number;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Locked while a connection's descriptor is a local socket: another thread that gives the same connection away, or forks, would go on
/// with that. It is taken before all locks of that kind.
static UNDER_WAY: Lock<()> = Lock::new(());

/// For fork(2), before the locks of stacks.
pub(crate) fn lock() -> Locked {
    Box::new(UNDER_WAY.lock())
}

/// Those of one call.
#[derive(Debug)]
pub(crate) struct Lent {
    connections: Vec<Connection>,
    _under_way: LockGuard<'static, ()>,
}

/// A connection some of whose descriptors are a local socket for now.
#[derive(Debug)]
struct Connection {
    number: Number,
    names: (SocketAddr, SocketAddr),
    of_other: UnixStream,
    of_stack: UnixStream,
    /// This process's descriptors, and what they were before.
    replaced: Vec<(c_int, OwnedFd)>,
    /// The other process's, if it is a child.
    given: Vec<c_int>,
}

impl Lent {
    pub(crate) fn begin() -> Self {
        Self {
            connections: Vec::new(),
            _under_way: UNDER_WAY.lock(),
        }
    }

    /// The other process is to have this descriptor, a child by the number `to`. `None` if it is none of a connection, or where there is
    /// no descriptor left.
    pub(crate) fn lend(&mut self, from: c_int, to: c_int) -> Option<()> {
        let Entry::Stream(number) = descriptors::find(from) else {
            return None;
        };
        let known = self.connections.iter();
        let mut known = known.map(|connection| connection.number);
        let place = known.position(|known| known == number);
        let place = place.or_else(|| {
            self.connections.push(Connection::new(number)?);
            Some(self.connections.len() - 1)
        });
        self.connections.get_mut(place?)?.give(from, to)
    }

    /// As a child is to know them.
    pub(crate) fn described(&self) -> Vec<String> {
        let connections = self.connections.iter();
        connections.flat_map(Connection::described).collect()
    }

    /// The descriptors are this process's again, and the other one has the connections, unless the call has failed.
    pub(crate) fn end(self, are_given: bool) {
        for connection in self.connections {
            connection.end(are_given);
        }
    }
}

impl Connection {
    fn new(number: Number) -> Option<Self> {
        let known = stacks::on(number, |stack| {
            let sockets = &stack.sockets;
            let names = (sockets.local(number)?, sockets.peer(number)?);
            Ok((names, sockets.options(number)?.clone()))
        });
        let (names, options) = known.ok()?;
        let (of_other, of_stack) = own::during(UnixStream::pair).ok()?;
        borrowing::set_up(&of_other, &options);
        name::give(&of_stack, &of_other, names);
        Some(Self {
            number,
            names,
            of_other,
            of_stack,
            replaced: Vec::new(),
            given: Vec::new(),
        })
    }

    /// The other process is to have it by one more descriptor.
    fn give(&mut self, from: c_int, to: c_int) -> Option<()> {
        if self.replaced.iter().all(|(replaced, _)| *replaced != from) {
            self.replaced.push((from, placeholder::keep(from)?));
            placeholder::replace(self.of_other.as_raw_fd(), from);
            // By its own number as well, unless exec(2) closes that.
            self.given.push(from);
        }
        self.given.push(to);
        Some(())
    }

    fn described(&self) -> impl Iterator<Item = String> {
        let cookie = kernel_options::cookie(self.of_other.as_raw_fd());
        let described =
            move |(to, cookie): (&c_int, u64)| borrowing::describe(*to, cookie, self.names);
        self.given
            .iter()
            .filter_map(move |to| Some((to, cookie?)))
            .map(described)
    }

    fn end(self, is_given: bool) {
        for (descriptor, before) in self.replaced {
            // Another thread may have closed it, and the number may be a file's.
            if descriptors::peek(descriptor) == Entry::Stream(self.number) {
                placeholder::replace(before.as_raw_fd(), descriptor);
            }
            own::close(before);
        }
        own::close(self.of_other);
        match is_given {
            true => {
                let number = self.number;
                stacks::with(number, |stack| {
                    stack.hand_over(number, self.of_stack.into())
                });
            }
            false => own::close(self.of_stack),
        }
    }
}
