//! A ring in shared memory, whose other end may write anything at any time.
//!
//! ```text
//!    0  cookie 4 | flags 2 | head 2        the first cache line
//!   64  tail 2                             the second
//!  128  descriptors of 16 bytes: flags 2 | region 2 | length 4 | offset 4 | metadata 4
//! ```
//!
//! Head and tail are counts modulo 2^16; the descriptor of a count is at the count modulo the ring's size. The slave
//! writes head in both directions, the master tail. In a ring from slave to master the frames are those from tail to
//! head. In the other direction the descriptors from tail to head are empty buffers, and frames are those from the
//! slave's last look up to tail.

use mill_sys::memory::SharedMemory;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering, fence};

/// Location of a ring. All that it reads and writes was found to be inside of its region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    region: usize,
    offset: usize,
    log2_size: u8,
}

/// A buffer, with the length of its contents or its capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// The frame goes on in the next descriptor's buffer.
    pub has_next: bool,
    pub region: u16,
    pub len: u32,
    pub offset: u32,
    pub metadata: u32,
}

/// The two counts of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    Head,
    Tail,
}

/// Bytes of a ring with 2^`log2_size` descriptors.
pub const fn ring_bytes(log2_size: u8) -> usize {
    DESCRIPTORS_OFFSET + (DESCRIPTOR_BYTES << log2_size)
}

impl Ring {
    /// `None` if it does not lie inside of its region, or not at a multiple of four.
    pub fn new(regions: &[SharedMemory], region: u16, offset: u32, log2_size: u8) -> Option<Self> {
        let ring = Self {
            region: usize::from(region),
            offset: usize::try_from(offset).ok()?,
            log2_size,
        };
        let end = ring.offset.checked_add(ring_bytes(log2_size))?;
        let is_inside = end <= regions.get(ring.region)?.len();
        (is_inside && ring.offset.is_multiple_of(4)).then_some(ring)
    }

    /// Writes an empty ring; its owner does so before the peer can see it.
    pub fn initialise(&self, regions: &[SharedMemory]) {
        if let Some(flags) = self.u16(regions, FLAGS_OFFSET) {
            flags.store(0, Ordering::Relaxed);
        }
        self.publish(regions, Index::Head, 0);
        self.publish(regions, Index::Tail, 0);
        if let Some(cookie) = self.u32(regions, 0) {
            cookie.store(COOKIE, Ordering::Release);
        }
    }

    pub fn has_cookie(&self, regions: &[SharedMemory]) -> bool {
        self.u32(regions, 0)
            .is_some_and(|cookie| cookie.load(Ordering::Acquire) == COOKIE)
    }

    /// The number of descriptors.
    pub const fn size(&self) -> u16 {
        1 << self.log2_size
    }

    /// Reads the peer's count; what the peer wrote before it is visible then.
    pub fn look(&self, regions: &[SharedMemory], index: Index) -> u16 {
        self.u16(regions, index.offset())
            .map_or(0, |index| index.load(Ordering::Acquire))
    }

    /// Publishes this end's count, and with it what was written before.
    pub fn publish(&self, regions: &[SharedMemory], index: Index, count: u16) {
        if let Some(index) = self.u16(regions, index.offset()) {
            index.store(count, Ordering::Release);
        }
    }

    /// Sets whether the peer should signal new frames. After asking for signals the caller has to check the ring once
    /// more: the sender publishes first and reads the flag afterwards.
    pub fn set_wakeups(&self, regions: &[SharedMemory], wanted: bool) {
        let flags = if wanted { 0 } else { FLAG_MASK_INTERRUPT };
        if let Some(place) = self.u16(regions, FLAGS_OFFSET) {
            place.store(flags, Ordering::Relaxed);
        }
        // The caller's next load must not overtake the store of the flag, which needs a full fence: neither release nor
        // acquire orders a store before a later load.
        fence(Ordering::SeqCst);
    }

    /// Whether the peer wants to be woken for what was published.
    pub fn wants_wakeup(&self, regions: &[SharedMemory]) -> bool {
        // The counterpart of the fence in `set_wakeups`: the index is stored before the flag is loaded.
        fence(Ordering::SeqCst);
        self.u16(regions, FLAGS_OFFSET)
            .is_some_and(|flags| flags.load(Ordering::Relaxed) & FLAG_MASK_INTERRUPT == 0)
    }

    /// Reads the descriptor of a count, each word once.
    #[inline]
    pub fn descriptor(&self, regions: &[SharedMemory], count: u16) -> Descriptor {
        let words = self.words(regions, count);
        let words = words.map(|words| words.each_ref().map(|word| word.load(Ordering::Relaxed)));
        let [first, len, offset, metadata] = words.unwrap_or_default();
        let [flags, region] = halves(first);
        Descriptor {
            has_next: flags & FLAG_NEXT != 0,
            region,
            len,
            offset,
            metadata,
        }
    }

    #[inline]
    pub fn set_descriptor(&self, regions: &[SharedMemory], count: u16, descriptor: Descriptor) {
        let flags = if descriptor.has_next { FLAG_NEXT } else { 0 };
        let first = whole([flags, descriptor.region]);
        let Descriptor {
            len,
            offset,
            metadata,
            ..
        } = descriptor;
        self.write(regions, count, [first, len, offset, metadata]);
    }

    /// Takes words rather than a descriptor: reading one as words that was just assembled from smaller stores defeats
    /// store forwarding, and would wait for all earlier stores to cache lines of other cores.
    #[inline]
    fn write(&self, regions: &[SharedMemory], count: u16, values: [u32; 4]) {
        if let Some(words) = self.words(regions, count) {
            for (word, value) in words.iter().zip(values) {
                word.store(value, Ordering::Relaxed);
            }
        }
    }

    /// Prefetches the cache line that begins with this count's descriptor, to be written.
    pub fn fetch_descriptors(&self, regions: &[SharedMemory], count: u16) {
        if count.is_multiple_of(DESCRIPTORS_PER_LINE)
            && let Some(region) = regions.get(self.region)
        {
            let at = self.offset + self.descriptor_offset(count);
            region.fetch_to_write(at, DESCRIPTOR_BYTES);
        }
    }

    /// Prefetches a descriptor, to be read.
    pub fn fetch_descriptor(&self, regions: &[SharedMemory], count: u16) {
        if let Some(region) = regions.get(self.region) {
            let at = self.offset + self.descriptor_offset(count);
            region.fetch(at, DESCRIPTOR_BYTES);
        }
    }

    /// A descriptor in memory.
    #[inline]
    fn words<'a>(&self, regions: &'a [SharedMemory], count: u16) -> Option<&'a [AtomicU32; 4]> {
        let at = self.offset.checked_add(self.descriptor_offset(count))?;
        let found = regions.get(self.region)?.four_atomic_u32(at);
        debug_assert!(found.is_some(), "a ring lies inside its region");
        found
    }

    #[inline]
    fn descriptor_offset(&self, count: u16) -> usize {
        DESCRIPTORS_OFFSET + DESCRIPTOR_BYTES * usize::from(count & (self.size() - 1))
    }

    fn u16<'a>(&self, regions: &'a [SharedMemory], offset: usize) -> Option<&'a AtomicU16> {
        let found = regions
            .get(self.region)?
            .atomic_u16(self.offset.checked_add(offset)?);
        debug_assert!(found.is_some(), "a ring lies inside its region");
        found
    }

    fn u32<'a>(&self, regions: &'a [SharedMemory], offset: usize) -> Option<&'a AtomicU32> {
        let found = regions
            .get(self.region)?
            .atomic_u32(self.offset.checked_add(offset)?);
        debug_assert!(found.is_some(), "a ring lies inside its region");
        found
    }
}

impl Index {
    const fn offset(self) -> usize {
        match self {
            Self::Head => HEAD_OFFSET,
            Self::Tail => TAIL_OFFSET,
        }
    }
}

/// The halves of a word, in memory order.
fn halves(word: u32) -> [u16; 2] {
    let [a, b, c, d] = word.to_ne_bytes();
    [u16::from_ne_bytes([a, b]), u16::from_ne_bytes([c, d])]
}

fn whole([first, second]: [u16; 2]) -> u32 {
    let [a, b] = first.to_ne_bytes();
    let [c, d] = second.to_ne_bytes();
    u32::from_ne_bytes([a, b, c, d])
}

/// The first word of a ring, by which the peer recognises one.
const COOKIE: u32 = 0x03E3_1F20;

/// The receiver polls and needs no signal.
const FLAG_MASK_INTERRUPT: u16 = 1;

/// A descriptor's only flag.
const FLAG_NEXT: u16 = 1;

// Offsets of the layout above.
const FLAGS_OFFSET: usize = 4;
const HEAD_OFFSET: usize = 6;
const TAIL_OFFSET: usize = 64;
const DESCRIPTORS_OFFSET: usize = 128;
const DESCRIPTOR_BYTES: usize = 16;

/// In a cache line of 64 bytes.
const DESCRIPTORS_PER_LINE: u16 = 4;
