//! What a program that posix_spawn(3) starts has of this process's connections: those that file actions hand over (`adddup2`).
//!
//! During the call the descriptor of such a connection is a local socket for the kernel, and so for the child; this process's calls go by
//! the descriptor's entry, and do not notice. Once the program runs, the stack moves bytes between the connection and the socket's
//! other end, as for a forked child (`lending.rs`). The environment says which of the program's descriptors these are (`borrowing.rs`).

use crate::borrowing;
use crate::descriptors::{self, Entry, own};
use crate::kernel_options;
use crate::lock::{Lock, Locked};
use crate::{placeholder, stacks};
use core::ffi::{c_int, c_void};
use core::net::SocketAddr;
use mill_sockets::slab::Number;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Locked while a connection's descriptor is a local socket: another thread that starts a program with the same connection, or forks, would
/// go on with that. It is taken before the other one.
static UNDER_WAY: Lock<()> = Lock::new(());

/// The actions that hand a descriptor over, the latest last. Only their functions know what the C library's values hold.
static HANDED: Lock<Vec<Handed>> = Lock::new(Vec::new());

/// `to` of the program is to be `from` of this process.
#[derive(Clone, Copy, Debug)]
struct Handed {
    /// Where the program has the list of actions.
    actions: usize,
    from: c_int,
    to: c_int,
}

/// For fork(2), before the locks of stacks.
pub(crate) fn locks() -> [Locked; 2] {
    [Box::new(UNDER_WAY.lock()), Box::new(HANDED.lock())]
}

/// A list of actions begins or ends.
pub(crate) fn forget(actions: *const c_void) {
    if stacks::is_offered() {
        let actions = actions.addr();
        HANDED.lock().retain(|handed| handed.actions != actions);
    }
}

/// A list of actions hands over a descriptor, whatever that is when it is used.
pub(crate) fn note(actions: *const c_void, from: c_int, to: c_int) {
    if !stacks::is_offered() {
        return;
    }
    let mut all = HANDED.lock();
    // A program may make lists and not end them.
    if all.len() >= HANDED_MAX {
        all.remove(0);
    }
    all.push(Handed {
        actions: actions.addr(),
        from,
        to,
    });
}

/// Has `start` start a program, with what the environment is to say of connections; it returns 0 or an error, as posix_spawn(3).
pub(crate) fn hand_over(actions: *const c_void, start: impl FnOnce(&[String]) -> c_int) -> c_int {
    if !stacks::is_offered() {
        return start(&[]);
    }
    let handed = handed(actions);
    let is_connection = |it: &Handed| matches!(descriptors::find(it.from), Entry::Stream(_));
    if !handed.iter().any(is_connection) {
        return start(&[]);
    }
    let _under_way = UNDER_WAY.lock();
    let mut lent: Vec<Lent> = Vec::new();
    for handed in handed {
        let _ = lend(&mut lent, handed);
    }
    let described: Vec<String> = lent.iter().flat_map(Lent::described).collect();
    let result = start(&described);
    for lent in lent {
        lent.end(result == 0);
    }
    result
}

/// Those of a list, with the descriptors that this process has: one that was handed over may be handed on.
fn handed(actions: *const c_void) -> Vec<Handed> {
    let all = HANDED.lock();
    let mut found: Vec<Handed> = Vec::new();
    for handed in all.iter().filter(|it| it.actions == actions.addr()) {
        let before = found.iter().rfind(|before| before.to == handed.from);
        let from = before.map_or(handed.from, |before| before.from);
        found.push(Handed { from, ..*handed });
    }
    found
}

/// `None` if the descriptor is none of a connection, or where there is no descriptor left: then the program has a socket that is not
/// connected.
fn lend(lent: &mut Vec<Lent>, handed: Handed) -> Option<()> {
    let Entry::Stream(number) = descriptors::find(handed.from) else {
        return None;
    };
    let place = lent.iter().position(|lent| lent.number == number);
    let place = place.or_else(|| {
        lent.push(Lent::new(number)?);
        Some(lent.len() - 1)
    });
    lent.get_mut(place?)?.give(handed)
}

/// A connection some of whose descriptors are a local socket for now.
#[derive(Debug)]
struct Lent {
    number: Number,
    names: (SocketAddr, SocketAddr),
    of_program: UnixStream,
    of_stack: UnixStream,
    /// This process's descriptors, and what they were before.
    replaced: Vec<(c_int, OwnedFd)>,
    /// The program's.
    given: Vec<c_int>,
}

impl Lent {
    fn new(number: Number) -> Option<Self> {
        let known = stacks::on(number, |stack| {
            let sockets = &stack.sockets;
            let names = (sockets.local(number)?, sockets.peer(number)?);
            Ok((names, sockets.options(number)?.clone()))
        });
        let (names, options) = known.ok()?;
        let (of_program, of_stack) = own::during(UnixStream::pair).ok()?;
        borrowing::set_up(&of_program, &options);
        Some(Self {
            number,
            names,
            of_program,
            of_stack,
            replaced: Vec::new(),
            given: Vec::new(),
        })
    }

    /// The program is to have it by one more descriptor.
    fn give(&mut self, handed: Handed) -> Option<()> {
        let Handed { from, to, .. } = handed;
        if self.replaced.iter().all(|(replaced, _)| *replaced != from) {
            self.replaced.push((from, placeholder::keep(from)?));
            placeholder::replace(self.of_program.as_raw_fd(), from);
            // By its own number as well, unless exec(2) closes that.
            self.given.push(from);
        }
        self.given.push(to);
        Some(())
    }

    /// As the program is to know it.
    fn described(&self) -> impl Iterator<Item = String> {
        let cookie = kernel_options::cookie(self.of_program.as_raw_fd());
        let described =
            move |(to, cookie): (&c_int, u64)| borrowing::describe(*to, cookie, self.names);
        self.given
            .iter()
            .filter_map(move |to| Some((to, cookie?)))
            .map(described)
    }

    /// The descriptors are this process's again, and the program has the connection if it runs.
    fn end(self, is_running: bool) {
        for (descriptor, before) in self.replaced {
            // Another thread may have closed it, and the number may be a file's.
            if descriptors::peek(descriptor) == Entry::Stream(self.number) {
                placeholder::replace(before.as_raw_fd(), descriptor);
            }
            own::close(before);
        }
        own::close(self.of_program);
        match is_running {
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

/// How many are known. Lists of actions live for a moment.
const HANDED_MAX: usize = 4096;
