//! CRC-32 of IEEE 802.3, reflected.

/// A checksum under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crc32(u32);

impl Default for Crc32 {
    fn default() -> Self {
        Self(u32::MAX)
    }
}

impl Crc32 {
    #[must_use]
    pub(crate) fn update(self, bytes: &[u8]) -> Self {
        let add = |crc: u32, byte: &u8| {
            let [low, ..] = crc.to_le_bytes();
            TABLE[usize::from(low ^ byte)] ^ (crc >> 8)
        };
        Self(bytes.iter().fold(self.0, add))
    }

    pub(crate) fn value(self) -> u32 {
        !self.0
    }
}

/// The checksum of each byte.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0_u32;
    while byte < 256 {
        let mut crc = byte;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 {
                POLYNOMIAL ^ (crc >> 1)
            } else {
                crc >> 1
            };
            bit += 1;
        }
        table[byte as usize] = crc;
        byte += 1;
    }
    table
};

/// The generator polynomial (IEEE 802.3 3.2.9), least significant bit first.
const POLYNOMIAL: u32 = 0xedb8_8320;

#[cfg(test)]
mod tests {
    use super::Crc32;

    #[test]
    fn the_check_value_of_the_algorithm_is_right_in_one_piece_and_in_two() {
        assert_eq!(Crc32::default().update(b"123456789").value(), 0xcbf4_3926);
        let two = Crc32::default().update(b"1234").update(b"56789");
        assert_eq!(two.value(), 0xcbf4_3926);
    }
}
