//! The TCP ports from which connections are opened. Their answers may come to any queue of the interface, so that each partition has to
//! bring them before the first SYN leaves: what a partition does not bring goes to the kernel, which resets it.
//!
//! Another worker or another process may write a partition's table. Nothing but bits is added there. An owner in another process does not
//! know of them until it is told (OPEN_PORTS of [`crate::handover`]): if an address is added meanwhile, it is without them until then.

use super::{INSIDE, address_at};
use crate::steering::layout::{ADDRESSES_MAX, BITMAP_BYTES, BLOCKED, TCP_PORTS};
use mill_sys::bpf::map::ArrayMemory;
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{Ordering, fence};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The ports of all partitions that are known here, whichever process owns them.
#[derive(Debug, Default)]
pub struct OpenedPorts {
    /// The partitions' tables.
    tables: Mutex<Vec<ArrayMemory>>,
    /// Those that may be opened, if there are any.
    range: Option<RangeInclusive<u16>>,
    /// A bitmap as in the tables, once they are open.
    ports: OnceLock<Vec<u32>>,
}

impl OpenedPorts {
    /// Ports of this range, for the partitions whose tables have these descriptors. Needs no privileges.
    pub fn of<'a>(
        tables: impl Iterator<Item = &'a OwnedFd>,
        range: RangeInclusive<u16>,
    ) -> io::Result<Self> {
        // That of a process of a former version ends there.
        let tables = tables.map(|table| ArrayMemory::open(table.as_fd(), BLOCKED));
        Ok(Self {
            tables: Mutex::new(tables.collect::<io::Result<_>>()?),
            range: Some(range),
            ports: OnceLock::new(),
        })
    }

    /// Opens those of the range that `are_free` leaves, in all tables, at the addresses that they have. The first call does so.
    pub fn open(&self, are_free: impl FnOnce(RangeInclusive<u16>) -> Vec<u16>) {
        // A second caller opens no connection before the first one has written all tables.
        let tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if self.ports.get().is_some() {
            return;
        }
        let free = self.range.clone().map(are_free).unwrap_or_default();
        let _ = self.ports.set(bitmap_of(&free));
        // A table's owner in this process writes an address, and then looks for ports, with such a fence between the two (`write`): it
        // finds the ports, or its address is found here.
        fence(Ordering::SeqCst);
        for table in &*tables {
            for place in 0..ADDRESSES_MAX {
                if address_at(table, place) != (0, 0) {
                    self.write(table, place);
                }
            }
        }
    }

    /// Whether any worker of this process has opened them.
    pub fn are_open(&self) -> bool {
        self.ports.get().is_some()
    }

    /// Whether connections may be opened from this port.
    #[inline]
    pub fn contains(&self, port: u16) -> bool {
        let ports = self.ports.get();
        let word = ports.and_then(|ports| ports.get(usize::from(port / 32)));
        word.is_some_and(|word| word & (1 << (port % 32)) != 0)
    }

    /// Adds the ports, if they are open, to those of the address at `place`, which has been written before.
    pub(super) fn write(&self, table: &ArrayMemory, place: usize) {
        fence(Ordering::SeqCst);
        let words = self.ports.get().into_iter().flatten().enumerate();
        for (word, bits) in words.filter(|(_, bits)| **bits != 0) {
            let offset = TCP_PORTS + place * BITMAP_BYTES + word * 4;
            let word = table.atomic_u32(offset).expect(INSIDE);
            word.fetch_or(*bits, Ordering::Release);
        }
    }
}

fn bitmap_of(ports: &[u16]) -> Vec<u32> {
    let mut bitmap = vec![0; BITMAP_BYTES / 4];
    for port in ports {
        if let Some(word) = bitmap.get_mut(usize::from(port / 32)) {
            *word |= 1 << (port % 32);
        }
    }
    bitmap
}
