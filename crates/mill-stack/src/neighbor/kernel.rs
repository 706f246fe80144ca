//! Neighbours that the kernel resolves: it sends and receives ARP and neighbour discovery, and reports its table.
//!
//! What remains of the state machine: an unknown neighbour is requested from the kernel as often as a broadcast would
//! be sent; the address that the kernel reports is used; and once it is old and was not confirmed, the kernel is told
//! to probe it, and reports if the neighbour is gone.

use super::entry::{Entry, State};
use super::own::Own;
use super::{Neighbors, REACHABLE_MS, RETRANSMIT};
use crate::config::{Neighboring, Prefix};
use crate::limits::Limits;
use alloc::vec::Vec;
use core::net::IpAddr;
use mill_tcp::time::{Duration, Instant};
use mill_wire::ethernet::MacAddress;

impl Neighbors {
    /// The kernel's neighbours, as far as reported, on an interface that it answers for: `addresses` are neither
    /// announced nor defended here.
    pub fn of_kernel(
        mac: MacAddress,
        addresses: &[Prefix],
        limits: &Limits,
        seed: u64,
        now: Instant,
    ) -> Self {
        let mut new = Self::new(mac, &[], false, limits, seed, now);
        new.neighboring = Neighboring::Kernel;
        new.own = Own::of_kernel(addresses);
        new
    }

    /// The kernel reports the Ethernet address of a neighbour, or that there is none. Returns the former Ethernet
    /// address, if it was another.
    pub fn tell(
        &mut self,
        address: IpAddr,
        mac: Option<MacAddress>,
        now: Instant,
    ) -> Option<MacAddress> {
        match mac.filter(|mac| mac.is_unicast()) {
            Some(mac) => self.set_known(address, mac, now),
            None => {
                self.set_unknown(address, now);
                None
            }
        }
    }

    /// Appends the neighbours that the kernel has to resolve.
    pub fn take_wanted(&mut self, into: &mut Vec<IpAddr>) {
        into.append(&mut self.wanted);
    }

    /// The Ethernet address of a neighbour, if it is known.
    pub fn known(&self, address: IpAddr) -> Option<MacAddress> {
        let entry = self.entries.get(&address)?;
        entry.is_known().then_some(entry.mac)
    }

    /// Whether neighbours are the kernel's.
    pub const fn is_of_kernel(&self) -> bool {
        matches!(self.neighboring, Neighboring::Kernel)
    }

    /// Our Ethernet address has changed.
    pub const fn set_mac(&mut self, mac: MacAddress) {
        self.mac = mac;
    }

    /// Our addresses have changed. New ones are announced if that is left to us.
    pub fn set_addresses(&mut self, addresses: &[Prefix], now: Instant) {
        if self.is_of_kernel() {
            self.own = Own::of_kernel(addresses);
        } else {
            let own = Own::new(self.mac, addresses, false, &mut self.random, now);
            self.own.replace(own);
        }
        self.outdate();
    }

    /// Cached look-ups are to be repeated.
    pub(crate) const fn outdate(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
    }

    /// It remains in use while the kernel probes it.
    pub(super) fn renew(&mut self, address: IpAddr, now: Instant) -> MacAddress {
        let until = now + RENEWAL;
        self.want(address);
        self.arm(until);
        let entry = self.entries.get_mut(&address);
        entry.map_or(MacAddress::UNSPECIFIED, |entry| {
            entry.state = State::Reachable { until };
            entry.mac
        })
    }

    /// One that is wanted already, or finds no room, is wanted again a second later.
    pub(super) fn want(&mut self, address: IpAddr) {
        if self.wanted.len() >= WANTED_MAX {
            self.dropped += 1;
        } else if !self.wanted.contains(&address) {
            self.wanted.push(address);
        }
    }

    fn set_known(&mut self, address: IpAddr, mac: MacAddress, now: Instant) -> Option<MacAddress> {
        let until = now + RENEWAL;
        let state = State::Reachable { until };
        let Some(entry) = self.entries.get_mut(&address) else {
            // Of the many that the kernel may know, unused ones are dropped first.
            let entry = Entry {
                state,
                ..Entry::learnt(mac, now)
            };
            self.insert(address, entry);
            self.arm(until);
            self.outdate();
            return None;
        };
        let was_known = entry.is_known();
        let before = core::mem::replace(&mut entry.mac, mac);
        entry.state = state;
        if before != mac {
            entry.changed = now;
        }
        self.arm(until);
        if !was_known {
            self.resolved.push(address);
        }
        if !was_known || before != mac {
            self.outdate();
        }
        (was_known && before != mac).then_some(before)
    }

    fn set_unknown(&mut self, address: IpAddr, now: Instant) {
        let Some(entry) = self.entries.get_mut(&address) else {
            return;
        };
        match entry.state {
            State::Incomplete { .. } => {
                let until = now + RETRANSMIT;
                entry.state = State::Failed { until };
                self.failed.push(address);
                self.arm(until);
            }
            State::Failed { .. } => {}
            // The kernel may have dropped it only because it does not see our packets: the next look-up requests it.
            _ => {
                self.entries.remove(&address);
                self.outdate();
            }
        }
    }
}

/// How long an address that the kernel reported is used without a new request, if the layers above do not confirm it.
const RENEWAL: Duration = Duration::from_millis(REACHABLE_MS);

/// Neighbours that may be wanted at once. Each costs the kernel a broadcast.
const WANTED_MAX: usize = 256;
