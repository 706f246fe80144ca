//! Listeners at which connections wait and whose program does not look.
//!
//! In the kernel all processes that have a listening socket accept from one queue. Here each has a host of its own with a queue of its own,
//! in which connections would wait for a program that computes, or that has polled the socket once and leaves accepting to a process that it
//! has started (inetd's `wait`, the masters of Postfix and Dovecot). So a listener whose program has not looked for some time while connections
//! wait is neglected: new connections are other processes' that listen there, and what waits goes to them. Where no other process looks,
//! all stays as it is. A look ends it.
//!
//! A look is accept(2), a poll of the listener, or a wait for a set that watches it for arrivals.

use super::{SocketLink, Sockets};
use crate::readiness::Readiness;
use crate::socket::{Kind, SocketNumber, Watch};
use mill_stack::host::migration::format;
use mill_stack::socket::ListenerId;
use mill_tcp::time::{Duration, Instant};
use std::collections::BTreeMap;

/// A listener at which connections wait.
#[derive(Debug)]
pub(super) struct Unseen {
    listener: ListenerId,
    number: SocketNumber,
    /// The program's looks at it, when these were counted last …
    looks: u64,
    /// … and since when there was none.
    since: Instant,
    /// When connections go to processes that have some, too.
    overflows_at: Instant,
    /// New connections are others'.
    is_neglected: bool,
}

/// Connections for another process: its number, and their bytes ([`mod@format`]).
pub type Passed = (u64, Vec<u8>);

impl<L: SocketLink> Sockets<L> {
    /// Looks now and then for listeners that the program neglects. What waits at these is taken away for others.
    pub fn pass_neglected(&mut self, now: Instant) -> Vec<Passed> {
        if now.since(self.unseen_at) < INTERVAL {
            return Vec::new();
        }
        self.unseen_at = now;
        self.heed_looks();
        for place in 0..self.listeners.len() {
            self.note_unseen(place, now);
        }
        let mut passed = BTreeMap::new();
        let mut unseen = core::mem::take(&mut self.unseen);
        unseen.retain_mut(|it| self.go_on_without(it, now, &mut passed));
        self.unseen = unseen;
        passed.into_iter().collect()
    }

    /// The program has looked, or is about to sleep and has: what it neglected is served again.
    #[inline]
    pub fn heed_looks(&mut self) {
        if !self.unseen.is_empty() {
            self.end_neglect();
        }
    }

    fn end_neglect(&mut self) {
        let mut unseen = core::mem::take(&mut self.unseen);
        let mut has_changed = false;
        let is_seen = |it: &mut Unseen| self.looks(it.number) != Some(it.looks);
        let seen: Vec<Unseen> = unseen.extract_if(.., is_seen).collect();
        for ended in seen {
            has_changed |= ended.is_neglected;
            self.host.set_neglected(ended.listener, false);
        }
        self.unseen = unseen;
        if has_changed {
            self.host.tell_load(self.accepted);
        }
    }

    /// Has the listener of this place among those that are looked for, if connections wait there.
    fn note_unseen(&mut self, place: usize, now: Instant) {
        let Some((listener, number)) = self.listeners.get(place).copied() else {
            return;
        };
        let is_known = self.unseen.iter().any(|it| it.number == number);
        if is_known || self.host.waiting(listener) == 0 {
            return;
        }
        // None of those that the program has closed.
        if let Some(looks) = self.looks(number) {
            self.unseen.push(Unseen {
                listener,
                number,
                looks,
                since: now,
                overflows_at: now + PATIENCE,
                is_neglected: false,
            });
        }
    }

    /// Passes what waits, if it has for long; whether the listener is to be looked for again.
    fn go_on_without(
        &mut self,
        unseen: &mut Unseen,
        now: Instant,
        passed: &mut BTreeMap<u64, Vec<u8>>,
    ) -> bool {
        let listener = unseen.listener;
        let waits = self.host.waiting(listener) > 0;
        if !unseen.is_neglected && !waits {
            return false;
        }
        let time = now.since(unseen.since);
        let others = self.host.others(listener);
        let is_due = match others.idle {
            0 => now >= unseen.overflows_at,
            _ => time >= PATIENCE_BESIDE_IDLE,
        };
        if !is_due || others.count == 0 {
            return true;
        }
        if !core::mem::replace(&mut unseen.is_neglected, true) {
            self.host.set_neglected(listener, true);
            self.host.tell_load(self.accepted);
        }
        if waits {
            // Where each may serve one at a time the others wait here: a program may look how many wait, and start as many processes.
            let count_max = match others.are_concurrent {
                true => usize::MAX,
                false => others.idle.max(1),
            };
            self.pass_open((listener, count_max), passed);
            // Processes that are all busy would pass everything to and fro.
            unseen.overflows_at = now + PATIENCE;
        }
        true
    }

    /// Takes away what waits at a listener, for the processes that would get it as new connections.
    fn pass_open(
        &mut self,
        (listener, count_max): (ListenerId, usize),
        passed: &mut BTreeMap<u64, Vec<u8>>,
    ) {
        // Text that is still in frames can't move.
        self.flush();
        let given = self.host.give_open(listener, count_max);
        if !given.is_empty() {
            self.link.note_moving();
        }
        for waiting in given {
            match self.host.give_to_other(listener, &waiting.flow) {
                Some(process) => format::write(&waiting, passed.entry(process).or_default()),
                // The others have ended this very moment, or it is for another listener of this program at the same address.
                None => self.succession.arrive(waiting),
            }
        }
    }

    /// How often the program has looked at a listener; `None` if it has closed it.
    fn looks(&self, number: SocketNumber) -> Option<u64> {
        let socket = self.sockets.get(number)?;
        let Kind::Listener(_) = socket.kind else {
            return None;
        };
        Some(socket.looks.get() + self.looks_by(&socket.watches, NESTED_MAX))
    }

    /// The waits for the sets of these entries, and for sets that watch those.
    fn looks_by(&self, watches: &[Watch], depth: u32) -> u64 {
        let of = |watch: &Watch| {
            let set = self.sets.get(watch.set)?;
            let is_wanted = set.wants(watch.entry, Readiness::IN);
            let outer = match depth {
                0 => 0,
                depth => self.looks_by(&set.watches, depth - 1),
            };
            is_wanted.then_some(set.waits + outer)
        };
        watches.iter().filter_map(of).sum()
    }
}

/// How deep sets are nested (`EP_MAX_NESTS` of Linux).
const NESTED_MAX: u32 = 4;

/// How long connections wait without a look until they are others'. A turn of a program that serves many connections is shorter.
const PATIENCE: Duration = Duration::from_millis(50);

/// The same where a process has no connection at all: it may have been started for this one.
const PATIENCE_BESIDE_IDLE: Duration = Duration::from_millis(10);

/// How often it is looked.
const INTERVAL: Duration = Duration::from_millis(4);
