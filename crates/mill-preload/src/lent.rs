//! Connections that another process is about to have, of a program that posix_spawn(3) starts or by a message (`SCM_RIGHTS`).
//!
//! Each gets a pair of local sockets. The other process has one end in the connection's place; the stack moves bytes between the
//! connection and the other end, as for a forked child (`lending.rs`). The other process knows the addresses by the name of that end
//! (`borrowing/name.rs`), or by its environment.
//!
//! In a message the socket's number stands in place of the connection's. What a program that is started gets is what this process's
//! descriptors are for the kernel: during the call they are the local sockets, while this process's calls go by their entries and do not
//! notice.

use crate::borrowing::{self, name};
use crate::descriptors::{self, Entry, own};
use crate::lock::{Lock, LockGuard, Locked};
use crate::{kernel_options, placeholder, stacks};
use core::ffi::c_int;
use core::net::SocketAddr;
use mill_sockets::errno::Errno;
use mill_sockets::slab::Number;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Locked while a connection's descriptor is a local socket: another thread that starts a program with the same connection, or forks, would
/// go on with that. It is taken before all locks of that kind.
static UNDER_WAY: Lock<()> = Lock::new(());

/// For fork(2), before the locks of stacks.
pub(crate) fn lock() -> Locked {
    Box::new(UNDER_WAY.lock())
}

/// The sockets of messages that are being sent: a child that is forked meanwhile closes them, or they would not end with the others'.
static IN_MESSAGES: Lock<Vec<c_int>> = Lock::new(Vec::new());

/// For fork(2), of the innermost ones.
pub(crate) fn lock_messages() -> Locked {
    Box::new(IN_MESSAGES.lock())
}

/// In a child.
pub(crate) fn in_child() {
    for descriptor in core::mem::take(&mut *IN_MESSAGES.lock()) {
        // SAFETY: of the two threads that know the number, the child has none.
        own::close(unsafe { OwnedFd::from_raw_fd(descriptor) });
    }
}

/// Those of one call.
#[derive(Debug)]
pub(crate) struct Lent {
    connections: Vec<Connection>,
    _under_way: Option<LockGuard<'static, ()>>,
}

/// A connection, of which this has a reference.
#[derive(Debug)]
struct Connection {
    number: Number,
    names: Option<(SocketAddr, SocketAddr)>,
    of_other: UnixStream,
    of_stack: UnixStream,
    /// This process's descriptors that are local sockets for now, and what they were before.
    replaced: Vec<(c_int, OwnedFd)>,
    /// The other process's, if it is a child.
    given: Vec<c_int>,
}

impl Lent {
    /// For a message.
    pub(crate) const fn in_message() -> Self {
        Self {
            connections: Vec::new(),
            _under_way: None,
        }
    }

    /// For a program that is about to be started.
    pub(crate) fn to_program() -> Self {
        Self {
            connections: Vec::new(),
            _under_way: Some(UNDER_WAY.lock()),
        }
    }

    /// The local socket that goes in a connection's place; `None` in that of anything else.
    pub(crate) fn pass(&mut self, descriptor: c_int) -> Result<Option<c_int>, Errno> {
        let Entry::Stream(number) = descriptors::find(descriptor) else {
            return Ok(None);
        };
        let is_known = self.connections.iter().any(|known| known.number == number);
        let connection = self.connection(number).ok_or(Errno::NO_DESCRIPTOR)?;
        if !is_known {
            IN_MESSAGES.lock().extend(connection.numbers());
        }
        Ok(Some(connection.of_other.as_raw_fd()))
    }

    /// The program is to have this descriptor, as `to`. `None` if it is none of a connection, or where there is no descriptor left.
    pub(crate) fn lend(&mut self, from: c_int, to: c_int) -> Option<()> {
        let Entry::Stream(number) = descriptors::find(from) else {
            return None;
        };
        self.connection(number)?.give(from, to)
    }

    fn connection(&mut self, number: Number) -> Option<&mut Connection> {
        let known = self.connections.iter();
        let mut known = known.map(|connection| connection.number);
        let place = known.position(|known| known == number);
        let place = place.or_else(|| {
            self.connections.push(Connection::new(number)?);
            Some(self.connections.len() - 1)
        });
        self.connections.get_mut(place?)
    }

    /// As a program is to know them.
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
    /// Also of one that is not connected yet, or not any more: the other process finds that out.
    fn new(number: Number) -> Option<Self> {
        let known = stacks::on(number, |stack| {
            let sockets = &mut stack.sockets;
            sockets.duplicate(number)?;
            let names = sockets
                .local(number)
                .ok()
                .zip(sockets.former_peer(number).ok());
            Ok((names, sockets.options(number)?.clone()))
        });
        let (names, options) = known.ok()?;
        let Ok((of_other, of_stack)) = own::during(UnixStream::pair) else {
            release(number);
            return None;
        };
        borrowing::set_up(&of_other, &options);
        if let Some(names) = names {
            name::give(&of_stack, &of_other, names);
        }
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
        let known = cookie.zip(self.names);
        let described = move |(to, (cookie, names)): (&c_int, (u64, _))| {
            borrowing::describe(*to, cookie, names)
        };
        self.given
            .iter()
            .filter_map(move |to| Some((to, known?)))
            .map(described)
    }

    fn numbers(&self) -> [c_int; 2] {
        [self.of_other.as_raw_fd(), self.of_stack.as_raw_fd()]
    }

    fn end(self, is_given: bool) {
        let number = self.number;
        let own = self.numbers();
        IN_MESSAGES.lock().retain(|it| !own.contains(it));
        for (descriptor, before) in self.replaced {
            // Another thread may have closed it, and the number may be a file's.
            if descriptors::peek(descriptor) == Entry::Stream(number) {
                placeholder::replace(before.as_raw_fd(), descriptor);
            }
            own::close(before);
        }
        own::close(self.of_other);
        match is_given {
            true => {
                stacks::with(number, |stack| {
                    stack.hand_over(number, self.of_stack.into())
                });
            }
            false => {
                own::close(self.of_stack);
                release(number);
            }
        }
    }
}

/// One reference less.
fn release(number: Number) {
    stacks::with(number, |stack| stack.sockets.close(number));
}
