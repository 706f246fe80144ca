//! What two connected ends have agreed on: the memory, its rings and their events. Each worker makes its rings of it
//! (`memif/connection.rs`), and the next process does (`memif/dispatch.rs`).

use super::handshake::{Agreed, Offer, Refusal};
use super::layout::Layout;
use super::message::{AddRegion, AddRing, MESSAGE_BYTES, Message};
use super::ring::Ring;
use mill_sys::eventfd;
use mill_sys::memory::{Pages, SharedMemory};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The terms of a connection, with everything that a slave offers.
#[derive(Debug)]
pub(crate) struct Agreement {
    offer: Offer<OwnedFd>,
    /// Neither end completes checksums or segments frames.
    pub(crate) offload: bool,
    /// Bytes of each buffer, where the memory is this end's.
    buffer_bytes: Option<u32>,
}

impl Agreement {
    /// What a slave has offered; any part of it may be wrong.
    pub(crate) fn offered(offer: Offer<OwnedFd>, agreed: Agreed) -> Self {
        Self {
            offer,
            offload: agreed.offload,
            buffer_bytes: None,
        }
    }

    /// Makes a slave's memory with its rings.
    pub(crate) fn make(
        agreed: Agreed,
        buffer_bytes: u32,
    ) -> Result<(Self, Vec<SharedMemory>), Refusal> {
        let layout = Layout::new(agreed, buffer_bytes).ok_or(Refusal::NoMemory)?;
        Self::try_make(agreed, &layout, buffer_bytes).map_err(|_| Refusal::NoMemory)
    }

    fn try_make(
        agreed: Agreed,
        layout: &Layout,
        buffer_bytes: u32,
    ) -> io::Result<(Self, Vec<SharedMemory>)> {
        let bytes = usize::try_from(layout.region_bytes).unwrap_or(usize::MAX);
        // Small pages, as the peer refuses others: if huge pages run out when it touches them, the kernel kills it.
        let memory = SharedMemory::create("memif", bytes, Pages::Small)?;
        let region = AddRegion {
            index: 0,
            size_bytes: memory.len() as u64,
        };
        let file = memory.as_fd().try_clone_to_owned()?;
        let regions = vec![memory];
        let make = |is_s2m: bool, offsets: &[u32]| {
            let numbered = offsets.iter().enumerate();
            let made = numbered.map(|(number, offset)| {
                let size = layout.log2_ring_size;
                let ring = Ring::new(&regions, 0, *offset, size);
                ring.ok_or(io::ErrorKind::InvalidInput)?
                    .initialise(&regions);
                let add = add_ring(is_s2m, number, *offset, size)?;
                Ok((add, eventfd::create()?))
            });
            made.collect::<io::Result<Vec<_>>>()
        };
        let offer = Offer {
            regions: vec![(region, file)],
            s2m: make(true, &layout.s2m)?,
            m2s: make(false, &layout.m2s)?,
        };
        let agreement = Self {
            offer,
            offload: agreed.offload,
            buffer_bytes: Some(buffer_bytes),
        };
        Ok((agreement, regions))
    }

    /// A copy of the offer, for the peer.
    pub(crate) fn offer(&self) -> io::Result<Offer<OwnedFd>> {
        let copy = |rings: &[(AddRing, OwnedFd)]| {
            let copies = rings
                .iter()
                .map(|(add, event)| Ok((*add, event.try_clone()?)));
            copies.collect::<io::Result<Vec<_>>>()
        };
        let regions = self.offer.regions.iter();
        let regions = regions.map(|(add, file)| Ok((*add, file.try_clone()?)));
        Ok(Offer {
            regions: regions.collect::<io::Result<_>>()?,
            s2m: copy(&self.offer.s2m)?,
            m2s: copy(&self.offer.m2s)?,
        })
    }

    /// Maps the memory.
    pub(crate) fn map(&self) -> Result<Vec<SharedMemory>, Refusal> {
        let regions = self.offer.regions.iter();
        regions.map(|(add, file)| open_region(*add, file)).collect()
    }

    /// The rings to receive from, and those to transmit to.
    pub(crate) fn rings(&self) -> [&[(AddRing, OwnedFd)]; 2] {
        let Offer { s2m, m2s, .. } = &self.offer;
        match self.buffer_bytes {
            Some(_) => [m2s, s2m],
            None => [s2m, m2s],
        }
    }

    /// Where the buffers of this end's rings are, if the memory is its own.
    pub(crate) fn layout(&self) -> Result<Option<Layout>, Refusal> {
        let Some(buffer_bytes) = self.buffer_bytes else {
            return Ok(None);
        };
        let count = |rings: &[_]| u16::try_from(rings.len()).unwrap_or(u16::MAX);
        let first = self.offer.s2m.first();
        let agreed = Agreed {
            s2m_rings: count(&self.offer.s2m),
            m2s_rings: count(&self.offer.m2s),
            log2_ring_size: first.map_or(0, |(add, _)| add.log2_size),
            offload: self.offload,
        };
        let layout = Layout::new(agreed, buffer_bytes);
        layout.map(Some).ok_or(Refusal::NoMemory)
    }

    /// The numbers of rings to receive from and to transmit to.
    pub(crate) fn ring_counts(&self) -> [usize; 2] {
        self.rings().map(<[_]>::len)
    }

    /// For another worker or process: bytes, and the descriptors that belong to them.
    pub(crate) fn emit(&self) -> (Vec<u8>, Vec<BorrowedFd<'_>>) {
        let mut bytes = vec![u8::from(self.offload)];
        bytes.extend(self.buffer_bytes.unwrap_or(0).to_ne_bytes());
        let mut descriptors = Vec::new();
        for (add, file) in &self.offer.regions {
            bytes.extend(Message::AddRegion(*add).emit());
            descriptors.push(file.as_fd());
        }
        for (add, event) in self.offer.s2m.iter().chain(&self.offer.m2s) {
            bytes.extend(Message::AddRing(*add).emit());
            descriptors.push(event.as_fd());
        }
        (bytes, descriptors)
    }

    /// What [`Self::emit`] has made.
    pub(crate) fn parse(bytes: &[u8], descriptors: Vec<OwnedFd>) -> Option<Self> {
        let (offload, rest) = bytes.split_first()?;
        let (buffer_bytes, rest) = rest.split_first_chunk()?;
        let buffer_bytes = u32::from_ne_bytes(*buffer_bytes);
        let messages = rest.chunks(MESSAGE_BYTES);
        if messages.len() != descriptors.len() {
            return None;
        }
        let mut offer = Offer::new();
        for (message, descriptor) in messages.zip(descriptors) {
            match Message::parse(message).ok()? {
                Message::AddRegion(add) => offer.regions.push((add, descriptor)),
                Message::AddRing(add) if add.is_s2m => offer.s2m.push((add, descriptor)),
                Message::AddRing(add) => offer.m2s.push((add, descriptor)),
                _ => return None,
            }
        }
        Some(Self {
            offer,
            offload: *offload != 0,
            buffer_bytes: (buffer_bytes != 0).then_some(buffer_bytes),
        })
    }
}

/// Maps a region that the peer has made. It has to be sealed against shrinking: an access beyond the end of the file
/// would kill this process (SIGBUS). Huge pages are refused too: once released they may run out when they are touched
/// again, while small pages do so only when the machine has no memory left.
fn open_region(region: AddRegion, file: &OwnedFd) -> Result<SharedMemory, Refusal> {
    let file = file.try_clone().map_err(|_| Refusal::RegionFile)?;
    let memory = SharedMemory::open(file).map_err(|_| Refusal::RegionFile)?;
    let announced = region.size_bytes..=region.size_bytes.saturating_add(ROUNDED_UP_BYTES);
    if !memory.is_sealed() || memory.is_huge() || !announced.contains(&(memory.len() as u64)) {
        return Err(Refusal::RegionFile);
    }
    Ok(memory)
}

fn add_ring(is_s2m: bool, number: usize, offset: u32, log2_size: u8) -> io::Result<AddRing> {
    Ok(AddRing {
        is_s2m,
        index: u16::try_from(number).map_err(|_| io::ErrorKind::InvalidInput)?,
        region: 0,
        offset,
        log2_size,
        private_header_bytes: 0,
    })
}

/// Bytes by which a file may be longer than its slave says: one huge page, as some slaves round up. Only what was
/// announced is mapped.
const ROUNDED_UP_BYTES: u64 = 2 << 20;
