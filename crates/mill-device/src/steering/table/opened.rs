//! The TCP ports that all partitions bring, whichever process owns them: those from which connections are opened, and those at which a process
//! listens that owns others, or none. Answers may come to any queue of the interface, so that each partition has to
//! bring them before the first SYN leaves: what a partition does not bring goes to the kernel, which resets it.
//!
//! Another worker or another process may write a partition's table. Nothing but bits is added there. An owner in another process does not
//! know of them until it is told (OPEN_PORTS of [`crate::handover`]): if an address is added meanwhile, it is without them until then.

use super::{INSIDE, address_at, all_of};
use crate::steering::flow::address_of;
use crate::steering::layout::{ADDRESSES_MAX, BITMAP_BYTES, BLOCKED, CLOSING_PORTS, TCP_PORTS};
use mill_sys::bpf::map::ArrayMemory;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering, fence};
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

    /// Has all tables bring what is for a listener of this process. The kernel may have accepted connections there until now: they are
    /// looked up there, which the partitions' owners end ([`super::Table::end_kernel_flows`]).
    pub fn listen(&self, at: SocketAddr) {
        let tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        for table in &*tables {
            super::look_up_kernel_flows(table);
            for place in 0..ADDRESSES_MAX {
                let own = address_of(address_at(table, place));
                if own.is_some_and(|own| own == at.ip() || all_of(own) == at.ip()) {
                    let (word, bit) = bit_of(table, TCP_PORTS, (place, at.port()));
                    word.fetch_or(bit, Ordering::Release);
                }
            }
            // Once more: the owner may have found no connection of the kernel's at a port that this process was about to bring.
            super::look_up_kernel_flows(table);
        }
    }

    /// Has no table bring what is for ports of addresses at which no process listens any more, as `is_listened` says: SYNs go to the kernel
    /// from then on, while connections go on. Ports that are open for connections stay.
    pub fn close_unlistened(&self, mut is_listened: impl FnMut(SocketAddr) -> bool) {
        let tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let mut is_listened = |(_, own, at): &Listened| {
            // One of both families has the unspecified address of IPv6.
            let mut addresses = [*own, all_of(*own), Ipv6Addr::UNSPECIFIED.into()].into_iter();
            addresses.any(|address| is_listened(SocketAddr::new(address, at.1)))
        };
        let all = (0..tables.len()).flat_map(|number| self.listened(&tables, number));
        let ended: Vec<Listened> = all.filter(|one| !is_listened(one)).collect();
        for one in ended {
            let Some(table) = tables.get(one.0) else {
                continue;
            };
            let (closing, bit) = bit_of(table, CLOSING_PORTS, one.2);
            let (served, _) = bit_of(table, TCP_PORTS, one.2);
            closing.fetch_or(bit, Ordering::Release);
            served.fetch_and(!bit, Ordering::AcqRel);
            // A process that listens is told before it sets the bit.
            if is_listened(&one) {
                served.fetch_or(bit, Ordering::Release);
            }
        }
    }

    /// What a table brings beside ports that are opened.
    fn listened(&self, tables: &[ArrayMemory], number: usize) -> Vec<Listened> {
        let mut found = Vec::new();
        let Some(table) = tables.get(number) else {
            return found;
        };
        for place in 0..ADDRESSES_MAX {
            let Some(own) = address_of(address_at(table, place)) else {
                continue;
            };
            let ports = (0..=u16::MAX).step_by(32).flat_map(|first| {
                let (word, _) = bit_of(table, TCP_PORTS, (place, first));
                let bits = word.load(Ordering::Acquire);
                let is_set = move |bit: &u16| bits & (1 << bit) != 0;
                (0..32).filter(is_set).map(move |bit| first + bit)
            });
            let ports: Vec<u16> = ports.collect();
            let may_be_opened = |port: &u16| {
                let range = self.range.as_ref();
                range.is_some_and(|range| range.contains(port))
            };
            // Where ports are open, those of listeners among them are not told from them.
            let are_open = ports.iter().filter(|port| may_be_opened(port)).count() > LISTENERS_MAX;
            let kept = ports
                .into_iter()
                .filter(|port| !are_open || !may_be_opened(port));
            found.extend(kept.map(|port| (number, own, (place, port))));
        }
        found
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

/// More ports than these are opened ones.
const LISTENERS_MAX: usize = 1024;

/// A table by its number, the address at a place of it, and that place with a port.
type Listened = (usize, IpAddr, (usize, u16));

/// A port's word in a bitmap, and its bit there.
fn bit_of(table: &ArrayMemory, bitmaps: usize, at: (usize, u16)) -> (&AtomicU32, u32) {
    let (place, port) = at;
    let offset = bitmaps + place * BITMAP_BYTES + usize::from(port / 32) * 4;
    (table.atomic_u32(offset).expect(INSIDE), 1 << (port % 32))
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
