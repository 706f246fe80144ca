//! The Huffman code of strings: RFC 7541 5.2 and appendix B.
//!
//! The code is canonical: codes of one length are consecutive in the order of their symbols, and the first code of a length
//! follows the last one of the length before. So the lengths alone define it, and the tables below are computed from them.

use alloc::vec::Vec;

/// A string that is no Huffman code: a wrong end, or the symbol that ends strings inside of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// Appends the decoded string to `out`. It has at most 8/5 of the bytes.
pub(super) fn decode(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    // The next bits stand at the top of `window`.
    let (mut window, mut bits) = (0_u64, 0_u32);
    let mut rest = bytes.iter();
    loop {
        while bits <= 56 {
            let Some(byte) = rest.next() else { break };
            window |= u64::from(*byte) << (56 - bits);
            bits += 8;
        }
        let (symbol, len) = match SHORT.get((window >> 56) as usize) {
            Some((symbol, len)) if *len > 0 => (u16::from(*symbol), u32::from(*len)),
            _ => long(window)?,
        };
        if len > bits {
            // What is left of the last byte is the beginning of the code that ends strings: ones, fewer than 8.
            let is_padding = bits < 8 && window == !(u64::MAX >> bits);
            return if is_padding { Ok(()) } else { Err(Malformed) };
        }
        out.push(u8::try_from(symbol).map_err(|_| Malformed)?);
        window <<= len;
        bits -= len;
    }
}

/// A code of more than 8 bits at the top of `window`.
fn long(window: u64) -> Result<(u16, u32), Malformed> {
    for (len, of_length) in (9..).zip(CODE.lengths.iter().skip(9)) {
        let code = window >> (64 - len);
        let at = code.wrapping_sub(of_length.first);
        if at < of_length.count {
            let place = of_length.start + usize::try_from(at).map_err(|_| Malformed)?;
            let symbol = CODE.sorted.get(place).ok_or(Malformed)?;
            return Ok((*symbol, len));
        }
    }
    Err(Malformed)
}

/// Bytes of the string when it is encoded.
pub(super) fn encoded_len(bytes: &[u8]) -> usize {
    let bits: usize = bytes.iter().map(|byte| length(*byte)).sum();
    bits.div_ceil(8)
}

/// Appends the encoded string to `out`.
pub(super) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    let (mut window, mut bits) = (0_u64, 0);
    for byte in bytes {
        let len = length(*byte);
        let code = CODE.codes.get(usize::from(*byte)).copied().unwrap_or(0);
        window = window << len | code;
        bits += len;
        while bits >= 8 {
            bits -= 8;
            push_low(window >> bits, out);
        }
    }
    if bits > 0 {
        push_low(window << (8 - bits) | 0xff >> bits, out);
    }
}

fn push_low(window: u64, out: &mut Vec<u8>) {
    let [low, ..] = window.to_le_bytes();
    out.push(low);
}

fn length(byte: u8) -> usize {
    LENGTHS
        .get(usize::from(byte))
        .copied()
        .map_or(0, usize::from)
}

/// Everything that follows from the lengths.
struct Code {
    /// By symbol.
    codes: [u64; SYMBOLS],
    /// Symbols in the order of their codes.
    sorted: [u16; SYMBOLS],
    lengths: [OfLength; LENGTH_MAX + 1],
}

/// The codes of one length.
#[derive(Clone, Copy)]
struct OfLength {
    first: u64,
    count: u64,
    /// The first one's place in `sorted`.
    start: usize,
}

impl Code {
    const fn new() -> Self {
        let none = OfLength {
            first: 0,
            count: 0,
            start: 0,
        };
        let mut this = Self {
            codes: [0; SYMBOLS],
            sorted: [0; SYMBOLS],
            lengths: [none; LENGTH_MAX + 1],
        };
        let (mut code, mut place, mut len) = (0, 0, 1);
        while len <= LENGTH_MAX {
            code <<= 1;
            this.lengths[len].first = code;
            this.lengths[len].start = place;
            let (mut symbol, mut name) = (0, 0_u16);
            while symbol < SYMBOLS {
                if LENGTHS[symbol] as usize == len {
                    this.codes[symbol] = code;
                    this.sorted[place] = name;
                    this.lengths[len].count += 1;
                    code += 1;
                    place += 1;
                }
                symbol += 1;
                name += 1;
            }
            len += 1;
        }
        this
    }
}

/// By the next 8 bits: a symbol whose code is not longer, with its length; 0 where it is longer.
const fn short() -> [(u8, u8); 256] {
    let mut table = [(0, 0); 256];
    let mut name = 0_u8;
    loop {
        let symbol = name as usize;
        let len = LENGTHS[symbol];
        if len <= 8 {
            let mut at = 0;
            while at < 256 {
                if (at >> (8 - len)) as u64 == CODE_OF_LENGTHS.codes[symbol] {
                    table[at] = (name, len);
                }
                at += 1;
            }
        }
        if name == u8::MAX {
            return table;
        }
        name += 1;
    }
}

static CODE: Code = CODE_OF_LENGTHS;
const CODE_OF_LENGTHS: Code = Code::new();
static SHORT: [(u8, u8); 256] = short();

/// All bytes, and the symbol that ends strings.
const SYMBOLS: usize = 257;

/// Bits of the longest code.
const LENGTH_MAX: usize = 30;

/// Bits of each symbol's code.
#[rustfmt::skip]
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7,
    7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21,
    23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24,
    21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_survives_at_every_place() {
        let bytes: Vec<u8> = (0..=255).chain((0..=255).rev()).collect();
        for range in [0..512, 1..300, 40..41, 7..7] {
            let plain = bytes.get(range).unwrap();
            let (mut coded, mut back) = (Vec::new(), Vec::new());
            encode(plain, &mut coded);
            assert_eq!(coded.len(), encoded_len(plain));
            decode(&coded, &mut back).unwrap();
            assert_eq!(back, plain);
        }
    }

    #[test]
    fn the_examples_of_the_rfc_hold() {
        for (plain, coded) in [
            (
                "www.example.com",
                &b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff"[..],
            ),
            ("no-cache", b"\xa8\xeb\x10\x64\x9c\xbf"),
            ("302", b"\x64\x02"),
        ] {
            let mut out = Vec::new();
            encode(plain.as_bytes(), &mut out);
            assert_eq!(out, coded, "{plain}");
        }
    }

    #[test]
    fn wrong_ends_are_malformed() {
        let mut out = Vec::new();
        // Padding of zeros, of a whole byte, and the end of strings itself.
        for bytes in [&b"\x18"[..], b"\x64\x02\xff", b"\xff\xff\xff\xff", b"\xff"] {
            assert_eq!(decode(bytes, &mut out), Err(Malformed), "{bytes:?}");
        }
    }
}
