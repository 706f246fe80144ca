//! CRC32c, RFC 3720 appendix B.4: bit by bit, since a header is short and few have one.

/// Of all parts, one after the other.
pub(super) fn crc32c(parts: &[&[u8]]) -> u32 {
    let bytes = parts.iter().copied().flatten();
    !bytes.fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ (POLYNOMIAL & (sum & 1).wrapping_neg())
        })
    })
}

/// Castagnoli's, with the lowest bit first.
const POLYNOMIAL: u32 = 0x82f6_3b78;

#[cfg(test)]
mod tests {
    use super::crc32c;

    /// The examples of RFC 3720 B.4, and the usual check value.
    #[test]
    fn checksums_are_those_of_rfc_3720() {
        assert_eq!(crc32c(&[&[0; 32]]), 0x8a91_36aa);
        assert_eq!(crc32c(&[&[0xff; 32]]), 0x62a8_ab43);
        assert_eq!(crc32c(&[b"1234", b"", b"56789"]), 0xe306_9283);
    }
}
