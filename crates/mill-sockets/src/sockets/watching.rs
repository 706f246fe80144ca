//! epoll_ctl(2) and epoll_wait(2).

use super::{SocketLink, Sockets};
use crate::epoll_set::{EpollSet, Event, Interest, SetNumber};
use crate::errno::Errno;
use crate::socket::{SocketNumber, Watch};

impl<L: SocketLink> Sockets<L> {
    /// An empty set.
    pub fn add_set(&mut self) -> SetNumber {
        self.sets.insert(EpollSet::default())
    }

    /// The set is closed.
    pub fn remove_set(&mut self, set: SetNumber) {
        // Watches of sockets that lead to it find nothing; they go with their sockets.
        self.sets.remove(set);
    }

    /// `EPOLL_CTL_ADD`.
    pub fn watch(
        &mut self,
        set: SetNumber,
        number: SocketNumber,
        descriptor: i32,
        interest: Interest,
    ) -> Result<(), Errno> {
        if self.watch_of(set, number, descriptor).is_some() {
            return Err(Errno::EXISTS);
        }
        self.socket(number)?;
        let found = self.sets.get_mut(set).ok_or(Errno::BAD_DESCRIPTOR)?;
        let entry = found.insert(number, descriptor, interest);
        self.woken.push(set);
        let socket = self.socket_mut(number)?;
        socket.watches.push(Watch { set, entry });
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
        let watch = self.watch_of(set, number, descriptor);
        let watch = watch.ok_or(Errno::NO_ENTRY)?;
        let found = self.sets.get_mut(set).ok_or(Errno::BAD_DESCRIPTOR)?;
        found.modify(watch.entry, interest);
        self.woken.push(set);
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
        if !found.has_queued() {
            return;
        }
        let mut taken = core::mem::take(found);
        taken.collect(count_max, into, |socket| self.readiness(socket));
        if let Some(found) = self.sets.get_mut(set) {
            *found = taken;
        }
    }

    /// Whether a set watches any socket.
    pub fn has_watches(&self, set: SetNumber) -> bool {
        self.sets.get(set).is_some_and(|set| set.sockets() > 0)
    }

    /// A descriptor is closed: sets forget what it had them watch.
    pub(super) fn leave_sets(&mut self, number: SocketNumber, descriptor: i32) {
        let Some(socket) = self.sockets.get_mut(number) else {
            return;
        };
        let sets = &mut self.sets;
        socket.watches.retain(|watch| {
            let Some(set) = sets.get_mut(watch.set) else {
                return false;
            };
            let leaves = set.is_of(watch.entry, descriptor);
            if leaves {
                set.remove(watch.entry);
            }
            !leaves
        });
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
