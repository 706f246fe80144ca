//! Connections in TIME-WAIT: 64 bytes each, in the order in which they end.
//!
//! All wait equally long, so the oldest ends first. Entries have consecutive numbers; one that is forgotten in the
//! middle stays as a hole until it is the oldest.

use crate::flow::Flow;
use crate::flow_table::INDEX_END;
use alloc::collections::VecDeque;
use mill_tcp::time::{Instant, Tick};
use mill_tcp::time_wait::TimeWait;

/// The entries of a host.
#[derive(Debug, Default)]
pub(crate) struct TimeWaitTable {
    entries: VecDeque<Entry>,
    /// Number of the oldest entry, modulo 2^30.
    first: u32,
    count: usize,
}

/// What is left of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) flow: Flow,
    is_hole: bool,
    /// By how many seconds, rounded up, the wait was prolonged since the entry came to its place.
    prolonged_s: u8,
    pub(crate) time_wait: TimeWait,
}

/// Bytes of memory that an entry takes; its place in the flow table comes on top.
pub(crate) const ENTRY_BYTES: usize = size_of::<Entry>();

const _: () = assert!(ENTRY_BYTES <= 64);

impl Entry {
    /// When the entry is checked: at its end as of when it was added, or earlier. An entry whose wait is longer by
    /// then moves to the end of the queue, so that a peer that prolongs its own wait does not delay the entries
    /// behind it.
    fn due(&self) -> Tick {
        let prolonged_ms = u32::from(self.prolonged_s) * 1000;
        Tick(self.time_wait.ends_at.0.wrapping_sub(prolonged_ms))
    }

    /// The wait ended at `before` until now.
    pub(crate) fn note_prolonged(&mut self, before: Tick) {
        let by_ms = u32::try_from(self.time_wait.ends_at.since(before)).unwrap_or(0);
        let by_s = u8::try_from(by_ms.div_ceil(1000)).unwrap_or(u8::MAX);
        self.prolonged_s = self.prolonged_s.saturating_add(by_s);
    }
}

impl TimeWaitTable {
    /// Entries, holes not counted.
    pub(crate) const fn len(&self) -> usize {
        self.count
    }

    /// Places in memory, holes counted.
    pub(crate) fn places(&self) -> usize {
        self.entries.len()
    }

    /// The flow at a place counted from the oldest; `None` for holes.
    pub(crate) fn flow_at_place(&self, place: usize) -> Option<Flow> {
        let entry = self.entries.get(place)?;
        (!entry.is_hole).then_some(entry.flow)
    }

    /// Adds an entry; returns its number. The caller has made room if there is a limit.
    pub(crate) fn push(&mut self, flow: Flow, time_wait: TimeWait) -> u32 {
        let number = self.number_at(self.entries.len());
        self.entries.push_back(Entry {
            flow,
            is_hole: false,
            prolonged_s: 0,
            time_wait,
        });
        self.count += 1;
        number
    }

    pub(crate) fn at(&self, number: u32) -> Option<&Entry> {
        let entry = self.entries.get(self.place(number))?;
        (!entry.is_hole).then_some(entry)
    }

    pub(crate) fn at_mut(&mut self, number: u32) -> Option<&mut Entry> {
        let place = self.place(number);
        let entry = self.entries.get_mut(place)?;
        (!entry.is_hole).then_some(entry)
    }

    /// Forgets an entry.
    pub(crate) fn remove(&mut self, number: u32) {
        if let Some(entry) = self.at_mut(number) {
            entry.is_hole = true;
            self.count -= 1;
        }
        self.skip_holes();
    }

    /// The oldest entry and its number, which is forgotten.
    pub(crate) fn pop_oldest(&mut self) -> Option<(u32, Entry)> {
        let number = self.first;
        let entry = self.pop_front()?;
        debug_assert!(!entry.is_hole, "the oldest is no hole");
        self.count -= 1;
        self.skip_holes();
        Some((number, entry))
    }

    /// When the oldest is due. Its wait may have been prolonged since it was added: then the caller puts it back.
    pub(crate) fn next_expiry(&self, now: Instant) -> Option<Instant> {
        let due = self.entries.front()?.due();
        let millis = u64::try_from(due.since(now.tick())).unwrap_or(0);
        Some(Instant::from_nanos((now.as_millis() + millis) * 1_000_000))
    }

    /// Whether the oldest entry's time has come.
    pub(crate) fn is_due(&self, now: Tick) -> bool {
        let oldest = self.entries.front();
        oldest.is_some_and(|entry| entry.due().is_due(now))
    }

    fn skip_holes(&mut self) {
        while self.entries.front().is_some_and(|entry| entry.is_hole) {
            self.pop_front();
        }
    }

    fn pop_front(&mut self) -> Option<Entry> {
        let entry = self.entries.pop_front()?;
        self.first = self.number_at(1);
        Some(entry)
    }

    fn place(&self, number: u32) -> usize {
        (number.wrapping_sub(self.first) & (INDEX_END - 1)) as usize
    }

    fn number_at(&self, place: usize) -> u32 {
        let place = u32::try_from(place).unwrap_or(0);
        self.first.wrapping_add(place) & (INDEX_END - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_tcp::timestamps::TimestampState;
    use mill_wire::seq::SeqNumber;

    fn flow(port: u16) -> Flow {
        Flow {
            remote_port: port,
            ..Flow::new(
                "10.0.0.1:80".parse().unwrap(),
                "10.0.0.2:1".parse().unwrap(),
            )
        }
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

    #[test]
    fn entries_end_in_their_order_and_holes_are_passed_over() {
        let mut table = TimeWaitTable {
            first: INDEX_END - 3,
            ..TimeWaitTable::default()
        };
        let numbers: alloc::vec::Vec<u32> = (0..8u16)
            .map(|port| table.push(flow(port), ending_at(u32::from(port) + 10)))
            .collect();
        assert_eq!(
            numbers[..5],
            [INDEX_END - 3, INDEX_END - 2, INDEX_END - 1, 0, 1]
        );
        for port in [0, 1, 4] {
            assert_eq!(
                table.at(numbers[port]).unwrap().flow.remote_port,
                u16::try_from(port).unwrap()
            );
            table.remove(numbers[port]);
            assert!(table.at(numbers[port]).is_none());
            table.remove(numbers[port]);
        }
        assert_eq!(table.len(), 5);
        let now = Instant::from_nanos(3_999_999);
        assert_eq!(
            table.next_expiry(now),
            Some(Instant::from_nanos(12_000_000))
        );
        assert!(!table.is_due(Tick(11)) && table.is_due(Tick(12)));
        let ports: alloc::vec::Vec<u16> =
            core::iter::from_fn(|| table.pop_oldest().map(|(_, entry)| entry.flow.remote_port))
                .collect();
        assert_eq!(ports, [2, 3, 5, 6, 7]);
        assert_eq!((table.len(), table.next_expiry(now)), (0, None));
    }
}
