//! Numbers for the tests, and what every format's test asks.

use crate::Malformed;
use core::fmt::Debug;
use std::vec::Vec;

/// xorshift64* (Vigna 2016).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() >> 33).unwrap() % bound
    }

    pub(crate) fn byte(&mut self) -> u8 {
        u8::try_from(self.next() >> 56).unwrap()
    }

    pub(crate) fn word(&mut self) -> u16 {
        u16::try_from(self.next() >> 48).unwrap()
    }

    pub(crate) fn long(&mut self) -> u32 {
        u32::try_from(self.next() >> 32).unwrap()
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.next() >> 63 == 1
    }

    pub(crate) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        core::array::from_fn(|_| self.byte())
    }
}

/// `value` is written as `len` bytes and read again as the same, followed by other bytes or not; no part of its
/// bytes is read as a whole.
pub(crate) fn round_trip<T: PartialEq + Debug>(
    value: &T,
    len: usize,
    emit: impl Fn(&T, &mut [u8]) -> usize,
    parse: impl Fn(&[u8]) -> Result<(T, usize), Malformed>,
) {
    let mut bytes = [0xaa; 2048];
    assert_eq!(emit(value, &mut bytes), len, "{value:?}");
    assert!(bytes[len..].iter().all(|byte| *byte == 0xaa), "{value:?}");
    for end in [len, len + 1, len + 30] {
        match parse(&bytes[..end]) {
            Ok((parsed, parsed_len)) => {
                assert_eq!(&parsed, value);
                assert_eq!(parsed_len, len, "{value:?}");
            }
            Err(malformed) => panic!("{malformed:?}: {value:?}"),
        }
    }
    for cut in 0..len {
        assert!(parse(&bytes[..cut]).is_err(), "{cut} bytes of {value:?}");
    }
}

/// No bytes panic, and what is read out of any is written and read as the same.
pub(crate) fn any_bytes<T: PartialEq + Debug>(
    seed: u64,
    shape: impl Fn(&mut Random, &mut Vec<u8>),
    emit: impl Fn(&T, &mut [u8]) -> usize,
    parse: impl Fn(&[u8]) -> Result<(T, usize), Malformed>,
) {
    let mut random = Random::new(seed);
    let mut accepted = 0;
    for round in 0..3000 {
        let len = random.below(120);
        let mut bytes: Vec<u8> = (0..len).map(|_| random.byte()).collect();
        shape(&mut random, &mut bytes);
        let Ok((value, parsed_len)) = parse(&bytes) else {
            continue;
        };
        accepted += 1;
        assert!(parsed_len <= bytes.len(), "seed {seed}, round {round}");
        let mut again = [0; 2048];
        let written = emit(&value, &mut again);
        let reread = parse(&again[..written.max(bytes.len())]);
        assert_eq!(
            reread.map(|(value, _)| value),
            Ok(value),
            "seed {seed}, round {round}: {bytes:?}"
        );
    }
    assert!(accepted > 0, "seed {seed}: nothing was accepted");
}
