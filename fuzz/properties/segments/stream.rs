//! What the streams hold: every byte is a function of its place, so that there is one right answer to what arrives.

use mill_wire::seq::SeqNumber;

/// The byte that the peer sends at this sequence number.
pub(super) fn their_byte(seq: SeqNumber) -> u8 {
    let [first, _, third, _] = seq.0.wrapping_mul(0x9E37_79B1).to_be_bytes();
    first ^ third
}

/// The byte that the application writes at this offset of its stream.
pub(super) fn our_byte(offset: u32) -> u8 {
    offset.wrapping_mul(0x85EB_CA77).to_be_bytes()[0]
}
