//! The layout of a slave's memory: the rings from the slave, those to it, then the buffers of each.

use super::handshake::Agreed;
use super::ring::ring_bytes;

/// A region with rings and buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Offsets of rings.
    pub s2m: Vec<u32>,
    pub m2s: Vec<u32>,
    pub log2_ring_size: u8,
    pub region_bytes: u32,
    buffers: u32,
    buffer_bytes: u32,
}

/// The buffers of one ring, one for each descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    first: u32,
    stride: u32,
    pub buffer_bytes: u32,
}

impl Layout {
    /// `None` if 32-bit offsets cannot reach everything.
    pub fn new(agreed: Agreed, buffer_bytes: u32) -> Option<Self> {
        let ring = u32::try_from(ring_bytes(agreed.log2_ring_size)).ok()?;
        let ring = ring.checked_next_multiple_of(CACHE_LINE_BYTES)?;
        let (s2m, m2s) = (u32::from(agreed.s2m_rings), u32::from(agreed.m2s_rings));
        let rings = s2m.checked_add(m2s)?;
        let buffers = ring.checked_mul(rings)?;
        let count = rings.checked_mul(1_u32.checked_shl(agreed.log2_ring_size.into())?)?;
        let region_bytes = stride(buffer_bytes)?
            .checked_mul(count)?
            .checked_add(buffers)?;
        Some(Self {
            s2m: (0..s2m).map(|index| index * ring).collect(),
            m2s: (s2m..rings).map(|index| index * ring).collect(),
            log2_ring_size: agreed.log2_ring_size,
            region_bytes,
            buffers,
            buffer_bytes,
        })
    }

    /// The buffers of a ring, by its index among all rings.
    pub fn buffers(&self, ring: usize) -> Buffers {
        let stride = stride(self.buffer_bytes).unwrap_or(u32::MAX);
        let each = stride.saturating_mul(1 << self.log2_ring_size);
        let ring = u32::try_from(ring).unwrap_or(u32::MAX);
        Buffers {
            first: self.buffers.saturating_add(each.saturating_mul(ring)),
            stride,
            buffer_bytes: self.buffer_bytes,
        }
    }
}

impl Buffers {
    /// The buffer of a slot.
    pub fn offset(&self, slot: u16) -> u32 {
        self.first + self.stride * u32::from(slot)
    }
}

/// Distance from one buffer to the next: whole cache lines, and an odd number of them. With a power of two the starts
/// of all buffers, where small frames lie, would share a few sets of the processor's caches.
fn stride(buffer_bytes: u32) -> Option<u32> {
    let lines = buffer_bytes.max(1).div_ceil(CACHE_LINE_BYTES) | 1;
    lines.checked_mul(CACHE_LINE_BYTES)
}

/// Bytes of a processor's cache line.
const CACHE_LINE_BYTES: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn agreed(s2m_rings: u16, m2s_rings: u16, log2_ring_size: u8) -> Agreed {
        Agreed {
            s2m_rings,
            m2s_rings,
            log2_ring_size,
            offload: false,
        }
    }

    #[test]
    fn nothing_overlaps_and_everything_is_inside() {
        for (s2m, m2s, log2, bytes) in [(1, 1, 0, 1), (1, 2, 3, 2048), (3, 1, 5, 65_600)] {
            let layout = Layout::new(agreed(s2m, m2s, log2), bytes).unwrap();
            let ring = u32::try_from(ring_bytes(log2)).unwrap();
            let rings = layout.s2m.iter().chain(&layout.m2s);
            let mut places: Vec<(u32, u32)> = rings.map(|at| (*at, at + ring)).collect();
            for index in 0..usize::from(s2m + m2s) {
                let buffers = layout.buffers(index);
                let slots = 0..1 << log2;
                places.extend(slots.map(|slot| {
                    let at = buffers.offset(slot);
                    (at, at + bytes)
                }));
            }
            for pair in places.windows(2) {
                assert!(pair[0].1 <= pair[1].0, "{pair:?}");
                assert_eq!(pair[1].0 % CACHE_LINE_BYTES, 0);
            }
            assert!(places.last().unwrap().1 <= layout.region_bytes);
        }
    }

    #[test]
    fn a_layout_beyond_32_bit_offsets_is_refused() {
        // 65 535 buffers of 65 600 bytes are just below 4 GiB.
        assert!(Layout::new(agreed(1, 1, 14), 65_600).is_some());
        assert_eq!(Layout::new(agreed(4, 4, 14), 65_600), None);
        assert_eq!(Layout::new(agreed(1, 1, 1), u32::MAX), None);
    }
}
