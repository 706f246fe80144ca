//! Finds the end of a run of ordinary bytes, eight bytes at a time.

const LOW: u64 = u64::from_ne_bytes([0x01; 8]);
const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);

/// Index of the first control byte (below 0x20, or 0x7f) at or after `from`; `bytes.len()` if none.
pub(crate) fn find_control(bytes: &[u8], from: usize) -> usize {
    find(
        bytes,
        from,
        |word| below(word, 0x20) | equal(word, 0x7f),
        |b| b < 0x20 || b == 0x7f,
    )
}

/// Index of the first byte at or after `from` that is not an ordinary byte of a target: a control byte, a space or `#`;
/// `bytes.len()` if none.
pub(crate) fn find_target_stop(bytes: &[u8], from: usize) -> usize {
    find(
        bytes,
        from,
        |word| below(word, 0x21) | equal(word, 0x7f) | equal(word, b'#'),
        |b| b < 0x21 || b == 0x7f || b == b'#',
    )
}

/// Index of the first byte at or after `from` that may end a line or is NUL: any below 0x20; `bytes.len()` if none.
/// Cheaper than `find_control`, for callers that accept DEL.
pub(crate) fn find_line_stop(bytes: &[u8], from: usize) -> usize {
    find(bytes, from, |word| below(word, 0x20), |b| b < 0x20)
}

/// Index of the first byte at or after `from` that ends a field's name, validly or not: a colon or a byte below 0x20;
/// `bytes.len()` if none.
pub(crate) fn find_name_stop(bytes: &[u8], from: usize) -> usize {
    find(
        bytes,
        from,
        |word| below(word, 0x20) | equal(word, b':'),
        |b| b < 0x20 || b == b':',
    )
}

/// The high bit of each byte that is below `bound` (at most 0x80). A borrow can set bits above a
/// true match, never below it: the lowest set bit is right.
const fn below(word: u64, bound: u8) -> u64 {
    word.wrapping_sub(LOW.wrapping_mul(bound as u64)) & !word & HIGH
}

const fn equal(word: u64, byte: u8) -> u64 {
    below(word ^ LOW.wrapping_mul(byte as u64), 1)
}

#[inline(always)]
fn find(bytes: &[u8], from: usize, word: impl Fn(u64) -> u64, byte: impl Fn(u8) -> bool) -> usize {
    let Some(rest) = bytes.get(from..) else {
        return bytes.len();
    };
    let (words, tail) = rest.as_chunks::<8>();
    let mut at = from;
    for eight in words {
        let stops = word(u64::from_le_bytes(*eight));
        if stops != 0 {
            return at + (stops.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    if let (Some(eight), [_, ..]) = (rest.last_chunk::<8>(), tail) {
        // Its first bytes were looked at already, and are no stops.
        let stops = word(u64::from_le_bytes(*eight));
        let before = (stops.trailing_zeros() / 8) as usize;
        return bytes.len() - 8 + before;
    }
    at + tail.iter().position(|b| byte(*b)).unwrap_or(tail.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_stop_is_found_at_every_place_for_every_byte() {
        for byte in 0..=255_u8 {
            for ordinary in [b'a', b'!', 0x80, 0xff] {
                for at in 0..20 {
                    let mut bytes = [ordinary; 20];
                    bytes[at] = byte;
                    // A second stop behind the first must not hide it.
                    bytes[19] = 0;
                    let control = byte < 0x20 || byte == 0x7f;
                    let target = control || byte == b' ' || byte == b'#';
                    assert_eq!(find_control(&bytes, 0), if control { at } else { 19 });
                    assert_eq!(find_target_stop(&bytes, 0), if target { at } else { 19 });
                    let line = byte < 0x20;
                    let name = line || byte == b':';
                    assert_eq!(find_line_stop(&bytes, 0), if line { at } else { 19 });
                    assert_eq!(find_name_stop(&bytes, 0), if name { at } else { 19 });
                }
            }
        }
        assert_eq!(find_control(b"abc", 1), 3);
        assert_eq!(find_control(b"abc", 9), 3);
    }
}
