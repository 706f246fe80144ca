//! Connections of this process that its forked children have, too.
//!
//! In the kernel a child has the connections of its parent. Here they stay in the parent's stack, which lends them: a child that
//! uses one gets a pair of local sockets in its place, and the parent moves bytes between the other end and the connection, at its
//! turns. So a server whose parent accepts and whose children serve (inetd, PostgreSQL) works as long as the parent lives.
//!
//! ```text
//! parent                                    child
//!   fork(2): a channel for each stack with connections, and one reference more for each connection
//!     │                                       │ first use of a connection: makes a pair of sockets, and keeps one
//!     │◀── CLAIM, number, the other one ──────┤
//!     │◀── OPTION, number, level, name, value ┤ setsockopt(2)
//!     │◀── RELEASE, number ───────────────────┤ closes one that it has not used
//!     │◀── end of the channel ────────────────┘ ends, or becomes another program: all other references go
//! ```
//!
//! A connection that the parent closes goes on until no child refers to it any more, as in the kernel. What another process gets at once,
//! a program that is started or one to which a message goes, is a pair from the beginning (`lent.rs`).

use crate::descriptors::{self, own};
use crate::stacks::COUNT_MAX;
use mill_device::AnyLink;
use mill_sockets::slab::Number;
use mill_sockets::sockets::Sockets;
use mill_sockets::sockets::closing::Half;
use mill_sys::epoll::{Epoll, Event, Interest};
use mill_sys::{descriptor, passing};
use pipe::Pipe;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// A connection and the socket that a child has in its place.
mod pipe;

/// What a child says.
pub(crate) mod message;
use message::Message;

/// What one stack lends.
#[derive(Debug)]
pub(crate) struct Lending {
    /// Channels and sockets; the stack waits for it.
    pub(crate) sources: Epoll,
    borrowers: Vec<Borrower>,
    pipes: Vec<Pipe>,
    /// References of other processes to connections, by the bits of their numbers.
    references: References,
    /// The number of the next pipe.
    next: u64,
    /// Connections that are shut down for writing once what other processes have written is sent.
    shut: Vec<Number>,
}

/// A child, and those that it has forked.
#[derive(Debug)]
struct Borrower {
    channel: OwnedFd,
    /// Connections that it has and has not used yet, by the bits of their numbers.
    held: BTreeSet<u64>,
}

/// What is lent by a fork(2): made before it, and parted after it.
#[derive(Debug)]
pub(crate) struct Loan {
    /// The stack's.
    pub(crate) number: u8,
    pub(crate) of_parent: OwnedFd,
    pub(crate) of_child: OwnedFd,
    held: BTreeSet<u64>,
}

/// Makes the channels of all stacks that have connections. Where there is no descriptor for one, the child has none of these.
pub(crate) fn prepare() -> Vec<Loan> {
    let mut held = [const { BTreeSet::new() }; COUNT_MAX as usize];
    for (_, entry) in descriptors::all() {
        if let descriptors::Entry::Stream(number) = entry
            && let Some(held) = held.get_mut(usize::from(number.slab()))
        {
            held.insert(number.to_bits());
        }
    }
    let stacks = (0..).zip(held).filter(|(_, held)| !held.is_empty());
    let loans = stacks.filter_map(|(number, held)| {
        let (of_parent, of_child) = own::during(passing::pair).ok()?;
        Some(Loan {
            number,
            of_parent,
            of_child,
            held,
        })
    });
    loans.collect()
}

impl Lending {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            sources: Epoll::new()?,
            borrowers: Vec::new(),
            pipes: Vec::new(),
            references: References::default(),
            next: 0,
            shut: Vec::new(),
        })
    }

    /// Whether nothing is lent any more.
    pub(crate) fn is_over(&self) -> bool {
        self.borrowers.is_empty() && self.pipes.is_empty()
    }

    /// A child was forked, or could not be: then its end of the channel is closed already.
    pub(crate) fn begin(&mut self, loan: Loan, sockets: &mut Sockets<AnyLink>) {
        let channel = loan.of_parent;
        let is_watched = descriptor::set_nonblocking(channel.as_fd(), true)
            .and_then(|()| self.sources.add(channel.as_fd(), READABLE, CHANNEL));
        if is_watched.is_err() {
            return;
        }
        let mut held = loan.held;
        held.retain(|bits| sockets.duplicate(Number::from_bits(*bits)).is_ok());
        for bits in &held {
            self.references.add(*bits);
        }
        self.borrowers.push(Borrower { channel, held });
    }

    /// Another process has the other end of `socket` as the connection, and a reference to that. It can't say when options are set: small
    /// answers go out at once, as such processes mostly want it.
    pub(crate) fn hand_over(
        &mut self,
        number: Number,
        socket: OwnedFd,
        sockets: &mut Sockets<AnyLink>,
    ) {
        let one = 1_u32.to_ne_bytes();
        let _ = sockets.set_option(number, libc::IPPROTO_TCP, libc::TCP_NODELAY, &one);
        self.references.add(number.to_bits());
        self.claim(number, socket, sockets);
    }

    /// This process shuts the connection down for writing, and other processes have written what it has no room for yet: that goes first.
    pub(crate) fn shuts_later(&mut self, number: Number) -> bool {
        let is_later = self.may_write(number);
        if is_later {
            self.shut.push(number);
        }
        is_later
    }

    fn may_write(&self, number: Number) -> bool {
        let mut pipes = self.pipes.iter();
        pipes.any(|pipe| pipe.number == number && pipe.may_write())
    }

    /// This process has read bytes itself.
    pub(crate) fn note_read(&mut self, number: Number, count: usize) {
        for pipe in self.pipes.iter_mut().filter(|pipe| pipe.number == number) {
            pipe.note_read(count);
        }
    }

    /// Does what children ask for, and moves what there is to move; whether anything was.
    pub(crate) fn turn(&mut self, sockets: &mut Sockets<AnyLink>) -> bool {
        let mut claimed = Vec::new();
        if self.look() {
            let sources = &self.sources;
            self.borrowers.retain_mut(|borrower| {
                let is_there = borrower.listen(sockets, &mut self.references, &mut claimed);
                if !is_there {
                    borrower.end(sockets, &mut self.references);
                    // Another child may have it, too, so that closing it is not enough.
                    let _ = sources.remove(borrower.channel.as_fd());
                }
                is_there
            });
        }
        for (number, socket) in claimed {
            self.claim(number, socket, sockets);
        }
        let mut has_moved = false;
        let references = &mut self.references;
        self.pipes.retain_mut(|pipe| {
            let others = references.of(pipe.number);
            match pipe.turn(sockets, sockets.references(pipe.number) > others) {
                Ok(moved) => {
                    has_moved |= moved;
                    true
                }
                Err(pipe::Over) => {
                    let _ = self.sources.remove(pipe.end());
                    references.close(pipe.number, sockets);
                    has_moved = true;
                    false
                }
            }
        });
        let shut = core::mem::take(&mut self.shut);
        let (later, now): (Vec<_>, Vec<_>) = shut.into_iter().partition(|it| self.may_write(*it));
        self.shut = later;
        for number in now {
            let _ = sockets.shutdown(number, Half::Writing);
            has_moved = true;
        }
        has_moved
    }

    /// This process ends: children have their connections no longer than it does.
    pub(crate) fn end(mut self, sockets: &mut Sockets<AnyLink>) {
        self.turn(sockets);
        for borrower in &mut self.borrowers {
            borrower.end(sockets, &mut self.references);
        }
        for pipe in &self.pipes {
            self.references.close(pipe.number, sockets);
        }
    }

    /// What the kernel says of the sockets; whether a child has something to say, or is gone.
    fn look(&mut self) -> bool {
        let mut has_news = false;
        let mut events = [Event::EMPTY; 64];
        while let Ok(found) = self.sources.wait(&mut events, Some(Duration::ZERO)) {
            for event in found {
                has_news |= event.token() == CHANNEL;
                let pipes = &mut self.pipes;
                // Their numbers ascend.
                if let Ok(place) = pipes.binary_search_by_key(&event.token(), |pipe| pipe.id)
                    && let Some(pipe) = pipes.get_mut(place)
                {
                    pipe.note(*event);
                }
            }
            // Channels are reported again and again until they are read.
            if has_news || found.len() < 64 {
                break;
            }
        }
        has_news
    }

    fn claim(&mut self, number: Number, socket: OwnedFd, sockets: &mut Sockets<AnyLink>) {
        let id = self.next;
        self.next += 1;
        let is_watched = descriptor::set_nonblocking(socket.as_fd(), true)
            .and_then(|()| self.sources.add(socket.as_fd(), CHANGES, id));
        match is_watched {
            Ok(()) => self.pipes.push(Pipe::new(id, number, socket)),
            // The child's end is over.
            Err(_) => self.references.close(number, sockets),
        }
    }
}

impl Borrower {
    /// Does what the child says, and appends what it claims; `false` if it is gone.
    fn listen(
        &mut self,
        sockets: &mut Sockets<AnyLink>,
        references: &mut References,
        claimed: &mut Vec<(Number, OwnedFd)>,
    ) -> bool {
        let mut buffer = [0; message::BYTES_MAX];
        loop {
            let (len, sent) = match passing::receive(self.channel.as_fd(), &mut buffer) {
                Ok((0, _)) => return false,
                Ok(received) => received,
                Err(error) => return is_for_now(&error),
            };
            let message = buffer.get(..len).and_then(Message::parse);
            match (message, sent.into_iter().next()) {
                (Some(Message::Claim(number)), Some(socket)) if self.take(number) => {
                    claimed.push((number, socket));
                }
                (Some(Message::Release(number)), _) if self.take(number) => {
                    references.close(number, sockets);
                }
                (Some(Message::Set(number, level, name, value)), _) => {
                    // As the child was told, which has looked whether it can be.
                    let _ = sockets.set_option(number, level, name, value);
                }
                _ => {}
            }
        }
    }

    /// Whether the child has this connection and has not used it yet; it has not from now on.
    fn take(&mut self, number: Number) -> bool {
        self.held.remove(&number.to_bits())
    }

    fn end(&mut self, sockets: &mut Sockets<AnyLink>, references: &mut References) {
        for bits in core::mem::take(&mut self.held) {
            references.close(Number::from_bits(bits), sockets);
        }
    }
}

fn is_for_now(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

/// How many of a connection's references are other processes'.
#[derive(Debug, Default)]
struct References(BTreeMap<u64, u32>);

impl References {
    fn add(&mut self, bits: u64) {
        *self.0.entry(bits).or_default() += 1;
    }

    fn of(&self, number: Number) -> u32 {
        self.0.get(&number.to_bits()).copied().unwrap_or(0)
    }

    /// One less.
    fn close(&mut self, number: Number, sockets: &mut Sockets<AnyLink>) {
        if let Entry::Occupied(mut count) = self.0.entry(number.to_bits()) {
            match count.get() {
                ..=1 => drop(count.remove()),
                _ => *count.get_mut() -= 1,
            }
        }
        sockets.close(number);
    }
}

/// The token of all channels.
const CHANNEL: u64 = u64::MAX;

const READABLE: Interest = Interest {
    readable: true,
    writable: false,
    edge: false,
    exclusive: false,
};
const CHANGES: Interest = Interest {
    readable: true,
    writable: true,
    edge: true,
    exclusive: false,
};
