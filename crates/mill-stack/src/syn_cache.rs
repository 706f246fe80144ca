//! The SYN cache (RFC 4987 3.4): handshakes of listeners that wait for their last acknowledgement.

use crate::flow::Flow;
use crate::slot::NO_LISTENER;
use crate::timer::Wheel;
use alloc::vec::Vec;
use mill_tcp::listen::HalfOpen;
use mill_tcp::time::Instant;

/// The entries of a host; each has one entry in its wheel.
#[derive(Debug)]
pub(crate) struct SynCache {
    entries: Vec<Entry>,
    vacant: Vec<u32>,
    pub(crate) timers: Wheel,
}

/// One handshake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) half_open: HalfOpen,
    pub(crate) flow: Flow,
    /// The listener; `NO_LISTENER` if the entry is vacant.
    pub(crate) listener: u32,
}

impl SynCache {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            entries: Vec::new(),
            vacant: Vec::new(),
            timers: Wheel::new(now),
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.entries.len() - self.vacant.len()
    }

    /// Adds an entry and arms its timer; the caller has checked that there is room.
    pub(crate) fn insert(&mut self, entry: Entry) -> u32 {
        debug_assert_ne!(entry.listener, NO_LISTENER);
        let index = match self.vacant.pop() {
            Some(index) => {
                if let Some(place) = self.entries.get_mut(index as usize) {
                    *place = entry;
                }
                index
            }
            None => {
                self.entries.push(entry);
                u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX)
            }
        };
        self.timers.arm(index, entry.half_open.retransmit_at);
        index
    }

    /// Entries that ever were in use: all indices are below.
    pub(crate) fn places(&self) -> u32 {
        u32::try_from(self.entries.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn at(&self, index: u32) -> Option<&Entry> {
        let entry = self.entries.get(index as usize)?;
        (entry.listener != NO_LISTENER).then_some(entry)
    }

    pub(crate) fn at_mut(&mut self, index: u32) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(index as usize)?;
        (entry.listener != NO_LISTENER).then_some(entry)
    }

    /// Removes an entry.
    pub(crate) fn remove(&mut self, index: u32) -> Option<Entry> {
        let entry = self.at_mut(index)?;
        let removed = *entry;
        entry.listener = NO_LISTENER;
        self.timers.disarm(index);
        self.vacant.push(index);
        Some(removed)
    }

    /// The indices of a listener's entries; as slow as the cache is long.
    pub(crate) fn of_listener(&self, listener: u32) -> Vec<u32> {
        (0..)
            .zip(&self.entries)
            .filter(|(_, entry)| entry.listener == listener)
            .map(|(index, _)| index)
            .collect()
    }
}
