//! Processes that share a device: which of those that listen at the same address takes a new connection, and which connections have
//! ended with their process.
//!
//! Frames come to the processes that own the device's partitions, which give them to the others (see [`crate::handover`]). As long as
//! a group has no more members than there are partitions, each has a partition of its own, with the flows that the card or the
//! sender puts there. Otherwise each flow is of the member for which a hash of both is greatest (rendezvous hashing, Thaler and
//! Ravishankar 1998): all members have as many, and when one comes or goes only its own flows are others'. Where there are many more
//! members than processors, those with a partition have all: a further process would cost two copies of each frame and a change of
//! processes, and add no processor.
//!
//! A program whose processes serve one connection at a time (Apache's prefork, gunicorn's sync workers) counts on an idle one to accept,
//! as in the kernel, where all wait at one queue. Each member tells how many connections it has. As long as none has ever had two that
//! it had accepted, a connection that would come to a busy one goes to the one that has the fewest.
//!
//! A program may let connections wait without a look, as it computes, or as another process accepts in its place (inetd's `wait`, the masters
//! of Postfix and Dovecot). Its process is a member still, and gets connections again once none of the others looks.
//!
//! The members stand in shared memory, as pairs of a process and an address:
//!
//! ```text
//! version | key, 2 | slots used | process, address | process, address | … | departed connections | load | load | …
//! ```
//!
//! Each process writes its own pairs, and raises the version. A reader keeps what it has found until the version is another one. A
//! process that was killed stays a member until its keeper removes it; there is no way to it, so that the next best member gets what
//! falls on it meanwhile.
//!
//! The keeper also notes the connections of a killed process, by hashes: when their peers are asked (mill-keeper `farewell.rs`), the answers
//! are of no process that only lacks a way to the owner, and are reset at once.

use crate::ledger;
use mill_stack::flow::Flow;
use mill_stack::process_group::{Load, Others, ProcessGroup, Taker};
use mill_stack::siphash::Key;
use mill_sys::memory::words;
use mill_sys::{affinity, clock, random};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};

/// The groups, as one process sees them.
pub struct GroupTable {
    shared: Shared,
    own: u64,
    /// A group of so many members needs no hash.
    partitions: usize,
    /// In one of more members only those with a partition have connections.
    sharing_max: usize,
    key: Key,
    /// The members of groups that were looked for since the version was this.
    known: BTreeMap<SocketAddr, Members>,
    version: u64,
    /// Where connections went lately that went by load, by the lower bits of their hashes; none before the first.
    given: Vec<Given>,
    /// The slots of this process, one for each listener.
    slots: BTreeMap<SocketAddr, Vec<usize>>,
    on_full: Box<dyn FnMut() + Send>,
}

#[derive(Clone, Debug, Default)]
struct Members {
    processes: Vec<u64>,
    /// Of the same place each.
    loads: Vec<&'static AtomicU64>,
    has_own: bool,
}

/// A new connection, the process to which it went, and when.
#[derive(Clone, Copy, Debug, Default)]
struct Given {
    hash: u64,
    process: u64,
    second: u64,
}

/// The memory.
#[derive(Clone, Copy, Debug)]
struct Shared {
    version: &'static AtomicU64,
    key: [&'static AtomicU64; 2],
    /// Slots behind these were never taken.
    used: &'static AtomicU64,
    slots: &'static [AtomicU64],
    /// By the lower bits of hashes: upper bits, and the second in which it departed.
    departed: &'static [AtomicU64],
    /// Of each slot: how many connections its process has, whether it ever had two that it had accepted, and whether it neglects them.
    loads: &'static [AtomicU64],
}

impl GroupTable {
    /// Makes the memory: no process listens.
    pub fn create() -> io::Result<File> {
        let file = words::create("millstream-listeners", WORDS)?;
        let shared = Shared::map(&file)?;
        for word in shared.key {
            let mut bytes = [0; 8];
            random::fill(&mut bytes)?;
            word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
        }
        Ok(file)
    }

    /// The groups of a device with so many partitions, for process `own`, not 0. `on_full` is called when there is no room for a
    /// listener: it is in no group then, and gets no connections that others can take.
    pub fn open(
        memory: &File,
        own: u64,
        partitions: usize,
        on_full: impl FnMut() + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Shared::map(memory)?;
        let mut key = [0; 16];
        for (half, word) in key.chunks_exact_mut(8).zip(shared.key) {
            half.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
        }
        Ok(Self {
            shared,
            own,
            partitions,
            sharing_max: affinity::online_cpus().max(SHARING_MAX_LEAST),
            key: Key::new(key),
            known: BTreeMap::new(),
            version: 0,
            given: Vec::new(),
            slots: BTreeMap::new(),
            on_full: Box::new(on_full),
        })
    }

    /// Removes a process that has ended from all groups.
    pub fn release(&self, process: u64) {
        for (slot, _) in self.shared.pairs().filter(|(slot, _)| holds(slot, process)) {
            slot.store(VACANT, Ordering::Release);
        }
        self.shared.note_change();
    }

    /// Whether any process listens at this address.
    pub fn is_listened(&mut self, address: SocketAddr) -> bool {
        !self.members(address).processes.is_empty()
    }

    /// Notes connections that have ended with their process; two of the same place are one.
    pub fn note_departed(&self, connections: &[ledger::Entry]) {
        let now = second();
        for connection in connections {
            let flow = Flow::new(connection.local, connection.remote);
            let (place, hash) = self.departed_place(&flow);
            place.store(hash | now, Ordering::Relaxed);
        }
    }

    fn departed_place(&self, flow: &Flow) -> (&'static AtomicU64, u64) {
        let hash = flow.table_hash(self.key);
        let place = usize::try_from(hash & SECOND_MASK).unwrap_or(0);
        (&self.shared.departed[place % DEPARTED], hash & !SECOND_MASK)
    }

    /// Where a SYN of this flow went, which is sent again: two processes would answer it.
    fn remembered(&self, hash: u64) -> Option<u64> {
        let given = self.given.get(given_place(hash))?;
        let is_recent = second().wrapping_sub(given.second) & SECOND_MASK <= GIVEN_SECONDS;
        (given.hash == hash && is_recent).then_some(given.process)
    }

    fn remember(&mut self, hash: u64, process: u64) {
        self.given.resize(GIVEN, Given::default());
        if let Some(place) = self.given.get_mut(given_place(hash)) {
            let second = second();
            *place = Given {
                hash,
                process,
                second,
            };
        }
    }

    fn members(&mut self, address: SocketAddr) -> &Members {
        let version = self.shared.version.load(Ordering::Acquire);
        // Peers ask for any port.
        if core::mem::replace(&mut self.version, version) != version
            || self.known.len() >= KNOWN_MAX
        {
            self.known.clear();
        }
        let (shared, own) = (self.shared, self.own);
        self.known
            .entry(address)
            .or_insert_with(|| shared.members(self.key, address, own))
    }
}

impl ProcessGroup for GroupTable {
    fn join(&mut self, address: SocketAddr) {
        match self.shared.add(self.own, name(self.key, address)) {
            Some(slot) => self.slots.entry(address).or_default().push(slot),
            None => (self.on_full)(),
        }
    }

    fn leave(&mut self, address: SocketAddr) {
        let Entry::Occupied(mut slots) = self.slots.entry(address) else {
            return;
        };
        if let Some(slot) = slots.get_mut().pop() {
            self.shared.remove(self.own, slot);
        }
        if slots.get().is_empty() {
            slots.remove();
        }
    }

    fn others(&mut self, address: SocketAddr) -> Others {
        let own = self.own;
        let mut others = Others::default();
        for load in self.members(address).attentive_but(own) {
            others.count += 1;
            others.idle += usize::from((load & !IS_CONCURRENT) >> OPEN_SHIFT == 0);
            others.are_concurrent |= load & IS_CONCURRENT != 0;
        }
        others
    }

    fn note_load(&mut self, address: SocketAddr, load: Load) {
        let slots = self.slots.get(&address).map(Vec::as_slice);
        let places = slots.unwrap_or_default().iter();
        let places = places.filter_map(|slot| self.shared.loads.get(*slot));
        let was_concurrent = |place: &AtomicU64| place.load(Ordering::Relaxed) & IS_CONCURRENT != 0;
        let is_concurrent = load.accepted > 1 || places.clone().any(was_concurrent);
        let open = u64::from(load.accepted.saturating_add(load.waiting).min(OPEN_MAX));
        let count = open << OPEN_SHIFT | u64::from(load.half_open);
        let mut told = count;
        if is_concurrent {
            told |= IS_CONCURRENT;
        }
        if load.is_neglected {
            told |= IS_NEGLECTED;
        }
        for place in places {
            place.store(told, Ordering::Relaxed);
        }
    }

    /// A process that is stopped does not tell of what it gets, and one that runs does so after its turn: by then a burst has many more.
    fn note_given(&mut self, address: SocketAddr, flow: &Flow, taker: Taker) {
        let process = match taker {
            Taker::This => self.own,
            Taker::Another(process) => process,
            Taker::None => return,
        };
        self.forget_departed(flow);
        let members = self.members(address);
        if members.processes.len() > 1
            && let Some(load) = members.load_of(process)
            && load.load(Ordering::Relaxed) & IS_CONCURRENT == 0
        {
            load.fetch_add(1, Ordering::Relaxed);
            self.remember(flow.table_hash(self.key), process);
        }
    }

    fn taker(
        &mut self,
        address: SocketAddr,
        flow: &Flow,
        is_opening: bool,
        unreachable: &[u64],
    ) -> Taker {
        let (own, key) = (self.own, self.key);
        let shared_by = self.partitions + 1..=self.sharing_max;
        let hash = flow.table_hash(key);
        let before = is_opening.then(|| self.remembered(hash)).flatten();
        let members = self.members(address);
        let is_own = members.has_own
            && !shared_by.contains(&members.processes.len())
            && !(members.neglects(own) && members.attentive_but(own).next().is_some());
        let preferred = match is_own {
            true => Some(own),
            false => members.preferred(hash, unreachable),
        };
        let takes = |it: &u64| {
            let load = members.load_of(*it);
            load.is_some_and(|load| !is_neglected(load)) && !unreachable.contains(it)
        };
        let before = before.filter(takes);
        let taker = match is_opening {
            true if before.is_some() => before,
            true => preferred.map(|it| members.less_busy(it, hash, unreachable)),
            false => preferred,
        };
        match taker {
            Some(process) if process == own => Taker::This,
            Some(process) => Taker::Another(process),
            None => Taker::None,
        }
    }

    fn has_departed(&self, flow: &Flow) -> bool {
        let (place, hash) = self.departed_place(flow);
        let noted = place.load(Ordering::Relaxed);
        let age = second().wrapping_sub(noted) & SECOND_MASK;
        noted & !SECOND_MASK == hash && age <= DEPARTED_SECONDS
    }

    fn forget_departed(&mut self, flow: &Flow) {
        let (place, hash) = self.departed_place(flow);
        if place.load(Ordering::Relaxed) & !SECOND_MASK == hash {
            place.store(0, Ordering::Relaxed);
        }
    }
}

impl Members {
    /// The one on which the flow's hash falls: of those that look whether connections wait, if there are any.
    fn preferred(&self, hash: u64, unreachable: &[u64]) -> Option<u64> {
        let members = self.processes.iter().zip(&self.loads);
        let reachable = members.filter(|(process, _)| !unreachable.contains(process));
        let ranked =
            reachable.map(|(process, load)| (!is_neglected(load), score(hash, *process), *process));
        ranked.max().map(|(_, _, process)| process)
    }

    fn neglects(&self, process: u64) -> bool {
        self.load_of(process).is_some_and(is_neglected)
    }

    /// The loads of those that look whether connections wait, without this one's.
    fn attentive_but(&self, own: u64) -> impl Iterator<Item = u64> {
        let members = self.processes.iter().zip(&self.loads);
        let others = members.filter(move |(process, load)| **process != own && !is_neglected(load));
        others.map(|(_, load)| load.load(Ordering::Relaxed))
    }

    fn load_of(&self, process: u64) -> Option<&'static AtomicU64> {
        let place = self.processes.binary_search(&process).ok()?;
        self.loads.get(place).copied()
    }

    /// That member, or where it is busy and each serves one connection at a time, the one with the fewest. Where that has many, too, as in
    /// a flood, it stays that member: a host with so many handshakes may answer with a cookie, and has to get what comes back.
    fn less_busy(&self, preferred: u64, hash: u64, unreachable: &[u64]) -> u64 {
        let load = |load: &&'static AtomicU64| load.load(Ordering::Relaxed);
        let busy = self.load_of(preferred).map_or(0, |it| load(&it));
        if busy == 0 || self.loads.iter().any(|it| load(it) & IS_CONCURRENT != 0) {
            return preferred;
        }
        let members = self.processes.iter().zip(&self.loads);
        let others = members.filter(|(process, _)| !unreachable.contains(process));
        let ranked =
            others.map(|(process, it)| ((load(it), u64::MAX - score(hash, *process)), process));
        match ranked.min() {
            Some(((least, _), process)) if least < busy && is_little(least) => *process,
            _ => preferred,
        }
    }
}

fn is_neglected(load: &AtomicU64) -> bool {
    load.load(Ordering::Relaxed) & IS_NEGLECTED != 0
}

fn given_place(hash: u64) -> usize {
    usize::try_from(hash).unwrap_or(0) % GIVEN
}

/// How many are remembered, and how long: until a SYN was sent again three times.
const GIVEN: usize = 1024;
const GIVEN_SECONDS: u64 = 8;

/// Whether a process with this load has no more than it answers for without cookies.
const fn is_little(load: u64) -> bool {
    let half_open = load & ((1 << OPEN_SHIFT) - 1);
    (load >> OPEN_SHIFT) + half_open < LOAD_MANY
}

/// A slot: process and address.
type Pair = (&'static AtomicU64, &'static AtomicU64);

impl Shared {
    fn map(memory: &File) -> io::Result<Self> {
        match words::map(memory, WORDS)? {
            [version, first, second, used, rest @ ..] => {
                let (slots, rest) = rest.split_at(2 * SLOTS);
                let (departed, loads) = rest.split_at(DEPARTED);
                Ok(Self {
                    version,
                    key: [first, second],
                    used,
                    slots,
                    departed,
                    loads,
                })
            }
            _ => Err(io::Error::from(io::ErrorKind::InvalidData)),
        }
    }

    /// The slots that were ever taken, with their loads.
    fn places(self) -> impl Iterator<Item = (Pair, &'static AtomicU64)> {
        self.pairs().zip(self.loads)
    }

    /// The slots that were ever taken: process and address of each.
    fn pairs(self) -> impl Iterator<Item = (&'static AtomicU64, &'static AtomicU64)> {
        let used = usize::try_from(self.used.load(Ordering::Acquire)).unwrap_or(usize::MAX);
        let (pairs, _) = self.slots.as_chunks::<2>();
        pairs.iter().take(used).map(|[slot, name]| (slot, name))
    }

    /// Adds a pair; its slot, or `None` if there is no room.
    fn add(self, process: u64, address: u64) -> Option<usize> {
        let (pairs, _) = self.slots.as_chunks::<2>();
        for ((place, [slot, name]), load) in (1..).zip(pairs).zip(self.loads) {
            let taken = slot.compare_exchange(VACANT, CLAIMED, Ordering::AcqRel, Ordering::Relaxed);
            if taken.is_ok() {
                name.store(address, Ordering::Relaxed);
                load.store(0, Ordering::Relaxed);
                slot.store(process, Ordering::Release);
                self.used.fetch_max(place, Ordering::AcqRel);
                self.note_change();
                return usize::try_from(place - 1).ok();
            }
        }
        None
    }

    /// Removes a process's pair.
    fn remove(self, process: u64, slot: usize) {
        let (pairs, _) = self.slots.as_chunks::<2>();
        if let Some([slot, _]) = pairs.get(slot).filter(|[slot, _]| holds(slot, process)) {
            slot.store(VACANT, Ordering::Release);
            self.note_change();
        }
    }

    fn members(self, key: Key, address: SocketAddr, own: u64) -> Members {
        let address = name(key, address);
        let of = |((slot, name), load): (Pair, &'static AtomicU64)| {
            let process = slot.load(Ordering::Acquire);
            let is_member = process != VACANT && process != CLAIMED;
            (is_member && name.load(Ordering::Relaxed) == address).then_some((process, load))
        };
        let mut found: Vec<(u64, &'static AtomicU64)> = self.places().filter_map(of).collect();
        found.sort_unstable_by_key(|(process, _)| *process);
        found.dedup_by_key(|(process, _)| *process);
        let (processes, loads): (Vec<u64>, Vec<_>) = found.into_iter().unzip();
        Members {
            has_own: processes.binary_search(&own).is_ok(),
            processes,
            loads,
        }
    }

    fn note_change(self) {
        self.version.fetch_add(1, Ordering::AcqRel);
    }
}

fn holds(slot: &AtomicU64, process: u64) -> bool {
    slot.load(Ordering::Acquire) == process
}

/// An address as a number. Two of one number would be one group, whose members may not listen at the other's address.
fn name(key: Key, address: SocketAddr) -> u64 {
    let family = match address.ip() {
        IpAddr::V4(_) => 4,
        IpAddr::V6(_) => 6,
    };
    Flow::new(address, address).secret_hash(key, family)
}

/// How well a flow fits a member (the finalizer of SplitMix64: Steele, Lea, Flood 2014).
const fn score(flow_hash: u64, process: u64) -> u64 {
    let mixed = flow_hash ^ process.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn second() -> u64 {
    clock::monotonic().as_secs() & SECOND_MASK
}

impl fmt::Debug for GroupTable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("GroupTable")
            .field("own", &self.own)
            .field("known", &self.known)
            .finish_non_exhaustive()
    }
}

/// No process has a slot, or one is about to.
const VACANT: u64 = 0;
const CLAIMED: u64 = u64::MAX;

/// Addresses whose members are kept.
const KNOWN_MAX: usize = 1024;

/// Also with few processors: a process that waits for something else than connections leaves its processor to others.
const SHARING_MAX_LEAST: usize = 8;

/// Listeners of all processes: two each of two thousand workers.
const SLOTS: usize = 4096;
const WORDS: usize = 4 + 2 * SLOTS + DEPARTED + SLOTS;

/// The bit of a load that says that its process serves several connections at a time.
const IS_CONCURRENT: u64 = 1 << 63;

/// The bit that says that it lets connections wait without a look.
const IS_NEGLECTED: u64 = 1 << 62;

/// Connections of a process that serves one at a time, of which the others wait; fewer than the handshakes from which on a listener may
/// answer with cookies (`BACKLOG_MIN` of mill-stack's listener.rs).
const LOAD_MANY: u64 = 8;

/// Where the number of connections stands in a load, above that of handshakes: a process that has a connection is busy, and one with
/// handshakes that may never come to an end is not.
const OPEN_SHIFT: u32 = 32;
const OPEN_MAX: u32 = (1 << 30) - 1;

/// Places of departed connections, whose pages are made when they are used.
const DEPARTED: usize = 1 << 16;

/// The bits of a departed connection's time, which are those of its place in the hash.
const SECOND_MASK: u64 = DEPARTED as u64 - 1;

/// How long a connection counts as departed: its peer is asked at once, and twice more within 1.2 s (the keeper).
const DEPARTED_SECONDS: u64 = 2;

#[cfg(test)]
mod tests;
