//! Fragments become datagrams again (RFC 791 3.2, RFC 815, RFC 8200 4.5).
//!
//! Fragments that overlap are refused together with their whole datagram, in IPv4 as RFC 5722 requires for IPv6:
//! their only use is to be interpreted in two ways. Exact duplicates are what networks produce, and ignored.
//!
//! Memory is bounded in all, by source, and in pieces for each datagram; the oldest datagram is dropped first. So is
//! the work for a fragment, however many datagrams are incomplete: sums are kept and not computed anew.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::net::IpAddr;
use datagram::{Added, Partial};
use mill_tcp::time::{Duration, Instant};
use mill_wire::ipv4::Ecn;
use mill_wire::protocol::Protocol;
pub use piece::{Fragment, Refusal};

/// One fragment, read out of a packet.
mod piece;

/// The pieces of one datagram.
mod datagram;

/// Datagrams that are not whole yet.
#[derive(Debug)]
pub struct Reassembler {
    partials: BTreeMap<Key, Partial>,
    /// All datagrams by age …
    ages: BTreeMap<u64, Key>,
    /// … and of each source.
    sources: BTreeMap<IpAddr, Share>,
    /// Datagrams begun so far.
    begun: u64,
    bytes: usize,
    bytes_max: usize,
    /// Not later than the first timeout.
    due: Option<Instant>,
}

/// A source's share of the memory.
#[derive(Debug, Default)]
struct Share {
    bytes: usize,
    /// Its datagrams, by age.
    ages: BTreeSet<u64>,
}

/// The key of a datagram (RFC 791 3.2, RFC 8200 4.5). In IPv6 the protocol is not part of it, and zero here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    source: IpAddr,
    target: IpAddr,
    ident: u32,
    protocol: u8,
}

/// The result of a fragment.
#[derive(Debug, PartialEq, Eq)]
pub enum Pushed {
    /// The datagram is incomplete.
    Waiting,
    Complete(Datagram),
    /// It overlaps, does not fit or is one too many: its datagram is given up, if it was not before.
    Refused,
}

/// The payload of a whole datagram.
#[derive(Debug, PartialEq, Eq)]
pub struct Datagram {
    pub source: IpAddr,
    pub target: IpAddr,
    /// In IPv6 it may be another extension header.
    pub protocol: Protocol,
    pub ecn: Ecn,
    pub payload: Vec<u8>,
}

impl Reassembler {
    /// Holds up to `bytes_max` bytes, its own for keeping them included.
    pub const fn new(bytes_max: u32) -> Self {
        Self {
            partials: BTreeMap::new(),
            ages: BTreeMap::new(),
            sources: BTreeMap::new(),
            begun: 0,
            bytes: 0,
            bytes_max: bytes_max as usize,
            due: None,
        }
    }

    /// Adds a fragment. Copies its payload; the whole datagram is one more copy.
    pub fn push(&mut self, fragment: &Fragment<'_>, now: Instant) -> Pushed {
        let key = Key::of(fragment);
        let cost = fragment.payload.len() + PIECE_BYTES;
        let is_new = !self.partials.contains_key(&key);
        self.make_room(&key, cost + if is_new { PARTIAL_BYTES } else { 0 });
        if !self.partials.contains_key(&key) {
            self.begin(key, now + lifetime(fragment.source));
        }
        let Some(partial) = self.partials.get_mut(&key) else {
            return Pushed::Refused;
        };
        match partial.add(fragment) {
            Added::Piece => {
                self.charge(key.source, cost);
            }
            Added::Duplicate => {}
            Added::Refused => {
                let freed = partial.give_up();
                self.discharge(key.source, freed);
                return Pushed::Refused;
            }
        }
        let Some(partial) = self.partials.get(&key) else {
            return Pushed::Refused;
        };
        let Some(payload) = partial.take_whole() else {
            return Pushed::Waiting;
        };
        let ecn = partial.ecn();
        let protocol = partial.protocol();
        self.remove(&key);
        // RFC 3168 5.3: CE on one fragment is CE on the whole. It is invalid beside fragments that are Not-ECT.
        match ecn {
            Some(ecn) => Pushed::Complete(Datagram {
                source: key.source,
                target: key.target,
                protocol,
                ecn,
                payload,
            }),
            None => Pushed::Refused,
        }
    }

    /// When the first datagram may run out of time; earlier than needed at times, never later.
    pub const fn next_expiry(&self) -> Option<Instant> {
        self.due
    }

    /// Drops datagrams that are not whole in time. If a datagram's first fragment has arrived, `report` gets its
    /// beginning, from the IP header on, for an error to its sender (RFC 1122 3.3.2, RFC 8200 4.5). Returns how many
    /// were dropped, not counting those refused before.
    pub fn expire(&mut self, now: Instant, mut report: impl FnMut(&[u8])) -> usize {
        if self.due.is_none_or(|due| now < due) {
            return 0;
        }
        let mut count = 0;
        let lapsed: Vec<Key> = self
            .partials
            .iter()
            .filter(|(_, partial)| partial.until <= now)
            .map(|(key, _)| *key)
            .collect();
        for key in lapsed {
            if let Some(partial) = self.partials.get(&key)
                && !partial.is_given_up()
            {
                count += 1;
                if let Some(beginning) = partial.beginning() {
                    report(beginning);
                }
            }
            self.remove(&key);
        }
        self.due = self.partials.values().map(|partial| partial.until).min();
        count
    }

    /// Bytes held, of `bytes_max`.
    pub const fn size_bytes(&self) -> usize {
        self.bytes
    }

    /// Drops the oldest datagrams: of the same source if it has more than its share, else of all.
    fn make_room(&mut self, key: &Key, cost: usize) {
        let share = self.bytes_max / SOURCES;
        while self.bytes_of(key.source) + cost > share && self.remove_oldest(Some(key.source)) {}
        while self.bytes + cost > self.bytes_max && self.remove_oldest(None) {}
    }

    fn bytes_of(&self, source: IpAddr) -> usize {
        self.sources.get(&source).map_or(0, |share| share.bytes)
    }

    fn begin(&mut self, key: Key, until: Instant) {
        let age = self.begun;
        self.begun += 1;
        self.due = Some(self.due.map_or(until, |due| due.min(until)));
        self.partials.insert(key, Partial::new(until, age));
        self.ages.insert(age, key);
        self.charge(key.source, PARTIAL_BYTES).ages.insert(age);
    }

    fn charge(&mut self, source: IpAddr, bytes: usize) -> &mut Share {
        self.bytes += bytes;
        let share = self.sources.entry(source).or_default();
        share.bytes += bytes;
        share
    }

    fn discharge(&mut self, source: IpAddr, bytes: usize) {
        self.bytes -= bytes;
        if let Some(share) = self.sources.get_mut(&source) {
            share.bytes -= bytes;
        }
    }

    fn remove_oldest(&mut self, source: Option<IpAddr>) -> bool {
        let age = match source {
            Some(source) => {
                let share = self.sources.get(&source);
                share.and_then(|share| share.ages.first()).copied()
            }
            None => self.ages.keys().next().copied(),
        };
        let oldest = age.and_then(|age| self.ages.get(&age)).copied();
        oldest.is_some_and(|key| self.remove(&key))
    }

    fn remove(&mut self, key: &Key) -> bool {
        let Some(partial) = self.partials.remove(key) else {
            return false;
        };
        self.discharge(key.source, partial.size_bytes() + PARTIAL_BYTES);
        self.ages.remove(&partial.age);
        if let Some(share) = self.sources.get_mut(&key.source) {
            share.ages.remove(&partial.age);
            if share.ages.is_empty() {
                debug_assert_eq!(share.bytes, 0);
                self.sources.remove(&key.source);
            }
        }
        debug_assert!(!self.partials.is_empty() || self.bytes == 0);
        debug_assert_eq!(self.partials.len(), self.ages.len());
        true
    }
}

impl Key {
    const fn of(fragment: &Fragment<'_>) -> Self {
        Self {
            source: fragment.source,
            target: fragment.target,
            ident: fragment.ident,
            protocol: match fragment.source {
                IpAddr::V4(_) => fragment.protocol.0,
                IpAddr::V6(_) => 0,
            },
        }
    }
}

/// RFC 8200 4.5: 60 s. In IPv4 RFC 1122 3.3.2 names 60 to 120 s; numbers come round sooner than that (RFC 4963), and
/// Linux waits for 30.
const fn lifetime(source: IpAddr) -> Duration {
    match source {
        IpAddr::V4(_) => Duration::from_secs(30),
        IpAddr::V6(_) => Duration::from_secs(60),
    }
}

/// Sources that together may use all memory: each a fourth of it.
const SOURCES: usize = 4;

/// Bytes that a datagram takes beside its pieces, and each piece beside its payload; estimated high.
const PARTIAL_BYTES: usize = 640;
const PIECE_BYTES: usize = 64;

#[cfg(test)]
mod tests;
