//! Two connected ends: the memory, its rings, and the events that wake the peer.

use super::handshake::{Agreed, Offer, Refusal};
use super::layout::Layout;
use super::message::{AddRegion, AddRing};
use super::receiver::{Receiver, Taken};
use super::ring::Ring;
use super::transmitter::Transmitter;
use super::{Broken, MemifCounters};
use crate::frames::Frames;
use crate::memif::extra::Extra;
use mill_stack::link::{Burst, Received, ReceivedChecksum};
use mill_sys::eventfd::{self, Signaller};
use mill_sys::memory::{Pages, SharedMemory};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Rings to receive from and to transmit to.
#[derive(Debug)]
pub(crate) struct Connection {
    regions: Vec<SharedMemory>,
    receivers: Vec<(Receiver, OwnedFd)>,
    transmitters: Vec<(Transmitter, OwnedFd)>,
    /// The peer has these events too, and may use them in any way.
    signaller: Signaller,
    /// Neither end completes checksums or segments frames.
    pub(crate) offload: bool,
    /// The ring to receive from first.
    turn: usize,
}

impl Connection {
    /// Maps what a slave has offered; any part of it may be wrong.
    pub(crate) fn map(offer: Offer<OwnedFd>, agreed: Agreed) -> Result<Self, Refusal> {
        let mut regions = Vec::with_capacity(offer.regions.len());
        for (region, file) in offer.regions {
            regions.push(open_region(region, file)?);
        }
        let find = |ring: &AddRing| {
            Ring::new(&regions, ring.region, ring.offset, ring.log2_size)
                .filter(|ring| ring.has_cookie(&regions))
                .ok_or(Refusal::RingPlace)
        };
        let mut receivers = Vec::with_capacity(offer.s2m.len());
        for (ring, event) in offer.s2m {
            check_event(&event)?;
            receivers.push((Receiver::of_master(find(&ring)?), event));
        }
        let mut transmitters = Vec::with_capacity(offer.m2s.len());
        for (ring, event) in offer.m2s {
            check_event(&event)?;
            transmitters.push((Transmitter::of_master(find(&ring)?), event));
        }
        Ok(Self {
            regions,
            receivers,
            transmitters,
            signaller: Signaller::new(),
            offload: agreed.offload,
            turn: 0,
        })
    }

    /// Makes a slave's memory, and the offer that describes it.
    pub(crate) fn make(
        agreed: Agreed,
        buffer_bytes: u32,
    ) -> Result<(Self, Offer<OwnedFd>), Refusal> {
        let layout = Layout::new(agreed, buffer_bytes).ok_or(Refusal::NoMemory)?;
        Self::try_make(agreed, &layout).map_err(|_| Refusal::NoMemory)
    }

    fn try_make(agreed: Agreed, layout: &Layout) -> io::Result<(Self, Offer<OwnedFd>)> {
        let bytes = usize::try_from(layout.region_bytes).unwrap_or(usize::MAX);
        // Small pages, as the peer refuses others: if huge pages run out when it touches them, the kernel kills it.
        let memory = SharedMemory::create("memif", bytes, Pages::Small)?;
        let region = AddRegion {
            index: 0,
            size_bytes: memory.len() as u64,
        };
        let mut offer = Offer::new();
        offer
            .regions
            .push((region, memory.as_fd().try_clone_to_owned()?));
        let regions = vec![memory];
        let mut transmitters = Vec::new();
        for (number, offset) in layout.s2m.iter().enumerate() {
            let (ring, event) = make_ring(&regions, layout, *offset)?;
            let add = add_ring(true, number, *offset, layout)?;
            offer.s2m.push((add, event.try_clone()?));
            let buffers = layout.buffers(number);
            transmitters.push((Transmitter::of_slave(ring, buffers), event));
        }
        let mut receivers = Vec::new();
        for (number, offset) in layout.m2s.iter().enumerate() {
            let (ring, event) = make_ring(&regions, layout, *offset)?;
            let add = add_ring(false, number, *offset, layout)?;
            offer.m2s.push((add, event.try_clone()?));
            let buffers = layout.buffers(layout.s2m.len() + number);
            receivers.push((Receiver::of_slave(ring, buffers), event));
        }
        let connection = Self {
            regions,
            receivers,
            transmitters,
            signaller: Signaller::new(),
            offload: agreed.offload,
            turn: 0,
        };
        Ok((connection, offer))
    }

    /// Called when both ends have mapped everything and frames may pass.
    pub(crate) fn start(&mut self) {
        for (receiver, _) in &mut self.receivers {
            receiver.start(&self.regions);
        }
        // A master with frames to send waits for the buffers that it was given just now.
        for (_, event) in &self.transmitters {
            // Signalling an eventfd of this process cannot fail; if the peer's fails, only the peer is not woken.
            let _ = self.signaller.signal(event.as_fd());
        }
    }

    /// The events that become readable when there is something to receive.
    pub(crate) fn events(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.receivers.iter().map(|(_, event)| event.as_fd())
    }

    /// Receives at most [`SHARE`] frames, from each ring in turn; returns their number, refused ones included.
    pub(crate) fn receive(
        &mut self,
        frames: &mut Frames,
        burst: &mut Burst,
        counters: &mut MemifCounters,
    ) -> Result<usize, Broken> {
        let before = counters.received + counters.refused;
        let until = burst.room().saturating_sub(SHARE);
        let count = self.receivers.len();
        self.turn = (self.turn + 1) % count.max(1);
        for step in 0..count {
            let ring = (self.turn + step) % count;
            let Some((receiver, _)) = self.receivers.get_mut(ring) else {
                continue;
            };
            let regions = &self.regions;
            let so_far = counters.received + counters.refused;
            let room = (self.offload, until);
            let taken = take_all(receiver, regions, room, frames, burst, counters);
            let is_idle = so_far == counters.received + counters.refused;
            receiver.give_back(regions, is_idle);
            taken?;
        }
        let after = counters.received + counters.refused;
        Ok(usize::try_from(after - before).unwrap_or(usize::MAX))
    }

    /// Whether a frame of `len` bytes has room in every ring it may go to.
    pub(crate) fn has_room(&mut self, len: usize) -> Result<bool, Broken> {
        for (transmitter, _) in &mut self.transmitters {
            if !transmitter.has_room(&self.regions, len)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Puts a frame into the ring of its flow; false if there was no room.
    pub(crate) fn put(&mut self, frame: &[u8], metadata: u32) -> Result<bool, Broken> {
        let ring = match self.transmitters.len() {
            1 => 0,
            count => flow(frame) % count.max(1),
        };
        match self.transmitters.get_mut(ring) {
            Some((transmitter, _)) => transmitter.put(&self.regions, frame, metadata),
            None => Ok(false),
        }
    }

    /// Makes frames visible to the peer, and wakes it if it sleeps.
    pub(crate) fn publish(&mut self, counters: &mut MemifCounters) {
        for (transmitter, event) in &mut self.transmitters {
            if transmitter.publish(&self.regions) {
                counters.wakeups += 1;
                // See [`Self::start`].
                let _ = self.signaller.signal(event.as_fd());
            }
        }
    }

    /// Sets whether the peer should signal new frames.
    pub(crate) fn set_wakeups(&self, wanted: bool) {
        for (receiver, _) in &self.receivers {
            receiver.set_wakeups(&self.regions, wanted);
        }
    }

    /// The number of frames that the peer has not taken.
    pub(crate) fn count_untaken(&mut self) -> u64 {
        let regions = &self.regions;
        self.transmitters
            .iter_mut()
            .map(|(transmitter, _)| transmitter.count_untaken(regions))
            .sum()
    }
}

/// Receives what a ring has, until `burst` has room for `until` frames only. At most one ring's size, as buffers are
/// returned afterwards.
fn take_all(
    receiver: &mut Receiver,
    regions: &[SharedMemory],
    (offload, until): (bool, usize),
    frames: &mut Frames,
    burst: &mut Burst,
    counters: &mut MemifCounters,
) -> Result<(), Broken> {
    while burst.room() > until {
        let mut extra = Extra::of_received(0);
        let mut frame_len = 0;
        let filled = frames.fill(|place| match receiver.take(regions, place) {
            Ok(Taken::Frame { len, metadata }) => {
                extra = Extra::of_received(metadata);
                frame_len = len;
                Ok(len)
            }
            Ok(Taken::Refused) => Err(Some(Ok(()))),
            Ok(Taken::Nothing) => Err(None),
            Err(broken) => Err(Some(Err(broken))),
        });
        let id = match filled {
            Some(Ok(id)) => id,
            Some(Err(Some(Ok(())))) => {
                counters.refused += 1;
                continue;
            }
            Some(Err(Some(Err(broken)))) => return Err(broken),
            // There is no frame, or no slot for one.
            Some(Err(None)) | None => return Ok(()),
        };
        counters.received += 1;
        counters.received_bytes += frame_len as u64;
        let (checksum, merged) = if offload {
            (extra.checksum(), extra.merged(frame_len))
        } else {
            (ReceivedChecksum::Unverified, 1)
        };
        burst.push(Received {
            id,
            checksum,
            merged,
        });
    }
    Ok(())
}

/// Maps a region that the peer has made. It has to be sealed against shrinking: an access beyond the end of the file
/// would kill this process (SIGBUS). Huge pages are refused too: once released they may run out when they are touched
/// again, while small pages do so only when the machine has no memory left.
fn open_region(region: AddRegion, file: OwnedFd) -> Result<SharedMemory, Refusal> {
    let memory = SharedMemory::open(file).map_err(|_| Refusal::RegionFile)?;
    let announced = region.size_bytes..=region.size_bytes.saturating_add(ROUNDED_UP_BYTES);
    if !memory.is_sealed() || memory.is_huge() || !announced.contains(&(memory.len() as u64)) {
        return Err(Refusal::RegionFile);
    }
    Ok(memory)
}

fn check_event(event: &OwnedFd) -> Result<(), Refusal> {
    match eventfd::is_one(event.as_fd()) {
        Ok(true) => Ok(()),
        Ok(false) | Err(_) => Err(Refusal::EventFile),
    }
}

fn make_ring(
    regions: &[SharedMemory],
    layout: &Layout,
    offset: u32,
) -> io::Result<(Ring, OwnedFd)> {
    let ring =
        Ring::new(regions, 0, offset, layout.log2_ring_size).ok_or(io::ErrorKind::InvalidInput)?;
    ring.initialise(regions);
    Ok((ring, eventfd::create()?))
}

fn add_ring(is_s2m: bool, number: usize, offset: u32, layout: &Layout) -> io::Result<AddRing> {
    Ok(AddRing {
        is_s2m,
        index: u16::try_from(number).map_err(|_| io::ErrorKind::InvalidInput)?,
        region: 0,
        offset,
        log2_size: layout.log2_ring_size,
        private_header_bytes: 0,
    })
}

/// Maps all frames of a flow to the same number: addresses and ports, mixed (FNV-1a over 16 bits at a time). Frames
/// that are not TCP or UDP without IP options get any number.
fn flow(frame: &[u8]) -> usize {
    let (addresses, len) = match frame.get(12..14) {
        Some([0x08, 0x00]) => (26, 12),
        Some([0x86, 0xdd]) => (22, 36),
        _ => (0, 12),
    };
    let bytes = frame
        .get(addresses..)
        .and_then(|rest| rest.get(..len))
        .unwrap_or_default();
    let mut hash = 0x811c_9dc5_u32;
    for pair in bytes.chunks(2) {
        for byte in pair {
            hash = (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        }
    }
    usize::try_from(hash >> 8).unwrap_or(0)
}

/// Frames received in one turn. Answers are published after each share, so that the peer works on them while more
/// frames are taken. An end that takes everything at once leaves its peer idle until all of it is answered, and then
/// idles itself while the peer does the same: 64 connections, each of which asks again when it is answered, were
/// processed by one end or the other, never by both (0.78 M requests/s, 1.2 M with shares).
pub(crate) const SHARE: usize = 16;

/// Bytes by which a file may be longer than its slave says: one huge page, as some slaves round up. Only what was
/// announced is mapped.
const ROUNDED_UP_BYTES: u64 = 2 << 20;
