//! What a driver is asked to do with a frame, from what the stack leaves to the device.
//!
//! The stack's checksum field holds the sum of the pseudo header. DPDK's drivers want that too, but for a segment to be cut, where the
//! sum is without the length (rte_mbuf_core.h, RTE_MBUF_F_TX_TCP_SEG), and the checksum of an IPv4 header is zero.

use mill_stack::link::{Offload, Segmentation};
use mill_sys::dpdk::packet::{Packet, Work};

/// Leaves the work to the device; `len` are the frame's bytes, of which the headers are in its first piece.
pub(super) fn put(packet: &mut Packet, len: usize, offload: Offload) {
    if let Some(work) = prepare(packet.bytes_mut(), len, offload) {
        packet.set_work(work);
    }
}

/// Bytes before the payload of a segment that is cut.
pub(super) fn header_len(segmentation: Segmentation) -> usize {
    usize::from(segmentation.header_len)
}

/// Completes headers for the driver; `None` if there is nothing to do.
fn prepare(head: &mut [u8], len: usize, offload: Offload) -> Option<Work> {
    let checksum = offload.checksum?;
    let ethernet = match head.get(12..14)? {
        [0x81, 0x00] => 18,
        _ => 14,
    };
    let start = usize::from(checksum.start);
    let is_ipv6 = head.get(ethernet)? >> 4 == 6;
    let is_tcp = checksum.offset == TCP_CHECKSUM;
    let l4 = match is_tcp {
        true => u16::from(head.get(start + 12)? >> 4) * 4,
        false => 8,
    };
    let segment_bytes = offload
        .segmentation
        .map_or(0, |segmentation| segmentation.mss);
    if segment_bytes > 0 {
        let at = start + usize::from(checksum.offset);
        let field: &mut [u8; 2] = head.get_mut(at..at + 2)?.try_into().ok()?;
        *field = without(u16::from_be_bytes(*field), len.saturating_sub(start)).to_be_bytes();
        if !is_ipv6 {
            head.get_mut(ethernet + 10..ethernet + 12)?.fill(0);
        }
    }
    let short = |len: usize| u16::try_from(len).unwrap_or_default();
    Some(Work {
        is_ipv6,
        is_tcp,
        header_lens: [short(ethernet), short(start.saturating_sub(ethernet)), l4],
        segment_bytes,
    })
}

/// A sum in ones' complement, less a length that was part of it (RFC 1624).
fn without(sum: u16, len: usize) -> u16 {
    let len = u16::try_from(len & 0xffff).unwrap_or_default();
    let less = u32::from(sum) + u32::from(!len);
    let folded = (less & 0xffff) + (less >> 16);
    u16::try_from(folded).unwrap_or_default()
}

/// Where TCP's checksum lies in its header (RFC 9293 3.1); UDP's is at 6.
const TCP_CHECKSUM: u16 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use mill_stack::link::{PartialChecksum, Segmentation};

    fn offload(start: u16, offset: u16, mss: u16, is_ipv6: bool) -> Offload {
        Offload {
            checksum: Some(PartialChecksum { start, offset }),
            segmentation: (mss > 0).then_some(Segmentation {
                mss,
                header_len: start + 32,
                is_ipv6,
            }),
        }
    }

    /// An Ethernet header, with a tag or without, and what follows with its first byte.
    fn head(tagged: bool, version: u8, start: usize) -> Vec<u8> {
        let mut head = vec![7; 120];
        let at = if tagged { 18 } else { 14 };
        head[12..14].copy_from_slice(if tagged { &[0x81, 0] } else { &[8, 0] });
        head[at] = version << 4 | 5;
        head[start + 12] = 8 << 4;
        head
    }

    #[test]
    fn lengths_of_headers_are_told() {
        let check = |tagged, version, start: u16, offset, expected: [u16; 3]| {
            let mut head = head(tagged, version, usize::from(start));
            let before = head.clone();
            let work = prepare(&mut head, 120, offload(start, offset, 0, version == 6)).unwrap();
            assert_eq!(work.header_lens, expected);
            assert_eq!(work.is_ipv6, version == 6);
            assert_eq!((work.is_tcp, work.segment_bytes), (offset == 16, 0));
            assert_eq!(
                head, before,
                "a frame that stays whole is as the driver wants it"
            );
        };
        check(false, 4, 34, 16, [14, 20, 32]);
        check(false, 6, 54, 16, [14, 40, 32]);
        check(true, 4, 38, 16, [18, 20, 32]);
        check(false, 4, 34, 6, [14, 20, 8]);
    }

    #[test]
    fn a_segment_to_be_cut_has_a_sum_without_its_length_and_no_checksum_of_its_header() {
        for (version, start) in [(4, 34), (6, 54)] {
            let mut head = head(false, version, usize::from(start));
            let len = 3000 + usize::from(start);
            // The sum of the pseudo header, 0x1234, and of the length.
            let at = usize::from(start) + 16;
            head[at..at + 2].copy_from_slice(&(0x1234_u16 + 3000).to_be_bytes());
            let work = prepare(&mut head, len, offload(start, 16, 1448, version == 6)).unwrap();
            assert_eq!(work.segment_bytes, 1448);
            assert_eq!(head[at..at + 2], 0x1234_u16.to_be_bytes());
            let expected = if version == 4 { [0, 0] } else { [7, 7] };
            assert_eq!(head[24..26], expected);
        }
    }

    #[test]
    fn sums_wrap_around() {
        assert_eq!(without(0x0001, 0x0002), 0xfffe);
        assert_eq!(without(0x1234, 0), 0x1234);
        assert_eq!(without(0xffff, 5), 0xfffa);
    }

    #[test]
    fn frames_that_are_too_short_ask_for_nothing() {
        let offload = offload(34, 16, 1448, false);
        for len in 0..60 {
            prepare(&mut vec![0x45; len], 60, offload);
        }
        assert_eq!(prepare(&mut [0x45; 60], 60, Offload::default()), None);
    }
}
