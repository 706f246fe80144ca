//! The state of each flow: a connection, a handshake that waits for its last acknowledgement, or TIME-WAIT.

use crate::flow::Flow;
use crate::flow_directory::FlowDirectory;
use crate::flow_table::{FlowTable, Target};
use crate::siphash::Key;
use crate::slot::{SlotFlags, Slots};
use crate::syn_cache::{self, SynCache};
use crate::time_wait_table::{self, TimeWaitTable};
use crate::timer::Wheel;
use alloc::boxed::Box;
use mill_tcp::time::{Instant, Tick};
use mill_tcp::time_wait::TimeWait;

/// The flow table, and the targets of its entries except slots.
///
/// Invariant: each handshake, each entry in TIME-WAIT, and each slot whose connection has not ended has one entry in the
/// table, and there are no others.
#[derive(Debug)]
pub(crate) struct Flows {
    key: Key,
    table: FlowTable,
    syn_cache: SynCache,
    time_wait: TimeWaitTable,
    /// Flows of connections that ended so far, TIME-WAIT included.
    vacated: u64,
    /// Where other processes find them, once there are any.
    directory: Option<Box<dyn FlowDirectory>>,
}

impl Flows {
    /// The table is keyed by `key`.
    pub(crate) fn new(key: Key, now: Instant) -> Self {
        Self {
            key,
            table: FlowTable::new(),
            syn_cache: SynCache::new(now),
            time_wait: TimeWaitTable::default(),
            vacated: 0,
            directory: None,
        }
    }

    /// Whether other processes find the flows.
    #[inline]
    pub(crate) const fn is_listed(&self) -> bool {
        self.directory.is_some()
    }

    /// Lists all flows, and from now on those that come and go. Cost: that of a change for each flow.
    pub(crate) fn list<Q>(&mut self, slots: &Slots<Q>, mut directory: Box<dyn FlowDirectory>) {
        for place in 0..self.time_wait.places() {
            if let Some(flow) = self.time_wait.flow_at_place(place) {
                directory.insert(&flow);
                directory.note_time_wait(&flow);
            }
        }
        let half_open = (0..self.syn_cache.places()).filter_map(|index| self.syn_cache.at(index));
        for entry in half_open {
            directory.insert(&entry.flow);
        }
        for (_, slot) in slots.iter() {
            if !slot.flags.has(SlotFlags::ENDED) {
                directory.insert(&slot.flow);
            }
        }
        self.directory = Some(directory);
    }

    /// Whether another process has a connection, or the handshake of one, of this flow.
    pub(crate) fn is_elsewhere(&self, flow: &Flow) -> bool {
        let directory = self.directory.as_ref();
        directory.is_some_and(|directory| directory.is_elsewhere(flow))
    }

    /// The flow is on the way to another process: it stays listed.
    pub(crate) fn note_moving(&mut self, flow: &Flow) {
        if let Some(directory) = &mut self.directory {
            directory.note_moving(flow);
        }
    }

    /// A flow's hash in the table.
    #[inline]
    pub(crate) fn hash(&self, flow: &Flow) -> u64 {
        flow.table_hash(self.key)
    }

    /// The state of a flow.
    #[inline]
    pub(crate) fn find<Q>(&self, slots: &Slots<Q>, flow: &Flow, hash: u64) -> Option<Target> {
        self.table.find(hash, |target| match target {
            Target::Connection(index) => slots.at(index).is_some_and(|slot| slot.flow == *flow),
            Target::HalfOpen(index) => {
                let entry = self.syn_cache.at(index);
                entry.is_some_and(|entry| entry.flow == *flow)
            }
            Target::TimeWait(number) => {
                let entry = self.time_wait.at(number);
                entry.is_some_and(|entry| entry.flow == *flow)
            }
        })
    }

    pub(crate) const fn len(&self) -> usize {
        self.table.len()
    }

    /// Bytes of memory of the table and of TIME-WAIT.
    pub(crate) fn size_bytes(&self) -> usize {
        self.table.size_bytes() + self.time_wait.places() * time_wait_table::ENTRY_BYTES
    }

    /// Flows of connections that ended so far: while it stays the same, no port has become vacant.
    pub(crate) const fn vacated(&self) -> u64 {
        self.vacated
    }

    pub(crate) const fn syn_cache(&self) -> &SynCache {
        &self.syn_cache
    }

    pub(crate) fn half_open_mut(&mut self, index: u32) -> Option<&mut syn_cache::Entry> {
        self.syn_cache.at_mut(index)
    }

    pub(crate) const fn half_open_timers(&mut self) -> &mut Wheel {
        &mut self.syn_cache.timers
    }

    pub(crate) const fn time_wait(&self) -> &TimeWaitTable {
        &self.time_wait
    }

    pub(crate) fn time_wait_mut(&mut self, number: u32) -> Option<&mut time_wait_table::Entry> {
        self.time_wait.at_mut(number)
    }

    /// A connection in this slot, for a flow without entry.
    pub(crate) fn insert_connection(&mut self, flow: &Flow, hash: u64, index: u32) {
        self.table.insert(hash, Target::Connection(index));
        self.enter(flow);
    }

    /// A handshake for a flow without entry.
    pub(crate) fn insert_half_open(&mut self, hash: u64, entry: syn_cache::Entry) {
        let index = self.syn_cache.insert(entry);
        self.table.insert(hash, Target::HalfOpen(index));
        self.enter(&entry.flow);
    }

    /// The handshake is complete; the connection is in this slot.
    pub(crate) fn establish(&mut self, hash: u64, half_open: u32, index: u32) {
        self.syn_cache.remove(half_open);
        self.replace(hash, Target::HalfOpen(half_open), Target::Connection(index));
    }

    /// Removes a handshake.
    pub(crate) fn remove_half_open(&mut self, index: u32) -> Option<syn_cache::Entry> {
        let entry = self.syn_cache.remove(index)?;
        self.remove(&entry.flow, self.hash(&entry.flow), Target::HalfOpen(index));
        Some(entry)
    }

    /// The connection in this slot has ended.
    pub(crate) fn remove_connection(&mut self, flow: &Flow, index: u32) {
        self.remove(flow, self.hash(flow), Target::Connection(index));
        self.vacated += 1;
    }

    /// The connection in this slot has ended, and its flow waits. The caller has made room.
    pub(crate) fn begin_time_wait(&mut self, flow: &Flow, index: u32, time_wait: TimeWait) {
        let number = self.time_wait.push(*flow, time_wait);
        let hash = self.hash(flow);
        self.replace(hash, Target::Connection(index), Target::TimeWait(number));
        if let Some(directory) = &mut self.directory {
            directory.note_time_wait(flow);
        }
    }

    /// Removes the oldest entry in TIME-WAIT if its time is over; returns whether it was. If its wait was restarted
    /// since it was added, it moves to the end.
    pub(crate) fn expire_time_wait(&mut self, now: Tick) -> bool {
        if !self.time_wait.is_due(now) {
            return false;
        }
        let Some((number, entry)) = self.time_wait.pop_oldest() else {
            return false;
        };
        let hash = self.hash(&entry.flow);
        let target = Target::TimeWait(number);
        if entry.time_wait.ends_at.is_due(now) {
            self.remove(&entry.flow, hash, target);
            self.vacated += 1;
        } else {
            let new = self.time_wait.push(entry.flow, entry.time_wait);
            self.replace(hash, target, Target::TimeWait(new));
        }
        true
    }

    /// Forgets the oldest entries in TIME-WAIT while there are as many as there may be, or while the places that later
    /// ones have left (flows that were opened anew) take as much memory again; how many.
    pub(crate) fn make_room_in_time_wait(&mut self, count_max: usize) -> u64 {
        let before = self.vacated;
        while (self.time_wait.len() >= count_max || self.time_wait.places() >= 2 * count_max)
            && let Some((number, entry)) = self.time_wait.pop_oldest()
        {
            let hash = self.hash(&entry.flow);
            self.remove(&entry.flow, hash, Target::TimeWait(number));
            self.vacated += 1;
        }
        self.vacated - before
    }

    /// Removes an entry in TIME-WAIT.
    pub(crate) fn remove_time_wait(&mut self, flow: &Flow, number: u32, hash: u64) {
        self.time_wait.remove(number);
        self.remove(flow, hash, Target::TimeWait(number));
        self.vacated += 1;
    }

    fn remove(&mut self, flow: &Flow, hash: u64, target: Target) {
        let was_there = self.table.remove(hash, target);
        debug_assert!(was_there, "{target:?} stood for no flow");
        if let Some(directory) = &mut self.directory {
            directory.remove(flow);
        }
    }

    fn enter(&mut self, flow: &Flow) {
        if let Some(directory) = &mut self.directory {
            directory.insert(flow);
        }
    }

    fn replace(&mut self, hash: u64, target: Target, new: Target) {
        let was_there = self.table.replace(hash, target, new);
        debug_assert!(was_there, "{target:?} stood for no flow");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::ByteQueue;
    use mill_tcp::connection::Connection;
    use mill_tcp::timestamps::TimestampState;
    use mill_wire::seq::SeqNumber;

    fn flow(port: u16) -> Flow {
        let remote = core::net::SocketAddr::from(([10, 0, 0, 2], port));
        Flow::new("10.0.0.1:80".parse().unwrap(), remote)
    }

    fn ending_at(tick: u32) -> TimeWait {
        TimeWait {
            snd_nxt: SeqNumber(0),
            rcv_nxt: SeqNumber(0),
            window: 0,
            timestamps: false,
            ts: TimestampState::default(),
            ends_at: Tick(tick),
        }
    }

    /// Connections of so many flows, in slots of the same numbers.
    fn connected(count: u16) -> (Flows, Slots<ByteQueue>) {
        let mut flows = Flows::new(Key::new([7; 16]), Instant::default());
        let mut slots = Slots::new();
        for port in 0..count {
            let index = slots.insert(Connection::default(), flow(port));
            flows.insert_connection(&flow(port), flows.hash(&flow(port)), index);
        }
        (flows, slots)
    }

    fn find(flows: &Flows, slots: &Slots<ByteQueue>, port: u16) -> Option<Target> {
        flows.find(slots, &flow(port), flows.hash(&flow(port)))
    }

    #[test]
    fn a_flow_is_found_as_what_stands_for_it() {
        let (mut flows, slots) = connected(2);
        flows.begin_time_wait(&flow(1), 1, ending_at(10));
        assert_eq!(find(&flows, &slots, 0), Some(Target::Connection(0)));
        assert_eq!(find(&flows, &slots, 1), Some(Target::TimeWait(0)));
        assert_eq!(find(&flows, &slots, 2), None);
        flows.remove_connection(&flow(0), 0);
        flows.remove_time_wait(&flow(1), 0, flows.hash(&flow(1)));
        assert_eq!((flows.len(), flows.vacated()), (0, 2));
        assert_eq!(flows.time_wait().len(), 0);
    }

    #[test]
    fn a_wait_that_began_anew_goes_to_the_end_and_stays_found() {
        let (mut flows, slots) = connected(1);
        flows.begin_time_wait(&flow(0), 0, ending_at(10));
        let entry = flows.time_wait_mut(0).unwrap();
        entry.time_wait.ends_at = Tick(1_010);
        entry.note_prolonged(Tick(10));
        assert!(!flows.expire_time_wait(Tick(9)));
        assert!(flows.expire_time_wait(Tick(10)));
        assert_eq!(find(&flows, &slots, 0), Some(Target::TimeWait(1)));
        assert_eq!(flows.vacated(), 0);
        assert!(flows.expire_time_wait(Tick(1_010)));
        assert_eq!((flows.len(), flows.vacated()), (0, 1));
    }

    #[test]
    fn room_in_time_wait_is_made_by_forgetting_the_oldest() {
        let (mut flows, slots) = connected(4);
        for port in 0..4 {
            flows.begin_time_wait(&flow(port), port.into(), ending_at(10));
        }
        assert_eq!(flows.make_room_in_time_wait(5), 0);
        assert_eq!(flows.make_room_in_time_wait(3), 2);
        assert_eq!(find(&flows, &slots, 1), None);
        assert_eq!(find(&flows, &slots, 2), Some(Target::TimeWait(2)));
    }
}
