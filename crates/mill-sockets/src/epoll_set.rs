//! An epoll set: what is watched, sockets or other sets, and what of it may be ready.
//!
//! As in Linux (fs/eventpoll.c) an entry is queued when its socket changes in any way, and examined when events are asked for:
//! one that is not ready leaves the queue, one that is level-triggered goes to its end after it was told, and one that is
//! edge-triggered waits for the next change. So programs see the order of events that the kernel gives them.

use crate::readiness::Readiness;
use crate::slab::{Number, Slab};
use crate::socket::{SocketNumber, Watch};
use std::collections::VecDeque;

/// An epoll set of [`crate::sockets::Sockets`].
pub type SetNumber = Number;

/// How a socket is watched: bits of epoll_ctl(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    /// The conditions, and the three flags below.
    pub events: u32,
    /// What the program gets back.
    pub data: u64,
}

impl Interest {
    pub const ONESHOT: u32 = 1 << 30;
    pub const EDGE: u32 = 1 << 31;
    pub const EXCLUSIVE: u32 = 1 << 28;
    const FLAGS: u32 = Self::ONESHOT | Self::EDGE | Self::EXCLUSIVE | 1 << 29;

    /// Whether epoll_ctl(2) takes it of a new entry: an exclusive one has few conditions (`EPOLLEXCLUSIVE_OK_BITS`).
    pub(crate) const fn is_taken(self) -> bool {
        let allowed = 0x1 | 0x4 | 0x8 | 0x10 | 1 << 29 | Self::EDGE | Self::EXCLUSIVE;
        self.events & Self::EXCLUSIVE == 0 || self.events & !allowed == 0
    }

    /// With the conditions that are told in any case.
    const fn complete(mut self) -> Self {
        self.events |= Readiness::ALWAYS.0;
        self
    }

    /// What is looked for; nothing at all once a one-shot entry was told.
    const fn wanted(self) -> Readiness {
        Readiness(self.events & !Self::FLAGS)
    }
}

/// What is told of one socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub events: Readiness,
    pub data: u64,
}

#[derive(Debug, Default)]
pub(crate) struct EpollSet {
    entries: Slab<Entry>,
    queue: VecDeque<Number>,
    /// How often programs have waited for it.
    pub(crate) waits: u64,
    /// Entries of other sets that watch this one.
    pub(crate) watches: Vec<Watch>,
}

/// What an entry watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Socket(SocketNumber),
    Set(SetNumber),
}

#[derive(Debug)]
struct Entry {
    target: Target,
    descriptor: i32,
    interest: Interest,
    is_queued: bool,
}

impl Entry {
    const fn end_one_shot(&mut self) {
        self.interest.events &= Interest::FLAGS;
    }
}

impl EpollSet {
    pub(crate) fn insert(
        &mut self,
        target: Target,
        descriptor: i32,
        interest: Interest,
        found: Readiness,
    ) -> Number {
        let number = self.entries.insert(Entry {
            target,
            descriptor,
            interest: interest.complete(),
            is_queued: false,
        });
        self.on_change(number, found);
        number
    }

    /// Whether an entry that is queued is ready; nothing is taken from the queue.
    pub(crate) fn is_ready(&self, readiness: impl Fn(Target) -> Readiness) -> bool {
        self.queue.iter().any(|number| {
            let entry = self.entries.get(*number);
            entry.is_some_and(|entry| entry.interest.wanted().has_any(readiness(entry.target)))
        })
    }

    /// Whether the entry is that of a descriptor.
    pub(crate) fn is_of(&self, number: Number, descriptor: i32) -> bool {
        let entry = self.entries.get(number);
        entry.is_some_and(|entry| entry.descriptor == descriptor)
    }

    /// Whether an entry looks for a condition.
    pub(crate) fn wants(&self, number: Number, condition: Readiness) -> bool {
        let entry = self.entries.get(number);
        entry.is_some_and(|entry| entry.interest.wanted().has_any(condition))
    }

    /// Whether the entry is exclusive, so that it can't be modified.
    pub(crate) fn is_exclusive(&self, number: Number) -> bool {
        let entry = self.entries.get(number);
        entry.is_some_and(|entry| entry.interest.events & Interest::EXCLUSIVE != 0)
    }

    pub(crate) fn modify(&mut self, number: Number, interest: Interest, found: Readiness) {
        if let Some(entry) = self.entries.get_mut(number) {
            entry.interest = interest.complete();
            self.on_change(number, found);
        }
    }

    /// A one-shot entry tells nothing until it is modified.
    pub(crate) fn end_one_shot(&mut self, number: Number) {
        if let Some(entry) = self.entries.get_mut(number) {
            entry.end_one_shot();
        }
    }

    pub(crate) fn remove(&mut self, number: Number) {
        self.entries.remove(number);
    }

    /// The entry's socket changed, in a way that concerns these conditions.
    pub(crate) fn on_change(&mut self, number: Number, kind: Readiness) {
        if let Some(entry) = self.entries.get_mut(number)
            && !entry.is_queued
            && entry.interest.wanted().has_any(kind)
        {
            entry.is_queued = true;
            self.queue.push_back(number);
        }
    }

    /// Whether an entry may be ready.
    pub(crate) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// The sockets that it watches.
    pub(crate) fn sockets(&self) -> usize {
        self.entries.len()
    }

    /// Examines what is queued, by what `readiness` says of a socket, and appends up to `count_max` events to `into`.
    pub(crate) fn collect(
        &mut self,
        count_max: usize,
        into: &mut Vec<Event>,
        readiness: impl Fn(Target) -> Readiness,
    ) {
        let end = into.len() + count_max;
        for _ in 0..self.queue.len() {
            if into.len() == end {
                return;
            }
            let Some(number) = self.queue.pop_front() else {
                return;
            };
            let Some(entry) = self.entries.get_mut(number) else {
                continue;
            };
            entry.is_queued = false;
            let found = readiness(entry.target) & entry.interest.wanted();
            if found.is_empty() {
                continue;
            }
            into.push(Event {
                events: found,
                data: entry.interest.data,
            });
            let flags = entry.interest.events;
            if flags & Interest::ONESHOT != 0 {
                entry.end_one_shot();
            } else if flags & Interest::EDGE == 0 {
                entry.is_queued = true;
                self.queue.push_back(number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IN: u32 = Readiness::IN.0;

    struct World {
        set: EpollSet,
        ready: Vec<Readiness>,
    }

    impl World {
        /// A set of sockets that are watched so; the data of each is its index.
        fn new(watched: &[u32]) -> (Self, Vec<Number>) {
            let mut set = EpollSet::default();
            let entries = watched.iter().enumerate().map(|(index, events)| {
                let data = index as u64;
                let interest = Interest {
                    events: *events,
                    data,
                };
                let target = Target::Socket(Number::from_bits(data));
                set.insert(target, 3, interest, Readiness::NONE)
            });
            let entries = entries.collect();
            let ready = vec![Readiness::NONE; watched.len()];
            (Self { set, ready }, entries)
        }

        fn all_become(&mut self, entries: &[Number], readiness: Readiness) {
            self.ready.fill(readiness);
            for entry in entries {
                self.set.on_change(*entry, readiness);
            }
        }

        fn wait(&mut self, count_max: usize) -> Vec<u64> {
            let mut found = Vec::new();
            let ready = &self.ready;
            let look = |target| match target {
                Target::Socket(socket) => ready[usize::try_from(socket.to_bits()).unwrap()],
                Target::Set(_) => Readiness::NONE,
            };
            self.set.collect(count_max, &mut found, look);
            found.into_iter().map(|event| event.data).collect()
        }
    }

    #[test]
    fn level_is_told_again_edge_once_and_one_shot_until_it_is_armed_again() {
        let (mut world, entries) = World::new(&[IN, IN | Interest::EDGE, IN | Interest::ONESHOT]);
        assert_eq!(world.wait(9), []);
        world.ready.fill(Readiness::IN);
        assert_eq!(world.wait(9), [], "nothing is looked at before it changes");
        entries
            .iter()
            .for_each(|entry| world.set.on_change(*entry, Readiness::IN));
        assert_eq!(world.wait(9), [0, 1, 2]);
        assert_eq!(world.wait(9), [0]);
        entries
            .iter()
            .for_each(|entry| world.set.on_change(*entry, Readiness::IN));
        assert_eq!(world.wait(9), [0, 1]);
        let again = Interest {
            events: IN | Interest::ONESHOT,
            data: 2,
        };
        world.set.modify(entries[2], again, Readiness::IN);
        assert_eq!(world.wait(9), [0, 2]);
    }

    #[test]
    fn what_there_is_no_room_for_is_told_next_and_level_goes_to_the_end() {
        let (mut world, entries) = World::new(&[IN, IN, IN]);
        world.all_become(&entries, Readiness::IN);
        assert_eq!(world.wait(2), [0, 1]);
        assert_eq!(world.wait(2), [2, 0]);
        assert_eq!(world.wait(2), [1, 2]);
    }

    #[test]
    fn errors_are_told_though_not_asked_for_but_not_by_a_one_shot_that_is_over() {
        let (mut world, entries) = World::new(&[0, Interest::ONESHOT | IN]);
        world.all_become(&entries, Readiness::ERR | Readiness::IN);
        assert_eq!(world.wait(9), [0, 1]);
        world.set.on_change(entries[1], Readiness::ALL);
        assert_eq!(world.wait(9), [0]);
    }

    #[test]
    fn a_removed_entry_is_told_no_more() {
        let (mut world, entries) = World::new(&[IN, IN]);
        world.all_become(&entries, Readiness::IN);
        world.set.remove(entries[0]);
        assert_eq!(world.wait(9), [1]);
        assert_eq!(world.set.sockets(), 1);
    }
}
