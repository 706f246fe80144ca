//! Integers: RFC 7541 5.1.

use alloc::vec::Vec;

/// Reads an integer whose first byte has `prefix_bits` of it; returns it with the bytes behind. `None`: cut, or larger
/// than anything that has a meaning.
pub(super) fn decode(bytes: &[u8], prefix_bits: u32) -> Option<(usize, &[u8])> {
    let (first, mut rest) = bytes.split_first()?;
    let mask = (1_u32 << prefix_bits) - 1;
    let mut value = u32::from(*first) & mask;
    if value < mask {
        return Some((value as usize, rest));
    }
    for shift in [0, 7, 14, 21] {
        let (byte, behind) = rest.split_first()?;
        rest = behind;
        value = value.checked_add(u32::from(byte & 0x7f) << shift)?;
        if byte & 0x80 == 0 {
            return Some((value as usize, rest));
        }
    }
    None
}

/// Appends an integer; `pattern` is the first byte's other bits.
pub(super) fn encode(value: usize, prefix_bits: u32, pattern: u8, out: &mut Vec<u8>) {
    let low = |value: usize| value.to_le_bytes().first().copied().unwrap_or(0);
    let mask = (1_usize << prefix_bits) - 1;
    if value < mask {
        return out.push(pattern | low(value));
    }
    out.push(pattern | low(mask));
    let mut rest = value - mask;
    while rest >= 0x80 {
        out.push(0x80 | low(rest));
        rest >>= 7;
    }
    out.push(low(rest));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_survive() {
        for prefix_bits in 4..=7 {
            for value in [0, 1, 14, 15, 30, 31, 127, 128, 1337, 16_384, 1 << 27] {
                let mut out = Vec::new();
                encode(value, prefix_bits, 0, &mut out);
                assert_eq!(decode(&out, prefix_bits), Some((value, &b""[..])));
                let cut = out.get(..out.len() - 1).unwrap();
                assert_eq!(decode(cut, prefix_bits), None);
            }
        }
        assert_eq!(decode(b"\x1f\xff\xff\xff\xff\x0f", 5), None);
    }
}
