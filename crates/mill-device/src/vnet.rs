//! The header before each frame of a TAP device: virtio's, in native byte order.
//!
//! ```text
//! | flags, 1 | segmentation, 1 | header length, 2 | segment size, 2 | checksum start, 2 | checksum offset, 2 |
//! ```
//!
//! The kernel's include/uapi/linux/virtio_net.h and tuntap.rst.

use mill_stack::link::{Offload, ReceivedChecksum};
use mill_sys::tap::VNET_HEADER_LEN;

/// The checksum holds the pseudo header's sum, and has to be completed (VIRTIO_NET_HDR_F_NEEDS_CSUM).
const NEEDS_CHECKSUM: u8 = 1;
/// The checksum was verified (VIRTIO_NET_HDR_F_DATA_VALID).
const DATA_VALID: u8 = 2;

/// The frame is to be cut as TCP over IPv4 (VIRTIO_NET_HDR_GSO_TCPV4).
const SEGMENT_TCP_IPV4: u8 = 1;
/// … over IPv6 (VIRTIO_NET_HDR_GSO_TCPV6).
const SEGMENT_TCP_IPV6: u8 = 4;
/// CWR is set: only the first piece may carry it (VIRTIO_NET_HDR_GSO_ECN).
const SEGMENT_ECN: u8 = 0x80;

/// A header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct VnetHeader {
    flags: u8,
    segmentation: u8,
    header_len: u16,
    segment_size: u16,
    checksum_start: u16,
    checksum_offset: u16,
}

impl VnetHeader {
    pub(crate) fn parse(bytes: &[u8; VNET_HEADER_LEN]) -> Self {
        let [flags, segmentation, a, b, c, d, e, f, g, h] = *bytes;
        Self {
            flags,
            segmentation,
            header_len: u16::from_ne_bytes([a, b]),
            segment_size: u16::from_ne_bytes([c, d]),
            checksum_start: u16::from_ne_bytes([e, f]),
            checksum_offset: u16::from_ne_bytes([g, h]),
        }
    }

    pub(crate) fn emit(&self) -> [u8; VNET_HEADER_LEN] {
        let [a, b] = self.header_len.to_ne_bytes();
        let [c, d] = self.segment_size.to_ne_bytes();
        let [e, f] = self.checksum_start.to_ne_bytes();
        let [g, h] = self.checksum_offset.to_ne_bytes();
        [self.flags, self.segmentation, a, b, c, d, e, f, g, h]
    }

    /// The header for `frame`, with what the device has to do.
    pub(crate) fn of_transmitted(frame: &[u8], offload: Offload) -> Self {
        let mut header = Self::default();
        if let Some(checksum) = offload.checksum {
            header.flags = NEEDS_CHECKSUM;
            header.checksum_start = checksum.start;
            header.checksum_offset = checksum.offset;
        }
        if let Some(segmentation) = offload.segmentation {
            debug_assert!(
                offload.checksum.is_some(),
                "the checksum of a frame to be segmented is left to the device"
            );
            header.header_len = segmentation.header_len;
            header.segment_size = segmentation.mss;
            header.segmentation = if segmentation.is_ipv6 {
                SEGMENT_TCP_IPV6
            } else {
                SEGMENT_TCP_IPV4
            };
            let flags = frame.get(usize::from(header.checksum_start) + FLAGS_OFFSET);
            if flags.is_some_and(|flags| flags & CWR != 0) {
                header.segmentation |= SEGMENT_ECN;
            }
        }
        header
    }

    /// What the kernel knows of a received frame's checksum. A frame whose checksum it did not compute has never been
    /// on a wire.
    pub(crate) fn checksum(&self) -> ReceivedChecksum {
        if self.flags & (NEEDS_CHECKSUM | DATA_VALID) != 0 {
            ReceivedChecksum::Verified
        } else {
            ReceivedChecksum::Unverified
        }
    }

    /// The number of segments that `frame` stands for.
    pub(crate) fn merged(&self, frame: &[u8]) -> u16 {
        let kind = self.segmentation & !SEGMENT_ECN;
        if !matches!(kind, SEGMENT_TCP_IPV4 | SEGMENT_TCP_IPV6) || self.segment_size == 0 {
            return 1;
        }
        // The header length is only a hint; TCP's own data offset counts.
        let start = usize::from(self.checksum_start);
        let words = frame
            .get(start + DATA_OFFSET_OFFSET)
            .map_or(5, |byte| byte >> 4);
        let payload = frame.len().saturating_sub(start + 4 * usize::from(words));
        let count = payload.div_ceil(usize::from(self.segment_size)).max(1);
        u16::try_from(count).unwrap_or(u16::MAX)
    }
}

/// Offset of TCP's data offset, in the high half of a byte (RFC 9293 3.1).
const DATA_OFFSET_OFFSET: usize = 12;

/// Offset of TCP's flags, with CWR among them (RFC 3168 6.1).
const FLAGS_OFFSET: usize = 13;
const CWR: u8 = 0x80;

#[cfg(test)]
mod tests {
    use super::*;
    use mill_stack::link::{PartialChecksum, Segmentation};

    /// A frame whose TCP header of 32 bytes begins at 34.
    fn frame(payload: usize, flags: u8) -> Vec<u8> {
        let mut frame = vec![0; 34 + 32 + payload];
        frame[34 + DATA_OFFSET_OFFSET] = 8 << 4;
        frame[34 + FLAGS_OFFSET] = flags;
        frame
    }

    fn offload(mss: Option<u16>, is_ipv6: bool) -> Offload {
        Offload {
            checksum: Some(PartialChecksum {
                start: 34,
                offset: 16,
            }),
            segmentation: mss.map(|mss| Segmentation {
                mss,
                header_len: 66,
                is_ipv6,
            }),
        }
    }

    #[test]
    fn what_is_emitted_is_parsed() {
        let header = VnetHeader {
            flags: 1,
            segmentation: 0x81,
            header_len: 66,
            segment_size: 1448,
            checksum_start: 34,
            checksum_offset: 16,
        };
        assert_eq!(VnetHeader::parse(&header.emit()), header);
    }

    #[test]
    fn what_the_device_has_to_do_is_in_the_header() {
        let check = |flags, offload, expected: (u8, u8, u16, u16)| {
            let header = VnetHeader::of_transmitted(&frame(3000, flags), offload);
            let VnetHeader {
                flags,
                segmentation,
                segment_size,
                checksum_start,
                ..
            } = header;
            let found = (flags, segmentation, segment_size, checksum_start);
            assert_eq!(found, expected, "{offload:?}");
        };
        check(0x10, Offload::default(), (0, 0, 0, 0));
        check(0x90, offload(None, false), (1, 0, 0, 34));
        check(0x10, offload(Some(1448), false), (1, 1, 1448, 34));
        check(0x10, offload(Some(1428), true), (1, 4, 1428, 34));
        check(0x90, offload(Some(1448), false), (1, 0x81, 1448, 34));
        check(0x90, offload(Some(1428), true), (1, 0x84, 1428, 34));
    }

    #[test]
    fn a_merged_frame_counts_as_the_segments_it_was_made_of() {
        let check = |payload, segmentation, segment_size, expected| {
            let header = VnetHeader {
                flags: 1,
                segmentation,
                segment_size,
                checksum_start: 34,
                ..VnetHeader::default()
            };
            let found = header.merged(&frame(payload, 0x10));
            assert_eq!(found, expected, "{payload} {segmentation} {segment_size}");
        };
        check(1448, 0, 0, 1);
        check(0, 1, 1448, 1);
        check(1448, 1, 1448, 1);
        check(1449, 1, 1448, 2);
        check(14480, 4, 1448, 10);
        check(14481, 0x81, 1448, 11);
        check(3000, 1, 0, 1);
        // Not TCP (VIRTIO_NET_HDR_GSO_UDP_L4), which the device was not asked for.
        check(3000, 5, 1448, 1);
    }

    #[test]
    fn invalid_headers_do_not_panic() {
        let header = VnetHeader::parse(&[0xff; VNET_HEADER_LEN]);
        assert_eq!(header.merged(&[]), 1);
        let header = VnetHeader {
            segmentation: 1,
            segment_size: 1,
            checksum_start: 65535,
            ..VnetHeader::default()
        };
        assert_eq!(header.merged(&[0; 60]), 1);
        assert_eq!(header.merged(&vec![0; 200_000]), u16::MAX);
    }

    #[test]
    fn a_checksum_is_known_or_not() {
        let check = |flags, expected| {
            let header = VnetHeader {
                flags,
                ..VnetHeader::default()
            };
            assert_eq!(header.checksum(), expected);
        };
        check(0, ReceivedChecksum::Unverified);
        check(NEEDS_CHECKSUM, ReceivedChecksum::Verified);
        check(DATA_VALID, ReceivedChecksum::Verified);
    }
}
