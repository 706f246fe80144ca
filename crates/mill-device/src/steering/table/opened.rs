//! The TCP ports from which connections are opened. Their answers may come to any queue of the interface, so that each partition has to
//! bring them before the first SYN leaves: what a partition does not bring goes to the kernel, which resets it.
//!
//! Another worker or another process may write a partition's table. Nothing but bits is added there, and where the bits were added
//! before its owner has opened the ports too, an address that changes meanwhile is without them until then.

use super::{INSIDE, address_at};
use crate::steering::layout::{ADDRESSES_MAX, BITMAP_BYTES, BLOCKED, TCP_PORTS};
use mill_sys::bpf::map::ArrayMemory;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The ports of all partitions that are known here, whichever process owns them.
#[derive(Debug, Default)]
pub struct OpenedPorts(Mutex<Opened>);

#[derive(Debug, Default)]
struct Opened {
    /// The partitions' tables.
    tables: Vec<ArrayMemory>,
    /// A bitmap as in the tables; empty until there are any.
    ports: Vec<u32>,
}

impl OpenedPorts {
    /// For the partitions whose tables have these descriptors. Needs no privileges.
    pub fn of<'a>(tables: impl Iterator<Item = &'a OwnedFd>) -> io::Result<Self> {
        // That of a process of a former version ends there.
        let tables = tables.map(|table| ArrayMemory::open(table.as_fd(), BLOCKED));
        Ok(Self(Mutex::new(Opened {
            tables: tables.collect::<io::Result<_>>()?,
            ports: Vec::new(),
        })))
    }

    /// Opens these ports in all tables, at the addresses that they have. The first call decides which.
    ///
    /// A table's owner writes an address first, and then asks for the ports: one of the two sees what the other has written.
    pub fn open(&self, ports: impl FnOnce() -> Vec<u16>) {
        let mut opened = self.lock();
        if opened.ports.is_empty() {
            opened.ports = bitmap_of(&ports());
        }
        for table in &opened.tables {
            for place in 0..ADDRESSES_MAX {
                if address_at(table, place) != (0, 0) {
                    opened.write(table, place);
                }
            }
        }
    }

    /// Whether connections may be opened from this port.
    pub fn contains(&self, port: u16) -> bool {
        let opened = self.lock();
        let word = opened.ports.get(usize::from(port / 32));
        word.is_some_and(|word| word & (1 << (port % 32)) != 0)
    }

    /// Adds the ports to those of the address at `place`.
    pub(super) fn write(&self, table: &ArrayMemory, place: usize) {
        self.lock().write(table, place);
    }

    fn lock(&self) -> MutexGuard<'_, Opened> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Opened {
    fn write(&self, table: &ArrayMemory, place: usize) {
        for (word, bits) in self.ports.iter().enumerate() {
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
