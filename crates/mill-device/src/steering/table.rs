//! The table of what is served: the processes write it into memory that the program reads.

/// Addresses whose frames are dropped.
mod blocked;

/// Ports of connections that are opened.
pub mod opened;

use super::counters::SteeringCounters;
use super::flow::{FlowHash, address_of, halves_of};
use super::layout::{
    ADDRESS_BYTES, ADDRESS_COUNT, ADDRESSES, ADDRESSES_MAX, BITMAP_BYTES, BITMAP_OF_ADDRESS,
    BLOCKED, CLOSING_PORTS, COUNTERS_BYTES, HAS_SUCCESSOR, LOOKS_UP_KERNEL_FLOWS, SEED,
    TABLE_BYTES, TCP_PORTS, UDP_PORTS, WORKERS, WORKERS_MAX,
};
use mill_stack::link::Service;
use mill_sys::bpf::map::ArrayMemory;
use mill_wire::protocol::Protocol;
use opened::OpenedPorts;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The table of one interface. Clones refer to the same table, for other threads; threads that serve the same port each
/// call [`Self::serve`] (see [`Self::set_sharers`]), and the port is closed when the last one ends it.
///
/// Nothing here is a system call or needs privileges, and a change takes effect with the next frame. The memory
/// outlives the process that wrote it: the program uses it as long as it is attached.
#[derive(Clone, Debug)]
pub struct Table(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    served: ArrayMemory,
    counters: ArrayMemory,
    /// The address of each slot. An address keeps its slot.
    addresses: [Option<IpAddr>; ADDRESSES_MAX],
    /// How often each service was requested; an unspecified address stands for all addresses of its family.
    services: BTreeMap<(Transport, SocketAddr), u32>,
    /// How many requests a service needs before it is served.
    sharers: u32,
    /// TCP services that not all sharers serve any more, and that still have connections.
    closing: BTreeSet<SocketAddr>,
    /// How many sharers have no connections left for such a service.
    forgotten: BTreeMap<SocketAddr, u32>,
    /// TCP ports from which connections are opened, here or at another partition.
    opened: Arc<OpenedPorts>,
    /// The blocked addresses, sorted.
    blocked: Vec<IpAddr>,
    /// The memory has room for them: that of a former version has not.
    can_block: bool,
    /// What a former process has served: offsets of bitmap words, and their bits.
    kept: BTreeMap<usize, u32>,
}

/// The protocols that have bitmaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Transport {
    Tcp,
    Udp,
}

impl Table {
    /// Maps the table and the counters of a steering program, and clears it: no port is served, at no address.
    pub fn open(descriptors: [OwnedFd; 2]) -> io::Result<Self> {
        let mut state = State::open(&descriptors)?;
        for place in 0..ADDRESSES_MAX {
            state.clear(place);
        }
        state.word(ADDRESS_COUNT).store(0, Ordering::Release);
        state.clear_blocked();
        Ok(Self(Arc::new(Mutex::new(state))))
    }

    /// As [`Self::open`], but keeps what a former process has served until [`Self::forget_kept`] is called; this
    /// process's services are added to it. No frame is steered differently meanwhile.
    pub fn inherit(descriptors: [OwnedFd; 2]) -> io::Result<Self> {
        let mut state = State::open(&descriptors)?;
        state.keep();
        state.clear_blocked();
        Ok(Self(Arc::new(Mutex::new(state))))
    }

    /// Whether a port is served only because a former process served it.
    pub fn keeps_any(&self) -> bool {
        !self.state().kept.is_empty()
    }

    /// Stops serving what only a former process served.
    pub fn forget_kept(&self) {
        self.state().forget_kept();
    }

    /// Sets how many threads serve through clones of the table, each with its own share of frames: a service begins
    /// when all of them have requested it, so that none receives frames for a port that it does not know.
    pub fn set_sharers(&self, sharers: u32) {
        self.state().sharers = sharers;
    }

    /// Starts to serve a port, or stops once all that requested it have stopped. Only TCP and UDP are served.
    pub fn serve(&self, service: Service, on: bool) {
        self.state().serve(service, on);
    }

    /// The last connections of a closed service have ended. Until then its TCP segments are still steered to the
    /// sockets, except SYNs.
    pub fn forget(&self, service: Service) {
        self.state().forget(service);
    }

    /// Has it open ports together with the tables of other partitions: those that are open there, and those to come.
    pub fn share_opened(&self, opened: Arc<OpenedPorts>) {
        let mut state = self.state();
        state.opened = opened;
        state.write_all_opened();
    }

    /// The ports that it opens together with others.
    pub fn opened(&self) -> Arc<OpenedPorts> {
        Arc::clone(&self.state().opened)
    }

    /// Starts to serve the TCP ports of outgoing connections at every address, see [`OpenedPorts::open`]. The first call decides
    /// which for all sharers, and all partitions that open ports together.
    pub fn open_ports(&self, are_free: impl FnOnce(RangeInclusive<u16>) -> Vec<u16>) {
        self.opened().open(are_free);
        self.state().write_all_opened();
    }

    /// Sets the interface's addresses. Returns how many found no room and are left to the kernel: the limit is
    /// [`ADDRESSES_MAX`].
    pub fn set_addresses(&self, addresses: &[IpAddr]) -> usize {
        self.state().set_addresses(addresses)
    }

    /// Drops all frames for served ports that these addresses send, and no others'. Returns how many found no room in the
    /// table: those are left to the stack.
    pub fn set_blocked(&self, addresses: &[IpAddr]) -> usize {
        self.state().set_blocked(addresses)
    }

    /// Has segments looked up among the kernel's connections first. That costs time for each segment: end it when the kernel has none
    /// left on served ports.
    pub fn look_up_kernel_flows(&self) {
        look_up_kernel_flows(&self.state().served);
    }

    /// Which request that segments are looked up holds now, by this process or another one.
    pub fn kernel_flows(&self) -> Option<NonZeroU32> {
        let state = self.state();
        NonZeroU32::new(state.word(LOOKS_UP_KERNEL_FLOWS).load(Ordering::Acquire))
    }

    /// Ends that, unless another request has come after this one.
    pub fn end_kernel_flows(&self, request: NonZeroU32) {
        let state = self.state();
        let word = state.word(LOOKS_UP_KERNEL_FLOWS);
        let _ = word.compare_exchange(request.get(), 0, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Whether any of these TCP ports is served, at any address.
    pub fn serves_any(&self, ports: &BTreeSet<u16>) -> bool {
        let state = self.state();
        let places = (0..ADDRESSES_MAX).filter(|place| state.addresses[*place].is_some());
        let is_set = |place: usize, port: &u16| {
            let offset = TCP_PORTS + place * BITMAP_BYTES + usize::from(port / 32) * 4;
            state.word(offset).load(Ordering::Acquire) & 1 << (port % 32) != 0
        };
        let mut places = places;
        places.any(|place| ports.iter().any(|port| is_set(place, port)))
    }

    /// Sets whether the device's owner has a successor (see [`crate::handover`]), which may have connections on the
    /// interface. The next process that owns the device finds the value.
    pub fn set_has_successor(&self, on: bool) {
        let state = self.state();
        state
            .word(HAS_SUCCESSOR)
            .store(on.into(), Ordering::Release);
    }

    /// The value of the last [`Self::set_has_successor`], by this process or a former one.
    pub fn has_successor(&self) -> bool {
        self.state().word(HAS_SUCCESSOR).load(Ordering::Acquire) != 0
    }

    /// Sets how many workers share each queue, 1 to [`WORKERS_MAX`]. A worker without a socket at a queue leaves its
    /// flows to the kernel.
    pub fn set_workers(&self, workers: u32) {
        debug_assert!((1..=WORKERS_MAX).contains(&workers), "{workers}");
        let workers = workers.clamp(1, WORKERS_MAX);
        self.state().word(WORKERS).store(workers, Ordering::Release);
    }

    /// The hash that assigns flows to workers.
    pub fn flow_hash(&self) -> FlowHash {
        let state = self.state();
        let seed = state.served.atomic_u64(SEED).expect(INSIDE);
        FlowHash {
            seed: seed.load(Ordering::Relaxed),
            workers: state.word(WORKERS).load(Ordering::Relaxed),
        }
    }

    pub fn counters(&self) -> SteeringCounters {
        SteeringCounters::read(&self.state().counters)
    }

    /// Writes the initial values, before anything is served: one worker.
    pub(super) fn begin(&self, seed: u64) {
        self.set_workers(1);
        let state = self.state();
        let place = state.served.atomic_u64(SEED).expect(INSIDE);
        place.store(seed, Ordering::Release);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // After a panic elsewhere a port may be served that should not be, or the other way round; nothing worse.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn open([served, counters]: &[OwnedFd; 2]) -> io::Result<Self> {
        let (served, can_block) = match ArrayMemory::open(served.as_fd(), TABLE_BYTES) {
            Ok(memory) => (memory, true),
            // A process of a former version has made it.
            Err(_) => (ArrayMemory::open(served.as_fd(), BLOCKED)?, false),
        };
        Ok(Self {
            served,
            blocked: Vec::new(),
            can_block,
            counters: ArrayMemory::open(counters.as_fd(), COUNTERS_BYTES)?,
            addresses: [None; ADDRESSES_MAX],
            services: BTreeMap::new(),
            sharers: 1,
            closing: BTreeSet::new(),
            forgotten: BTreeMap::new(),
            opened: Arc::default(),
            kept: BTreeMap::new(),
        })
    }

    /// Reads what a former process has served.
    fn keep(&mut self) {
        for place in 0..ADDRESSES_MAX {
            self.addresses[place] = address_of(address_at(&self.served, place));
            if self.addresses[place].is_none() {
                continue;
            }
            for offset in bitmaps_of(place) {
                let bits = self.word(offset).load(Ordering::Acquire);
                if bits != 0 {
                    self.kept.insert(offset, bits);
                }
            }
        }
    }

    fn forget_kept(&mut self) {
        let kept = std::mem::take(&mut self.kept);
        for place in 0..ADDRESSES_MAX {
            let Some(own) = self.addresses[place] else {
                continue;
            };
            for (transport, bitmaps) in [(Transport::Tcp, TCP_PORTS), (Transport::Udp, UDP_PORTS)] {
                let bitmap = bitmaps + place * BITMAP_BYTES;
                for (offset, bits) in kept.range(bitmap..bitmap + BITMAP_BYTES) {
                    let first = (offset - bitmap) / 4 * 32;
                    for port in (0..32).filter(|bit| bits & (1 << bit) != 0) {
                        let port = u16::try_from(first + port).expect("a bitmap has 65536 bits");
                        self.write_bit(place, own, transport, port);
                    }
                }
            }
        }
        // Another worker may open ports meanwhile.
        self.write_all_opened();
    }

    fn serve(&mut self, service: Service, on: bool) {
        let transport = match service.protocol {
            Protocol::TCP => Transport::Tcp,
            Protocol::UDP => Transport::Udp,
            _ => return,
        };
        // IPv6 scopes and flow labels are ignored.
        let (address, port) = (service.address.ip(), service.address.port());
        let key = (transport, SocketAddr::new(address, port));
        if on {
            self.forgotten.remove(&key.1);
            let count = self.services.entry(key).or_default();
            *count += 1;
            if *count >= self.sharers {
                self.closing.remove(&key.1);
            }
        } else {
            let Some(count) = self.services.get_mut(&key) else {
                return;
            };
            let was_served = *count >= self.sharers;
            *count -= 1;
            let is_served = *count >= self.sharers;
            if *count == 0 {
                self.services.remove(&key);
            }
            if transport == Transport::Tcp && was_served && !is_served {
                self.closing.insert(key.1);
            }
        }
        self.write_bits(key);
    }

    fn forget(&mut self, service: Service) {
        let key = SocketAddr::new(service.address.ip(), service.address.port());
        if service.protocol != Protocol::TCP || !self.closing.contains(&key) {
            return;
        }
        let count = self.forgotten.entry(key).or_default();
        *count += 1;
        if *count >= self.sharers {
            self.forgotten.remove(&key);
            self.closing.remove(&key);
            self.write_bits((Transport::Tcp, key));
        }
    }

    /// Updates the bits of a service.
    fn write_bits(&self, (transport, service): (Transport, SocketAddr)) {
        for place in 0..ADDRESSES_MAX {
            if let Some(own) = self.addresses[place]
                && (own == service.ip() || all_of(own) == service.ip())
            {
                self.write_bit(place, own, transport, service.port());
            }
        }
    }

    fn set_addresses(&mut self, wanted: &[IpAddr]) -> usize {
        for place in 0..ADDRESSES_MAX {
            if self.addresses[place].is_some_and(|own| !wanted.contains(&own)) {
                self.clear(place);
            }
        }
        let mut left_out = 0;
        for (index, address) in wanted.iter().enumerate() {
            let is_there = self.addresses.contains(&Some(*address));
            if is_there || wanted[..index].contains(address) {
                continue;
            }
            match self.addresses.iter().position(Option::is_none) {
                Some(place) => self.place(place, *address),
                None => left_out += 1,
            }
        }
        let last = self.addresses.iter().rposition(Option::is_some);
        let count = last.map_or(0, |last| last + 1);
        let count = u32::try_from(count).expect("ADDRESSES_MAX is small");
        self.word(ADDRESS_COUNT).store(count, Ordering::Release);
        left_out
    }

    /// Writes an address into an empty slot, then its ports.
    fn place(&mut self, place: usize, address: IpAddr) {
        self.addresses[place] = Some(address);
        self.write_address(place, halves_of(address));
        let services: Vec<_> = self.services.keys().copied().collect();
        for (transport, service) in services {
            if service.ip() == address || service.ip() == all_of(address) {
                self.write_bit(place, address, transport, service.port());
            }
        }
        for service in &self.closing {
            if service.ip() == address || service.ip() == all_of(address) {
                self.write_bit(place, address, Transport::Tcp, service.port());
            }
        }
        self.opened.write(&self.served, place);
    }

    fn write_all_opened(&self) {
        for place in 0..ADDRESSES_MAX {
            if self.addresses[place].is_some() {
                self.opened.write(&self.served, place);
            }
        }
    }

    /// Clears the ports before the address: while the address changes, none of them is served.
    fn clear(&mut self, place: usize) {
        for offset in bitmaps_of(place) {
            self.kept.remove(&offset);
            self.word(offset).store(0, Ordering::Release);
        }
        self.addresses[place] = None;
        self.write_address(place, (0, 0));
    }

    fn write_address(&self, place: usize, (high, low): (u64, u64)) {
        let offset = ADDRESSES + place * ADDRESS_BYTES;
        let bitmap = u64::try_from(place * BITMAP_BYTES).expect("the table is short");
        for (offset, half) in [
            (offset + BITMAP_OF_ADDRESS, bitmap),
            (offset, high),
            (offset + 8, low),
        ] {
            let to = self.served.atomic_u64(offset).expect(INSIDE);
            to.store(half, Ordering::Release);
        }
    }

    /// Sets or clears a port's bit according to the services.
    fn write_bit(&self, place: usize, own: IpAddr, transport: Transport, port: u16) {
        let is_served = [own, all_of(own)].iter().any(|address| {
            let key = (transport, SocketAddr::new(*address, port));
            let count = self.services.get(&key);
            count.is_some_and(|count| *count >= self.sharers)
        });
        let is_served = is_served || transport == Transport::Tcp && self.opened.contains(port);
        let bitmaps = match transport {
            Transport::Tcp => TCP_PORTS,
            Transport::Udp => UDP_PORTS,
        };
        self.set_bit(bitmaps, (place, port), is_served);
        if transport == Transport::Tcp {
            let is_closing = [own, all_of(own)]
                .iter()
                .any(|address| self.closing.contains(&SocketAddr::new(*address, port)));
            self.set_bit(CLOSING_PORTS, (place, port), is_closing && !is_served);
        }
    }

    /// Sets or clears a bit, unless it is kept.
    fn set_bit(&self, bitmaps: usize, (place, port): (usize, u16), on: bool) {
        let offset = bitmaps + place * BITMAP_BYTES + usize::from(port / 32) * 4;
        let word = self.word(offset);
        let bit = 1_u32 << (port % 32);
        if on || self.kept.get(&offset).is_some_and(|kept| kept & bit != 0) {
            word.fetch_or(bit, Ordering::Release);
        } else {
            word.fetch_and(!bit, Ordering::Release);
        }
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        self.served.atomic_u32(offset).expect(INSIDE)
    }
}

/// Each request is another number, so that an older one does not end with it.
fn look_up_kernel_flows(table: &ArrayMemory) {
    let word = table.atomic_u32(LOOKS_UP_KERNEL_FLOWS).expect(INSIDE);
    let next = |before: u32| Some(before.wrapping_add(1).max(1));
    let _ = word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, next);
}

/// The halves of the address at `place`, zero if there is none.
fn address_at(served: &ArrayMemory, place: usize) -> (u64, u64) {
    let offset = ADDRESSES + place * ADDRESS_BYTES;
    let [high, low] = [offset, offset + 8].map(|offset| {
        let half = served.atomic_u64(offset).expect(INSIDE);
        half.load(Ordering::Acquire)
    });
    (high, low)
}

/// The offsets of the words of an address's bitmaps.
fn bitmaps_of(place: usize) -> impl Iterator<Item = usize> {
    let bitmaps = [TCP_PORTS, UDP_PORTS, CLOSING_PORTS];
    bitmaps.into_iter().flat_map(move |bitmaps| {
        let bitmap = bitmaps + place * BITMAP_BYTES;
        (bitmap..bitmap + BITMAP_BYTES).step_by(4)
    })
}

/// The unspecified address of the same family.
fn all_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// Why an access to the table can't fail.
const INSIDE: &str = "the layout's offsets are aligned and inside the table";

#[cfg(test)]
mod tests;
