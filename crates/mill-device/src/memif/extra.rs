//! A descriptor's metadata about a frame, between two ends that have both announced that they understand it.
//!
//! ```text
//! | zeros, 15 | checksum left out, 1 | segments, 16 |
//! ```

use mill_stack::link::{Offload, ReceivedChecksum};

/// A frame's metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extra(u32);

impl Extra {
    /// For a frame whose checksum is left out and that is not segmented: it stays in this machine's memory, which needs
    /// neither.
    pub(crate) fn of_transmitted(frame_len: usize, offload: Offload) -> Self {
        let segments = offload.segmentation.map_or(1, |segmentation| {
            let payload = frame_len.saturating_sub(segmentation.header_len.into());
            let count = payload.div_ceil(usize::from(segmentation.mss.max(1)));
            u16::try_from(count).unwrap_or(u16::MAX)
        });
        let flag = if offload.checksum.is_some() {
            NO_CHECKSUM
        } else {
            0
        };
        Self(u32::from(segments.max(1)) | flag)
    }

    pub(crate) const fn of_received(metadata: u32) -> Self {
        Self(metadata)
    }

    pub(crate) const fn bits(self) -> u32 {
        self.0
    }

    pub(crate) const fn checksum(self) -> ReceivedChecksum {
        if self.0 & NO_CHECKSUM == 0 {
            ReceivedChecksum::Unverified
        } else {
            ReceivedChecksum::Verified
        }
    }

    /// The number of segments that the frame stands for, limited by its length.
    pub(crate) fn merged(self, frame_len: usize) -> u16 {
        let [low, high, ..] = self.0.to_le_bytes();
        let most = u16::try_from(frame_len).unwrap_or(u16::MAX).max(1);
        u16::from_le_bytes([low, high]).clamp(1, most)
    }
}

/// The TCP or UDP checksum is left out, and need not be verified.
const NO_CHECKSUM: u32 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;
    use mill_stack::link::{PartialChecksum, Segmentation};

    #[test]
    fn the_receiver_learns_what_was_left_out() {
        let check = |len, mss: Option<u16>, checksum: bool, expected| {
            let offload = Offload {
                checksum: checksum.then_some(PartialChecksum {
                    start: 34,
                    offset: 16,
                }),
                segmentation: mss.map(|mss| Segmentation {
                    mss,
                    header_len: 54,
                    is_ipv6: false,
                }),
            };
            let sent = Extra::of_transmitted(len, offload);
            let received = Extra::of_received(sent.bits());
            assert_eq!((received.checksum(), received.merged(len)), expected);
        };
        check(60, None, false, (ReceivedChecksum::Unverified, 1));
        check(60, None, true, (ReceivedChecksum::Verified, 1));
        check(1514, Some(1460), true, (ReceivedChecksum::Verified, 1));
        check(1515, Some(1460), true, (ReceivedChecksum::Verified, 2));
        check(65_535, Some(1460), true, (ReceivedChecksum::Verified, 45));
        check(65_535, Some(0), true, (ReceivedChecksum::Verified, 65_481));
    }

    #[test]
    fn a_peer_cannot_announce_more_segments_than_bytes() {
        assert_eq!(Extra::of_received(0).merged(60), 1);
        assert_eq!(Extra::of_received(u32::MAX).merged(60), 60);
        assert_eq!(Extra::of_received(u32::MAX).merged(0), 1);
    }
}
