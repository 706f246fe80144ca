//! A frame between two hosts, and what a network card does to it.

use super::layout::{Layout, put_u16, put_u32, u16_at, u32_at};
use crate::random::Random;
use mill_stack::link::{Offload, Segmentation};

/// A frame on its way.
#[derive(Debug)]
pub(crate) struct Flying {
    pub(super) bytes: Vec<u8>,
    /// The checksum of its transport is there; else its field holds the pseudo header's sum.
    pub(super) is_complete: bool,
    /// It is larger than the MTU: to be cut so, or to be taken whole.
    pub(super) segmentation: Option<Segmentation>,
    /// The station that sent it.
    pub(super) origin: usize,
    /// Its number in the trace.
    pub(super) number: u64,
    /// The wire has flipped bits of it.
    pub(super) is_corrupt: bool,
}

impl Flying {
    pub(super) const fn new(bytes: Vec<u8>, offload: Offload, origin: usize) -> Self {
        Self {
            bytes,
            is_complete: offload.checksum.is_none(),
            segmentation: offload.segmentation,
            origin,
            number: 0,
            is_corrupt: false,
        }
    }

    /// How many segments it is.
    pub(super) fn segments(&self) -> u16 {
        let Some(segmentation) = self.segmentation else {
            return 1;
        };
        let payload = self.bytes.len() - usize::from(segmentation.header_len).min(self.bytes.len());
        let count = payload.div_ceil(usize::from(segmentation.mss.max(1)));
        u16::try_from(count).unwrap_or(u16::MAX).max(1)
    }

    /// Bytes of the largest IP packet that it is cut into.
    pub(super) fn largest_packet(&self) -> usize {
        let whole = self.bytes.len() - super::layout::ETHERNET_BYTES;
        self.segmentation.map_or(whole, |segmentation| {
            let frame = usize::from(segmentation.header_len) + usize::from(segmentation.mss);
            whole.min(frame - super::layout::ETHERNET_BYTES)
        })
    }

    /// Completes what the sender has left to the card.
    pub(super) fn complete(&mut self) {
        if !self.is_complete
            && let Some(layout) = Layout::of(&self.bytes)
        {
            layout.complete(&mut self.bytes);
            self.is_complete = true;
        }
    }

    /// The segments that a card makes of this frame, each with its own headers and checksums. `buffer` gives empty
    /// buffers.
    pub(super) fn cut(self, mut buffer: impl FnMut() -> Vec<u8>, mut give: impl FnMut(Self)) {
        let Some(segmentation) = self.segmentation.filter(|_| self.segments() > 1) else {
            give(Self {
                segmentation: None,
                ..self
            });
            return;
        };
        let header_len = usize::from(segmentation.header_len);
        let (header, payload) = self.bytes.split_at(header_len);
        let mss = usize::from(segmentation.mss);
        for (index, part) in payload.chunks(mss).enumerate() {
            let mut bytes = buffer();
            bytes.extend_from_slice(header);
            bytes.extend_from_slice(part);
            let is_last = (index + 1) * mss >= payload.len();
            fit_headers(
                &mut bytes,
                segmentation.is_ipv6,
                index,
                index * mss,
                is_last,
            );
            give(Self {
                bytes,
                is_complete: true,
                segmentation: None,
                ..self
            });
        }
    }

    /// Flips a few bits so that a 16-bit sum notices: within fifteen neighbouring bits, each of another weight, whose
    /// differences cannot add up to a multiple of 65 535. Of the Ethernet header only the target is changed: its check
    /// sequence would have told, and nothing else covers the source. Frames without IP have no checksum of
    /// their own: those are not corrupted, says the result. A frame that another wire has corrupted stays as it is: two
    /// such changes can cancel each other in the sum.
    pub(super) fn corrupt(&mut self, random: &mut Random) -> bool {
        if self.is_corrupt {
            return true;
        }
        self.complete();
        let Some(layout) = Layout::of(&self.bytes) else {
            return false;
        };
        let bits = (layout.end - SOURCE_BYTES) * 8 - usize::from(BURST_BITS);
        let first = usize::try_from(random.up_to(bits as u64)).unwrap_or(0);
        let pattern = 1 | if random.up_to(1) == 0 {
            0
        } else {
            random.up_to((1 << BURST_BITS) - 1)
        };
        for bit in (0..usize::from(BURST_BITS)).filter(|bit| pattern >> bit & 1 == 1) {
            let at = first + bit;
            // The source's six bytes are skipped.
            let byte = if at / 8 < 6 {
                at / 8
            } else {
                at / 8 + SOURCE_BYTES
            };
            if let Some(byte) = self.bytes.get_mut(byte) {
                *byte ^= 0x80 >> (at % 8);
            }
        }
        self.is_corrupt = true;
        self.segmentation = None;
        true
    }
}

/// Adapts the copied headers of one segment (as Linux's `tcp_gso_segment`): lengths, identification, sequence number,
/// flags that only the first (CWR) or the last (FIN, PSH) carries, checksums.
fn fit_headers(bytes: &mut [u8], is_ipv6: bool, index: usize, offset: usize, is_last: bool) {
    let packet = bytes.len() - super::layout::ETHERNET_BYTES;
    if is_ipv6 {
        put_u16(bytes, 18, u16::try_from(packet - 40).unwrap_or(0));
    } else {
        put_u16(bytes, 16, u16::try_from(packet).unwrap_or(0));
        let identification = u16_at(bytes, 18).unwrap_or(0);
        let step = u16::try_from(index).unwrap_or(0);
        put_u16(bytes, 18, identification.wrapping_add(step));
    }
    let Some(layout) = Layout::of(bytes) else {
        return;
    };
    let seq = u32_at(bytes, layout.transport + 4).unwrap_or(0);
    let step = u32::try_from(offset).unwrap_or(0);
    put_u32(bytes, layout.transport + 4, seq.wrapping_add(step));
    if let Some(flags) = bytes.get_mut(layout.transport + 13) {
        if !is_last {
            *flags &= !(FIN | PSH);
        }
        if index > 0 {
            *flags &= !CWR;
        }
    }
    layout.complete_ip(bytes);
    layout.complete(bytes);
}

const FIN: u8 = 1;
const PSH: u8 = 8;
const CWR: u8 = 128;

/// Bits of one error burst: one less than a word of the checksum has, see [`Flying::corrupt`].
const BURST_BITS: u8 = 15;

/// Bytes of the Ethernet header's source address.
const SOURCE_BYTES: usize = 6;
