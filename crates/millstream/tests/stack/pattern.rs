//! Bytes that both ends can compute: each depends on its offset and a seed, so that a lost, duplicated or misplaced
//! byte is noticed where it is.

/// Bytes of a stream, made or checked piece by piece.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    seed: u64,
    at: u64,
}

impl Pattern {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, at: 0 }
    }

    /// How many bytes were made or checked.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// The next bytes.
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            *byte = self.byte();
        }
    }

    /// Whether these are the next bytes; the error names the first wrong one.
    pub(crate) fn check(&mut self, bytes: &[u8]) -> Result<(), String> {
        for byte in bytes {
            let at = self.at;
            let expected = self.byte();
            if *byte != expected {
                return Err(format!("byte {at} is {byte:#x} instead of {expected:#x}"));
            }
        }
        Ok(())
    }

    /// One byte of the mixed offset (the finisher of splitmix64, Steele 2014) of each eight.
    fn byte(&mut self) -> u8 {
        let mut word = self
            .seed
            .wrapping_add(self.at >> 3)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word ^= word >> 27;
        let bytes = word.to_le_bytes();
        let byte = bytes[usize::try_from(self.at & 7).unwrap()];
        self.at += 1;
        byte
    }
}

#[test]
fn a_wrong_byte_is_found_at_its_place() {
    let mut bytes = vec![0; 1000];
    Pattern::new(1).fill(&mut bytes);
    assert_eq!(Pattern::new(1).check(&bytes), Ok(()));
    bytes[700] ^= 1;
    let error = Pattern::new(1).check(&bytes).unwrap_err();
    assert!(error.starts_with("byte 700 is "), "{error}");
    assert!(
        Pattern::new(2)
            .check(&bytes)
            .unwrap_err()
            .starts_with("byte 0")
    );
    bytes.remove(3);
    assert!(Pattern::new(1).check(&bytes).is_err());
}
