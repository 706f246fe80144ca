//! One side: the sockets, and beside them what its programs have opened, watched and closed.

use super::super::*;
use super::exchange::Exchange;
use crate::epoll_set::{Event, Interest, SetNumber, Target};
use crate::readiness::Readiness;
use crate::socket::Options;
use mill_stack::memory_link::MemoryLink;
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct Side {
    pub(super) index: usize,
    pub(super) sockets: Sockets<MemoryLink>,
    /// Streams that programs have, the exchange of each, and its descriptors.
    pub(super) streams: Vec<Stream>,
    pub(super) listeners: Vec<(SocketNumber, i32)>,
    pub(super) sets: Vec<SetNumber>,
    pub(super) entries: Vec<Entry>,
    /// Sockets that a call of one thread has changed for the others.
    pub(super) touched: Vec<SocketNumber>,
    /// A turn has brought something.
    pub(super) has_news: bool,
    descriptor: i32,
    /// How many calls that may wait have failed, by the number of the error.
    pub(super) errors: BTreeMap<i32, u64>,
    /// Its programs wait for `IN` and `OUT`, or for what is set beside them.
    pub(super) reading: Readiness,
    pub(super) writing: Readiness,
}

#[derive(Debug)]
pub(super) struct Stream {
    pub(super) number: SocketNumber,
    pub(super) exchange: usize,
    pub(super) descriptors: Vec<i32>,
}

/// What a program has an epoll set watch, and what has been told of it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) set: SetNumber,
    pub(super) target: Target,
    pub(super) descriptor: i32,
    pub(super) interest: Interest,
    /// A one-shot entry was not told since it was armed.
    is_armed: bool,
    /// A read has found nothing since it was told.
    is_drained: bool,
    /// A write has found no room since it was told.
    is_filled: bool,
}

impl Entry {
    const fn has(&self, flag: u32) -> bool {
        self.interest.events & flag != 0
    }

    /// It is told when it becomes what it is not yet, and at once of what it is.
    const fn arm(&mut self, found: Readiness) {
        self.is_armed = true;
        self.is_drained = !found.has_any(Readiness::IN);
        self.is_filled = !found.has_any(Readiness::OUT);
    }

    fn wanted(&self) -> Readiness {
        let flags = Interest::EDGE | Interest::ONESHOT | Interest::EXCLUSIVE;
        Readiness(self.interest.events & !flags) | Readiness::ALWAYS
    }

    /// Whether its set has to tell of it, where its target is found so.
    pub(super) fn is_due(&self, found: Readiness) -> bool {
        let found = found & self.wanted();
        if !self.has(Interest::EDGE) {
            return self.is_armed && !found.is_empty();
        }
        self.is_armed
            && (self.is_drained && found.has_any(Readiness::IN | Readiness::RDNORM)
                || self.is_filled && found.has_any(Readiness::OUT | Readiness::WRNORM))
    }
}

impl Side {
    pub(super) const fn new(index: usize, sockets: Sockets<MemoryLink>) -> Self {
        Self {
            index,
            sockets,
            streams: Vec::new(),
            listeners: Vec::new(),
            sets: Vec::new(),
            entries: Vec::new(),
            touched: Vec::new(),
            has_news: false,
            descriptor: 2,
            errors: BTreeMap::new(),
            reading: Readiness::IN,
            writing: Readiness::OUT,
        }
    }

    pub(super) const fn next_descriptor(&mut self) -> i32 {
        self.descriptor += 1;
        self.descriptor
    }

    pub(super) fn stream(&self, number: SocketNumber) -> Option<&Stream> {
        self.streams.iter().find(|stream| stream.number == number)
    }

    pub(super) fn exchange(&self, number: SocketNumber) -> Option<usize> {
        self.stream(number).map(|stream| stream.exchange)
    }

    pub(super) fn is_listener(&self, number: SocketNumber) -> bool {
        self.listeners.iter().any(|(other, _)| *other == number)
    }

    pub(super) fn is_open(&self, number: SocketNumber) -> bool {
        self.stream(number).is_some() || self.is_listener(number)
    }

    /// A new stream, with one descriptor.
    pub(super) fn open(&mut self, number: SocketNumber, exchange: usize) -> i32 {
        let descriptor = self.next_descriptor();
        self.streams.push(Stream {
            number,
            exchange,
            descriptors: vec![descriptor],
        });
        descriptor
    }

    pub(super) fn listen(&mut self, options: Options) -> SocketNumber {
        let address = SERVER.parse().unwrap();
        let number = self.sockets.listen(address, options).unwrap();
        let descriptor = self.next_descriptor();
        self.listeners.push((number, descriptor));
        number
    }

    pub(super) fn duplicate(&mut self, number: SocketNumber) -> i32 {
        self.sockets.duplicate(number).unwrap();
        let descriptor = self.next_descriptor();
        let found = self.streams.iter_mut().find(|it| it.number == number);
        found.unwrap().descriptors.push(descriptor);
        descriptor
    }

    pub(super) fn first_descriptor(&self, number: SocketNumber) -> Option<i32> {
        let listener = self.listeners.iter().find(|(other, _)| *other == number);
        let of_stream = || self.stream(number)?.descriptors.first().copied();
        listener.map_or_else(of_stream, |(_, descriptor)| Some(*descriptor))
    }

    pub(super) fn add_set(&mut self) -> SetNumber {
        let set = self.sockets.add_set();
        self.sets.push(set);
        set
    }

    /// `EPOLL_CTL_ADD`; what is told has the entry's descriptor as its data.
    pub(super) fn watch(&mut self, set: SetNumber, target: Target, events: u32) {
        let descriptor = match target {
            Target::Socket(number) => self.first_descriptor(number),
            Target::Set(_) => Some(self.next_descriptor()),
        };
        let Some(descriptor) = descriptor else {
            return;
        };
        let interest = Interest {
            events,
            data: u64::from(descriptor.cast_unsigned()),
        };
        let result = match target {
            Target::Socket(number) => self.sockets.watch(set, number, descriptor, interest),
            Target::Set(inner) => self.sockets.watch_set(set, inner, descriptor, interest),
        };
        assert_eq!(result, Ok(()));
        let mut entry = Entry {
            set,
            target,
            descriptor,
            interest,
            is_armed: false,
            is_drained: false,
            is_filled: false,
        };
        entry.arm(self.found(target));
        self.entries.push(entry);
    }

    /// `EPOLL_CTL_MOD` of a stream's first descriptor.
    pub(super) fn change_watch(&mut self, set: SetNumber, number: SocketNumber, events: u32) {
        let target = Target::Socket(number);
        let found = self.found(target);
        let mut entries = self.entries.iter_mut();
        let entry = entries.find(|entry| entry.set == set && entry.target == target);
        let Some(entry) = entry else {
            return;
        };
        entry.interest.events = events;
        entry.arm(found);
        let interest = entry.interest;
        let descriptor = entry.descriptor;
        let result = self.sockets.change_watch(set, number, descriptor, interest);
        assert_eq!(result, Ok(()));
    }

    /// What a stream is watched for.
    pub(super) fn events(&self, set: SetNumber, number: SocketNumber) -> Option<u32> {
        let mut entries = self.entries.iter();
        let target = Target::Socket(number);
        let entry = entries.find(|entry| entry.set == set && entry.target == target)?;
        Some(entry.interest.events)
    }

    /// `EPOLL_CTL_DEL`, if the stream is watched there.
    pub(super) fn unwatch(&mut self, set: SetNumber, number: SocketNumber) {
        let target = Target::Socket(number);
        let taken = self
            .entries
            .extract_if(.., |entry| entry.set == set && entry.target == target);
        let taken: Vec<Entry> = taken.collect();
        for entry in taken {
            let result = self.sockets.unwatch(set, number, entry.descriptor);
            assert_eq!(result, Ok(()));
        }
    }

    /// A set has told of this: it has to be true, and to be owed.
    pub(super) fn on_told(&mut self, set: SetNumber, event: &Event) {
        let descriptor = event.data;
        let found = self.entries.iter().position(|entry| {
            entry.set == set && u64::from(entry.descriptor.cast_unsigned()) == descriptor
        });
        let index = found.expect("what is told is watched");
        let target = self.entries[index].target;
        let readiness = self.found(target);
        let entry = &mut self.entries[index];
        assert!(entry.is_armed, "a one-shot entry is told once: {entry:?}");
        assert_eq!(event.events, readiness & entry.wanted(), "{entry:?}");
        (entry.is_drained, entry.is_filled) = (false, false);
        entry.is_armed = !entry.has(Interest::ONESHOT);
    }

    pub(super) fn on_drained(&mut self, number: SocketNumber) {
        let entries = self.entries.iter_mut();
        entries
            .filter(|entry| entry.target == Target::Socket(number))
            .for_each(|entry| entry.is_drained = true);
    }

    pub(super) fn on_filled(&mut self, number: SocketNumber) {
        let entries = self.entries.iter_mut();
        entries
            .filter(|entry| entry.target == Target::Socket(number))
            .for_each(|entry| entry.is_filled = true);
    }

    /// What is ready; the look has no effect.
    pub(super) fn found(&self, target: Target) -> Readiness {
        match target {
            Target::Socket(number) => self.sockets.found(number),
            Target::Set(inner) => {
                let set = self.sockets.sets.get(inner).unwrap();
                let is_ready = set.is_ready(|target| self.found(target));
                (Readiness::IN | Readiness::RDNORM).when(is_ready)
            }
        }
    }

    /// What has to be told: as in Linux, room within `TCP_NOTSENT_LOWAT` is told when an acknowledgement comes, and not when what
    /// was written leaves.
    pub(super) fn owed(&self, target: Target) -> Readiness {
        let number = match target {
            Target::Socket(number) => number,
            Target::Set(inner) => {
                let is_ready = self.is_ready(inner);
                return (Readiness::IN | Readiness::RDNORM).when(is_ready);
            }
        };
        let found = self.found(target);
        let options = self.sockets.options(number);
        let is_bounded = options.is_ok_and(|options| options.not_sent_max.is_some());
        let waits = is_bounded && self.sockets.is_sending(number);
        let told_later =
            (Readiness::OUT | Readiness::WRNORM).when(waits && !found.has_any(Readiness::ALWAYS));
        Readiness(found.0 & !told_later.0)
    }

    /// Whether a set would tell of anything; the look has no effect.
    pub(super) fn is_ready(&self, set: SetNumber) -> bool {
        let found = self.sockets.sets.get(set).unwrap();
        found.is_ready(|target| self.owed(target))
    }

    pub(super) fn shutdown(
        &mut self,
        exchanges: &mut [Exchange],
        number: SocketNumber,
        half: Half,
    ) {
        let Some(exchange) = self.exchange(number) else {
            return;
        };
        let exchange = &mut exchanges[exchange];
        let may_reset = exchange.may_reset;
        let own = &mut exchange.ends[self.index];
        own.has_finished |= half != Half::Reading;
        own.reads_no_more |= half != Half::Writing;
        exchange.may_reset |= half != Half::Writing;
        let result = self.sockets.shutdown(number, half);
        let is_allowed = result.is_ok() || result == Err(Errno::NOT_CONNECTED) && may_reset;
        assert!(is_allowed, "{result:?}: {exchange:?}");
        self.touched.push(number);
    }

    /// close(2) of one descriptor.
    pub(super) fn close(
        &mut self,
        exchanges: &mut [Exchange],
        number: SocketNumber,
        descriptor: i32,
    ) {
        let found = self.streams.iter().position(|it| it.number == number);
        let Some(index) = found else {
            return;
        };
        let stream = &mut self.streams[index];
        let before = stream.descriptors.len();
        stream.descriptors.retain(|other| *other != descriptor);
        if stream.descriptors.len() == before {
            return;
        }
        let mut is_reset = None;
        if stream.descriptors.is_empty() {
            let exchange = &mut exchanges[stream.exchange];
            let unread = self.sockets.unread(number) != Ok(0);
            let linger = self.sockets.options(number).unwrap().linger.is_some();
            let own = &mut exchange.ends[self.index];
            (own.has_finished, own.is_closed) = (true, true);
            exchange.may_reset |= unread || linger || !own.saw_end;
            is_reset = Some(exchange.port).filter(|_| linger);
            self.streams.remove(index);
            let target = Target::Socket(number);
            self.entries.retain(|entry| entry.target != target);
        }
        self.sockets.close(number);
        self.touched.push(number);
        if let Some(port) = is_reset {
            let mut left = self.sockets.host.connections();
            assert!(left.all(|it| it.flow.local_port != port), "it is reset");
        }
    }

    pub(super) fn close_all(&mut self, exchanges: &mut [Exchange], number: SocketNumber) {
        while let Some(descriptor) = self
            .stream(number)
            .and_then(|stream| stream.descriptors.last().copied())
        {
            self.close(exchanges, number, descriptor);
        }
    }

    pub(super) fn close_listener(&mut self, number: SocketNumber) {
        let taken = self
            .listeners
            .extract_if(.., |(other, _)| *other == number)
            .next();
        if taken.is_some() {
            let target = Target::Socket(number);
            self.entries.retain(|entry| entry.target != target);
            self.sockets.close(number);
            self.touched.push(number);
        }
    }
}
