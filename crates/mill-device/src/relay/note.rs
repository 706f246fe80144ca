//! What accompanies a frame in the relay: the state of its checksum, which work is offloaded to the device, and whether it comes back.

use mill_stack::link::{Offload, PartialChecksum, ReceivedChecksum, Segmentation};

/// For received frames checksum and merged segments count, for frames to be sent the offload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    pub checksum: ReceivedChecksum,
    pub merged: u16,
    pub offload: Offload,
    /// How many times processes to which the received frame was given have given it back to the owner, as it was not theirs any more. Of frames to
    /// be sent none.
    pub returns: u8,
}

/// So many times a frame can come back: its connection moves from process to process. It is not given back any more then, as two processes that disagree
/// would exchange it for ever.
pub const RETURNS_MAX: u8 = 7;

/// Bytes of a note.
pub(super) const NOTE_BYTES: usize = 12;

impl Default for Note {
    fn default() -> Self {
        Self::PLAIN
    }
}

impl Note {
    /// Of a frame of which nothing is known, and that needs nothing.
    pub(super) const PLAIN: Self = Self {
        checksum: ReceivedChecksum::Unverified,
        merged: 1,
        offload: Offload {
            checksum: None,
            segmentation: None,
        },
        returns: 0,
    };

    /// Encodes checksum, flags, then five 16-bit numbers in native byte order.
    pub(super) fn to_bytes(self) -> [u8; NOTE_BYTES] {
        let checksum = match self.checksum {
            ReceivedChecksum::Unverified => 0,
            ReceivedChecksum::Verified => VERIFIED,
            ReceivedChecksum::MaybePartial => MAYBE_PARTIAL,
        };
        let mut flags = self.returns.min(RETURNS_MAX) << RETURNS_SHIFT;
        let mut numbers = [self.merged, 0, 0, 0, 0];
        if let Some(partial) = self.offload.checksum {
            flags |= HAS_CHECKSUM;
            numbers[1] = partial.start;
            numbers[2] = partial.offset;
        }
        if let Some(cut) = self.offload.segmentation {
            flags |= HAS_SEGMENTS;
            flags |= if cut.is_ipv6 { IS_IPV6 } else { 0 };
            numbers[3] = cut.mss;
            numbers[4] = cut.header_len;
        }
        let mut bytes = [0; NOTE_BYTES];
        bytes[0] = checksum;
        bytes[1] = flags;
        for (to, number) in bytes[2..].chunks_exact_mut(2).zip(numbers) {
            to.copy_from_slice(&number.to_ne_bytes());
        }
        bytes
    }

    /// Decodes any bytes; unknown bits are ignored.
    pub(super) fn from_bytes(bytes: &[u8; NOTE_BYTES]) -> Self {
        let mut numbers = [0; 5];
        for (to, number) in numbers.iter_mut().zip(bytes[2..].chunks_exact(2)) {
            *to = u16::from_ne_bytes([number[0], number[1]]);
        }
        let has = |flag| bytes[1] & flag != 0;
        let [merged, start, offset, mss, header_len] = numbers;
        Self {
            checksum: match bytes[0] {
                VERIFIED => ReceivedChecksum::Verified,
                MAYBE_PARTIAL => ReceivedChecksum::MaybePartial,
                _ => ReceivedChecksum::Unverified,
            },
            merged: merged.max(1),
            offload: Offload {
                checksum: has(HAS_CHECKSUM).then_some(PartialChecksum { start, offset }),
                segmentation: has(HAS_SEGMENTS).then_some(Segmentation {
                    mss,
                    header_len,
                    is_ipv6: has(IS_IPV6),
                }),
            },
            returns: bytes[1] >> RETURNS_SHIFT & RETURNS_MAX,
        }
    }
}

// Values of the first byte.
const VERIFIED: u8 = 1;
const MAYBE_PARTIAL: u8 = 2;

// Bits of the second byte.
const HAS_CHECKSUM: u8 = 1;
const HAS_SEGMENTS: u8 = 2;
const IS_IPV6: u8 = 4;

/// Where it stands there how many times a frame has come back.
const RETURNS_SHIFT: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_survives_encoding() {
        let partial = PartialChecksum {
            start: 34,
            offset: 16,
        };
        let cut = |is_ipv6| Segmentation {
            mss: 1448,
            header_len: 66,
            is_ipv6,
        };
        let mut count = 0;
        for checksum in [
            ReceivedChecksum::Unverified,
            ReceivedChecksum::Verified,
            ReceivedChecksum::MaybePartial,
        ] {
            for partial in [None, Some(partial)] {
                for segmentation in [None, Some(cut(false)), Some(cut(true))] {
                    for (merged, returns) in [(1, 0), (45, RETURNS_MAX), (u16::MAX, 1)] {
                        let note = Note {
                            checksum,
                            merged,
                            offload: Offload {
                                checksum: partial,
                                segmentation,
                            },
                            returns,
                        };
                        assert_eq!(Note::from_bytes(&note.to_bytes()), note);
                        count += 1;
                    }
                }
            }
        }
        assert_eq!(count, 54);
    }

    #[test]
    fn any_bytes_are_a_note() {
        for byte in 0..=u8::MAX {
            let note = Note::from_bytes(&[byte; NOTE_BYTES]);
            assert!(note.merged > 0);
        }
    }
}
