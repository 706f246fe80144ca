//! epoll_ctl(2) and epoll_wait(2).

use super::{SocketLink, Sockets};
use crate::epoll_set::{EpollSet, Event, Interest, SetNumber, Target};
use crate::errno::Errno;
use crate::readiness::Readiness;
use crate::socket::{SocketNumber, Watch};

impl<L: SocketLink> Sockets<L> {
    /// An empty set.
    pub fn add_set(&mut self) -> SetNumber {
        self.sets.insert(EpollSet::default())
    }

    /// The set is closed.
    pub fn remove_set(&mut self, set: SetNumber) {
        // Watches of sockets that lead to it find nothing; they go with their sockets.
        if let Some(removed) = self.sets.remove(set) {
            self.end_watches(&removed.watches);
        }
    }

    /// What is watched there is no more.
    pub(super) fn end_watches(&mut self, watches: &[Watch]) {
        for watch in watches {
            if let Some(set) = self.sets.get_mut(watch.set) {
                set.remove(watch.entry);
            }
        }
    }

    /// `EPOLL_CTL_ADD` of a set.
    pub fn watch_set(
        &mut self,
        set: SetNumber,
        inner: SetNumber,
        descriptor: i32,
        interest: Interest,
    ) -> Result<(), Errno> {
        let is_ready = self.is_set_ready(inner);
        let found = self.sets.get_mut(set).ok_or(Errno::BAD_DESCRIPTOR)?;
        let readiness = Readiness::ARRIVALS.when(is_ready);
        let entry = found.insert(Target::Set(inner), descriptor, interest, readiness);
        let watch = Watch { set, entry };
        let inner = self.sets.get_mut(inner).ok_or(Errno::BAD_DESCRIPTOR)?;
        inner.watches.push(watch);
        self.woken.push(set);
        self.wake_set(watch, Readiness::NONE);
        Ok(())
    }

    /// `EPOLL_CTL_MOD` of a set.
    pub fn change_watch_of_set(
        &mut self,
        set: SetNumber,
        inner: SetNumber,
        descriptor: i32,
        interest: Interest,
    ) -> Result<(), Errno> {
        let readiness = Readiness::ARRIVALS.when(self.is_set_ready(inner));
        let watch = self.watch_of_set(set, inner, descriptor)?;
        if let Some(found) = self.sets.get_mut(set) {
            found.modify(watch.entry, interest, readiness);
        }
        self.woken.push(set);
        self.wake_set(watch, Readiness::NONE);
        Ok(())
    }

    /// `EPOLL_CTL_DEL` of a set.
    pub fn unwatch_set(
        &mut self,
        set: SetNumber,
        inner: SetNumber,
        descriptor: i32,
    ) -> Result<(), Errno> {
        let watch = self.watch_of_set(set, inner, descriptor)?;
        self.end_watches(&[watch]);
        if let Some(inner) = self.sets.get_mut(inner) {
            inner.watches.retain(|other| *other != watch);
        }
        Ok(())
    }

    fn watch_of_set(
        &self,
        set: SetNumber,
        inner: SetNumber,
        descriptor: i32,
    ) -> Result<Watch, Errno> {
        let found = self.sets.get(set).ok_or(Errno::BAD_DESCRIPTOR)?;
        let mut watches = self.sets.get(inner).ok_or(Errno::NO_ENTRY)?.watches.iter();
        watches
            .find(|watch| watch.set == set && found.is_of(watch.entry, descriptor))
            .copied()
            .ok_or(Errno::NO_ENTRY)
    }

    /// Whether epoll_wait(2) of a set would find something: what poll(2) says of it.
    pub fn is_set_ready(&self, set: SetNumber) -> bool {
        self.is_ready_within(set, NESTED_MAX)
    }

    fn is_ready_within(&self, set: SetNumber, depth: u32) -> bool {
        let found = self.sets.get(set).filter(|_| depth > 0);
        found.is_some_and(|set| {
            set.is_ready(|target| match target {
                Target::Socket(number) => self.readiness(number),
                Target::Set(inner) => {
                    Readiness::ARRIVALS.when(self.is_ready_within(inner, depth - 1))
                }
            })
        })
    }

    /// An entry of a set may be ready, and so may be what watches the set.
    pub(super) fn wake_set(&mut self, watch: Watch, kind: Readiness) {
        let mut reached = vec![(watch, kind)];
        // Linux refuses loops and sets nested deeper, before the stack hears of them.
        for _ in 0..NESTED_MAX {
            for (watch, kind) in core::mem::take(&mut reached) {
                let Some(set) = self.sets.get_mut(watch.set) else {
                    continue;
                };
                if !set.has_queued() {
                    self.woken.push(watch.set);
                }
                set.on_change(watch.entry, kind);
                let outer = set.watches.iter();
                reached.extend(outer.map(|watch| (*watch, Readiness::ARRIVALS)));
            }
        }
    }

    /// `EPOLL_CTL_ADD`.
    pub fn watch(
        &mut self,
        set: SetNumber,
        number: SocketNumber,
        descriptor: i32,
        interest: Interest,
    ) -> Result<(), Errno> {
        if !interest.is_taken() {
            return Err(Errno::INVALID);
        }
        if self.watch_of(set, number, descriptor).is_some() {
            return Err(Errno::EXISTS);
        }
        self.socket(number)?;
        let readiness = self.readiness(number);
        let found = self.sets.get_mut(set).ok_or(Errno::BAD_DESCRIPTOR)?;
        let entry = found.insert(Target::Socket(number), descriptor, interest, readiness);
        let is_queued = found.has_queued();
        self.woken.push(set);
        let socket = self.socket_mut(number)?;
        socket.watches.push(Watch { set, entry });
        if is_queued {
            self.wake_set(Watch { set, entry }, Readiness::NONE);
        }
        Ok(())
    }

    /// The event of a one-shot entry was told, by the set that it comes from.
    pub fn end_one_shot(
        &mut self,
        set: SetNumber,
        number: SocketNumber,
        descriptor: i32,
    ) -> Result<(), Errno> {
        let watch = self.watch_of(set, number, descriptor);
        let entry = watch.ok_or(Errno::NO_ENTRY)?.entry;
        if let Some(set) = self.sets.get_mut(set) {
            set.end_one_shot(entry);
        }
        Ok(())
    }

    /// `EPOLL_CTL_MOD`.
    pub fn change_watch(
        &mut self,
        set: SetNumber,
        number: SocketNumber,
        descriptor: i32,
        interest: Interest,
    ) -> Result<(), Errno> {
        if interest.events & Interest::EXCLUSIVE != 0 {
            return Err(Errno::INVALID);
        }
        let watch = self.watch_of(set, number, descriptor);
        let watch = watch.ok_or(Errno::NO_ENTRY)?;
        let readiness = self.readiness(number);
        let found = self.sets.get_mut(set).ok_or(Errno::BAD_DESCRIPTOR)?;
        if found.is_exclusive(watch.entry) {
            return Err(Errno::INVALID);
        }
        found.modify(watch.entry, interest, readiness);
        self.woken.push(set);
        self.wake_set(watch, Readiness::NONE);
        Ok(())
    }

    /// `EPOLL_CTL_DEL`.
    pub fn unwatch(
        &mut self,
        set: SetNumber,
        number: SocketNumber,
        descriptor: i32,
    ) -> Result<(), Errno> {
        let watch = self.watch_of(set, number, descriptor);
        let watch = watch.ok_or(Errno::NO_ENTRY)?;
        if let Some(set) = self.sets.get_mut(set) {
            set.remove(watch.entry);
        }
        let socket = self.socket_mut(number)?;
        socket.watches.retain(|other| *other != watch);
        Ok(())
    }

    /// epoll_wait(2): appends up to `count_max` events.
    pub fn collect(&mut self, set: SetNumber, count_max: usize, into: &mut Vec<Event>) {
        // The set is taken out while sockets are looked at.
        let Some(found) = self.sets.get_mut(set) else {
            return;
        };
        found.waits += 1;
        if !found.has_queued() {
            return;
        }
        let mut taken = core::mem::take(found);
        taken.collect(count_max, into, |target| match target {
            Target::Socket(socket) => self.readiness(socket),
            Target::Set(inner) => Readiness::ARRIVALS.when(self.is_set_ready(inner)),
        });
        if let Some(found) = self.sets.get_mut(set) {
            *found = taken;
        }
    }

    /// Whether a set watches any socket.
    pub fn has_watches(&self, set: SetNumber) -> bool {
        self.sets.get(set).is_some_and(|set| set.sockets() > 0)
    }

    fn watch_of(&self, set: SetNumber, number: SocketNumber, descriptor: i32) -> Option<Watch> {
        let socket = self.sockets.get(number)?;
        let found = self.sets.get(set)?;
        let mut watches = socket.watches.iter();
        watches
            .find(|watch| watch.set == set && found.is_of(watch.entry, descriptor))
            .copied()
    }
}

/// How deep sets are nested (`EP_MAX_NESTS` of Linux, and the set itself).
const NESTED_MAX: u32 = 5;
