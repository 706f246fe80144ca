//! From IP address to Ethernet address: the cache of ARP (RFC 826) and neighbour discovery (RFC 4861 7).
//!
//! One state machine serves both, as RFC 1122 2.3.2.1 requires:
//!
//! ```text
//!              resolve                answer                  30 s                resolve
//!   (nothing) ────────> Incomplete ───────────> Reachable ──────────> Stale ────────────────> Delay
//!                         │ 3 × 1 s                 ^                                          │ 5 s
//!                         v                         │ answer, confirm                          v
//!                       Failed (1 s)                └──────────────────────────────────────  Probe
//!                         ^ Incomplete again <────────────────────────── 3 × 1 s unicast ──────┘
//! ```
//!
//! The order of calls: `on_arp`, `on_ndp` and `expire` when packets and timers arrive, `resolve` and `confirm` as
//! packets leave; then `next_outgoing` until it returns `None`, and `take_resolved`, `take_failed` and
//! `take_forgotten` for flows that wait.

use crate::config::{Neighboring, Prefix};
use crate::limits::Limits;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::net::IpAddr;
use entry::{Entry, State};
use mill_tcp::random::Random;
use mill_tcp::time::{Duration, Instant};
use mill_wire::ethernet::MacAddress;
pub use outgoing::Outgoing;
use own::Own;

/// The frames to send.
pub mod outgoing;

/// One neighbour.
mod entry;

/// Our own addresses: announced, defended, checked for a second owner.
mod own;

/// Packets from neighbours.
pub mod receive;

/// Neighbours that the kernel resolves.
mod kernel;

/// The neighbours of one link, and our own addresses there.
#[derive(Debug)]
pub struct Neighbors {
    mac: MacAddress,
    own: Own,
    entries: BTreeMap<IpAddr, Entry>,
    count_max: usize,
    /// Changes with every mapping.
    epoch: u32,
    /// Not later than the first entry that is due.
    due: Option<Instant>,
    outgoing: VecDeque<Outgoing>,
    neighboring: Neighboring,
    /// Neighbours that the kernel has to resolve.
    wanted: Vec<IpAddr>,
    resolved: Vec<IpAddr>,
    failed: Vec<IpAddr>,
    forgotten: Vec<IpAddr>,
    random: Random,
    /// The last confirmation of neighbours and its time, by a few bits of the Ethernet address.
    confirmed: [(MacAddress, Instant); CONFIRMED_COUNT],
    /// Frames dropped because the queue was full.
    pub dropped: u64,
}

/// The result of looking up a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    Known(MacAddress),
    /// A request was sent: it will be among those that `take_resolved`, `take_failed` or `take_forgotten` gives.
    Asking,
    /// It did not answer a moment ago.
    Failed,
}

/// A neighbour, for status reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighborStatus {
    pub address: IpAddr,
    /// `None` while no answer has come.
    pub mac: Option<MacAddress>,
    /// In the words of `ip neigh`: `reachable`, `stale`, `delay`, `probe`, `incomplete`, `failed`.
    pub state: &'static str,
}

impl Neighbors {
    /// All that are known or being resolved.
    pub fn iter(&self) -> impl Iterator<Item = NeighborStatus> {
        self.entries.iter().map(|(address, entry)| NeighborStatus {
            address: *address,
            mac: entry.is_known().then_some(entry.mac),
            state: entry.state.word(),
        })
    }

    /// `addresses` are ours, the link-local one is added if there is one of IPv6. With `detect_duplicates` they are
    /// used only once no other host has claimed them; else they are announced at once.
    pub fn new(
        mac: MacAddress,
        addresses: &[Prefix],
        detect_duplicates: bool,
        limits: &Limits,
        seed: u64,
        now: Instant,
    ) -> Self {
        let mut random = Random::new(seed);
        Self {
            mac,
            own: Own::new(mac, addresses, detect_duplicates, &mut random, now),
            entries: BTreeMap::new(),
            count_max: usize::try_from(limits.neighbors_max.max(1)).unwrap_or(usize::MAX),
            epoch: 0,
            due: None,
            outgoing: VecDeque::new(),
            neighboring: Neighboring::Own,
            wanted: Vec::new(),
            resolved: Vec::new(),
            failed: Vec::new(),
            forgotten: Vec::new(),
            random,
            confirmed: [(MacAddress::UNSPECIFIED, Instant::from_nanos(0)); CONFIRMED_COUNT],
            dropped: 0,
        }
    }

    /// The Ethernet address of `next_hop`. Costs a look-up in a tree; a caller that needs it for each packet caches
    /// the answer together with [`Neighbors::epoch`].
    pub fn resolve(&mut self, next_hop: IpAddr, now: Instant) -> Resolution {
        if let Some(mac) = group_mac(next_hop) {
            return Resolution::Known(mac);
        }
        let Some(entry) = self.entries.get_mut(&next_hop) else {
            self.ask(next_hop, now);
            return Resolution::Asking;
        };
        entry.used = now;
        match entry.state {
            State::Incomplete { .. } => Resolution::Asking,
            State::Failed { until } if now < until => Resolution::Failed,
            State::Failed { .. } => {
                self.ask(next_hop, now);
                Resolution::Asking
            }
            State::Stale if self.neighboring == Neighboring::Kernel => {
                Resolution::Known(self.renew(next_hop, now))
            }
            State::Stale => {
                // RFC 4861 7.3.3: use it, and see whether the upper layer confirms the neighbour meanwhile.
                let until = now + DELAY_FIRST_PROBE;
                entry.state = State::Delay { until };
                let mac = entry.mac;
                self.arm(until);
                Resolution::Known(mac)
            }
            State::Reachable { .. } | State::Delay { .. } | State::Probe { .. } => {
                Resolution::Known(entry.mac)
            }
        }
    }

    /// Changes whenever an earlier answer of `resolve` may be outdated, or has to be looked up again to notice that a
    /// neighbour is gone.
    pub const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Whether progress through this neighbour is worth a `confirm` again: once a second is enough for RFC 4861
    /// 7.3.1, and this check costs next to nothing.
    #[inline]
    pub fn is_confirmation_due(&mut self, mac: MacAddress, now: Instant) -> bool {
        let place = usize::from(mac.0[5]) % CONFIRMED_COUNT;
        let Some(confirmed) = self.confirmed.get_mut(place) else {
            return false;
        };
        if confirmed.0 == mac && now.since(confirmed.1) < CONFIRM_INTERVAL {
            return false;
        }
        *confirmed = (mac, now);
        true
    }

    /// New data sent through this neighbour was acknowledged: it is reachable (RFC 4861 7.3.1). Cheap enough for once
    /// a second and connection.
    pub fn confirm(&mut self, next_hop: IpAddr, now: Instant) {
        let until = now + self.reachable_time();
        if let Some(entry) = self.entries.get_mut(&next_hop)
            && entry.is_known()
        {
            entry.state = State::Reachable { until };
            self.arm(until);
        }
    }

    /// Whether frames to this address are for us: our own, broadcast, and the groups that we belong to.
    pub fn accepts_mac(&self, target: MacAddress) -> bool {
        target == self.mac
            || target.is_broadcast()
            || (target.is_multicast() && self.own.accepts_group_mac(target))
    }

    /// Whether packets to this group are for us.
    pub fn accepts_group(&self, group: IpAddr) -> bool {
        self.own.accepts_group(group)
    }

    /// Whether this is ours, and no duplicate of it is known.
    pub fn is_own(&self, address: IpAddr) -> bool {
        self.own.is_usable(address)
    }

    /// Addresses of ours that another host has too; they are not used.
    pub fn duplicates(&self) -> impl Iterator<Item = IpAddr> {
        self.own.duplicates()
    }

    /// Whether there are frames to send.
    #[inline]
    pub fn has_outgoing(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Whether `take_resolved`, `take_failed` or `take_forgotten` has something.
    #[inline]
    pub fn has_news(&self) -> bool {
        !(self.resolved.is_empty() && self.failed.is_empty() && self.forgotten.is_empty())
    }

    /// The next frame to send, oldest first.
    pub fn next_outgoing(&mut self) -> Option<Outgoing> {
        self.outgoing.pop_front()
    }

    /// Appends the neighbours resolved since the last call.
    pub fn take_resolved(&mut self, into: &mut Vec<IpAddr>) {
        into.append(&mut self.resolved);
    }

    /// Appends the neighbours that did not answer.
    pub fn take_failed(&mut self, into: &mut Vec<IpAddr>) {
        into.append(&mut self.failed);
    }

    /// Appends the neighbours whose resolution was dropped because there were too many. A caller that resolves again
    /// at once displaces another, which then resolves again: neither would ever get an answer.
    pub fn take_forgotten(&mut self, into: &mut Vec<IpAddr>) {
        into.append(&mut self.forgotten);
    }

    /// When `expire` has work; at times earlier than needed, never later.
    pub fn next_expiry(&self) -> Option<Instant> {
        [self.due, self.own.next_expiry()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Sends requests again, gives up, lets what was confirmed long ago become stale.
    pub fn expire(&mut self, now: Instant) {
        while let Some(outgoing) = self.own.next_due(self.mac, &mut self.random, now) {
            self.send(outgoing);
        }
        if self.due.is_none_or(|due| now < due) {
            return;
        }
        self.due = None;
        let due: Vec<IpAddr> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.due().is_some_and(|due| due <= now))
            .map(|(address, _)| *address)
            .collect();
        for address in due {
            self.expire_entry(address, now);
        }
        self.due = self.entries.values().filter_map(Entry::due).min();
    }

    /// How many neighbours are known or being resolved.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn expire_entry(&mut self, address: IpAddr, now: Instant) {
        let Some(entry) = self.entries.get_mut(&address) else {
            return;
        };
        match entry.state {
            State::Incomplete { asked, .. } if asked < MULTICAST_ASKS => {
                let at = now + RETRANSMIT;
                entry.state = State::Incomplete {
                    asked: asked + 1,
                    at,
                };
                self.send_question(address, None);
            }
            State::Incomplete { .. } => {
                entry.state = State::Failed {
                    until: now + RETRANSMIT,
                };
                self.failed.push(address);
                // What went to where a SYN came from meanwhile goes there no more.
                self.epoch = self.epoch.wrapping_add(1);
            }
            State::Reachable { .. } => {
                entry.state = State::Stale;
                self.epoch = self.epoch.wrapping_add(1);
            }
            State::Delay { .. } => self.probe(address, 1, now),
            State::Probe { asked, .. } if asked < UNICAST_ASKS => {
                self.probe(address, asked + 1, now);
            }
            State::Probe { .. } => {
                // RFC 7048 3: it may have another Ethernet address now; multicast a request before giving up.
                self.epoch = self.epoch.wrapping_add(1);
                self.ask(address, now);
            }
            State::Failed { .. } => {
                self.entries.remove(&address);
            }
            State::Stale => {}
        }
    }

    /// RFC 4861 7.2.2, RFC 826: requests an address by broadcast or multicast.
    fn ask(&mut self, address: IpAddr, now: Instant) {
        let at = now + RETRANSMIT;
        let state = State::Incomplete { asked: 1, at };
        if let Some(entry) = self.entries.get_mut(&address) {
            entry.state = state;
        } else {
            self.insert(address, Entry::new(MacAddress::UNSPECIFIED, state, now));
        }
        self.arm(at);
        self.send_question(address, None);
    }

    /// RFC 4861 7.3.3, RFC 1122 2.3.2.1 (2): probes the neighbour by unicast.
    fn probe(&mut self, address: IpAddr, asked: u8, now: Instant) {
        let at = now + RETRANSMIT;
        if let Some(entry) = self.entries.get_mut(&address) {
            entry.state = State::Probe { asked, at };
            let mac = entry.mac;
            self.arm(at);
            self.send_question(address, Some(mac));
        }
    }

    fn send_question(&mut self, address: IpAddr, neighbor: Option<MacAddress>) {
        if self.neighboring == Neighboring::Kernel {
            self.want(address);
            return;
        }
        if let Some(question) = self.own.question(self.mac, address, neighbor) {
            self.send(question);
        }
    }

    fn send(&mut self, outgoing: Outgoing) {
        if self.outgoing.len() < OUTGOING_MAX {
            self.outgoing.push_back(outgoing);
        } else {
            self.dropped += 1;
        }
    }

    /// Makes room if there is none: first among those that have not answered, then the one not used for longest. Looks
    /// at all of them, which is only as long as the limit allows.
    fn insert(&mut self, address: IpAddr, entry: Entry) {
        if self.entries.len() >= self.count_max {
            let oldest = self
                .entries
                .iter()
                .min_by_key(|(_, entry)| (entry.is_known(), entry.used))
                .map(|(address, entry)| (*address, entry.state));
            if let Some((oldest, state)) = oldest {
                self.entries.remove(&oldest);
                self.epoch = self.epoch.wrapping_add(1);
                if matches!(state, State::Incomplete { .. }) {
                    self.forgotten.push(oldest);
                }
            }
        }
        self.entries.insert(address, entry);
        debug_assert!(self.entries.len() <= self.count_max);
    }

    fn arm(&mut self, at: Instant) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// RFC 4861 6.3.2: 30 s on average, spread so that neighbours do not become stale together.
    fn reachable_time(&mut self) -> Duration {
        Duration::from_millis(REACHABLE_MS / 2 + self.random.below(REACHABLE_MS))
    }
}

/// The Ethernet addresses of groups, which need no request.
fn group_mac(address: IpAddr) -> Option<MacAddress> {
    match address {
        IpAddr::V4(address) if address.is_broadcast() => Some(MacAddress::BROADCAST),
        IpAddr::V4(address) if address.is_multicast() => Some(MacAddress::of_multicast_v4(address)),
        IpAddr::V6(address) if address.is_multicast() => Some(MacAddress::of_multicast_v6(address)),
        _ => None,
    }
}

/// RFC 4861 10: REACHABLE_TIME, milliseconds.
const REACHABLE_MS: u64 = 30_000;

/// RFC 4861 10: RETRANS_TIMER, between two requests.
const RETRANSMIT: Duration = Duration::from_secs(1);

/// RFC 4861 10: DELAY_FIRST_PROBE_TIME.
const DELAY_FIRST_PROBE: Duration = Duration::from_secs(5);

/// RFC 4861 10: MAX_MULTICAST_SOLICIT, MAX_UNICAST_SOLICIT.
const MULTICAST_ASKS: u8 = 3;
const UNICAST_ASKS: u8 = 3;

/// How often progress above confirms a neighbour: far more often than one becomes stale.
const CONFIRM_INTERVAL: Duration = Duration::from_secs(1);

/// Neighbours whose last confirmation is cached; two that share an entry are confirmed more often.
const CONFIRMED_COUNT: usize = 16;

/// For so long an address of IPv4 that was just set cannot be changed (Linux: locktime).
const LOCK_TIME: Duration = Duration::from_secs(1);

/// Frames that wait for the device; beyond, they are dropped, since requests are repeated.
const OUTGOING_MAX: usize = 256;

#[cfg(test)]
mod tests;
