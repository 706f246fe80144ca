//! MD5 (RFC 1321), which names a server in cookies as nginx does. It protects nothing.

/// The digest of a message.
pub(crate) fn digest(message: &[u8]) -> [u8; 16] {
    let mut state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    let (blocks, rest) = message.as_chunks::<64>();
    for block in blocks {
        state = update(state, block);
    }
    // RFC 1321 3.1 and 3.2: one bit, zeros, and the length in bits.
    let mut end = [0; 128];
    let (text, padding) = end.split_at_mut(rest.len());
    text.copy_from_slice(rest);
    padding[0] = 0x80;
    let len = if rest.len() < 56 { 64 } else { 128 };
    let bits = (message.len() as u64).wrapping_mul(8);
    end[len - 8..len].copy_from_slice(&bits.to_le_bytes());
    for block in end[..len].as_chunks::<64>().0 {
        state = update(state, block);
    }
    let mut digest = [0; 16];
    for (bytes, word) in digest.as_chunks_mut::<4>().0.iter_mut().zip(state) {
        *bytes = word.to_le_bytes();
    }
    digest
}

/// The digest in lower-case hexadecimal.
pub(crate) fn hexadecimal(message: &[u8]) -> String {
    format!("{:032x}", u128::from_be_bytes(digest(message)))
}

/// RFC 1321 3.4: four rounds of sixteen steps.
fn update(state: [u32; 4], block: &[u8; 64]) -> [u32; 4] {
    let words = block.as_chunks::<4>().0;
    let [mut a, mut b, mut c, mut d] = state;
    for (step, sine) in (0_usize..).zip(SINES) {
        let (mixed, word) = match step / 16 {
            0 => ((b & c) | (!b & d), step),
            1 => ((b & d) | (c & !d), 5 * step + 1),
            2 => (b ^ c ^ d, 3 * step + 5),
            _ => (c ^ (b | !d), 7 * step),
        };
        let word = u32::from_le_bytes(words[word % 16]);
        let sum = a.wrapping_add(mixed).wrapping_add(word).wrapping_add(sine);
        let turned = sum.rotate_left(SHIFTS[step / 16][step % 4]);
        (a, b, c, d) = (d, b.wrapping_add(turned), b, c);
    }
    let [first, second, third, fourth] = state;
    [
        first.wrapping_add(a),
        second.wrapping_add(b),
        third.wrapping_add(c),
        fourth.wrapping_add(d),
    ]
}

/// By round and step.
const SHIFTS: [[u32; 4]; 4] = [
    [7, 12, 17, 22],
    [5, 9, 14, 20],
    [4, 11, 16, 23],
    [6, 10, 15, 21],
];

/// RFC 1321 3.4: the integer part of 2^32 times the sine of 1 to 64 radians.
#[rustfmt::skip]
const SINES: [u32; 64] = [
    0xd76a_a478, 0xe8c7_b756, 0x2420_70db, 0xc1bd_ceee, 0xf57c_0faf, 0x4787_c62a, 0xa830_4613, 0xfd46_9501,
    0x6980_98d8, 0x8b44_f7af, 0xffff_5bb1, 0x895c_d7be, 0x6b90_1122, 0xfd98_7193, 0xa679_438e, 0x49b4_0821,
    0xf61e_2562, 0xc040_b340, 0x265e_5a51, 0xe9b6_c7aa, 0xd62f_105d, 0x0244_1453, 0xd8a1_e681, 0xe7d3_fbc8,
    0x21e1_cde6, 0xc337_07d6, 0xf4d5_0d87, 0x455a_14ed, 0xa9e3_e905, 0xfcef_a3f8, 0x676f_02d9, 0x8d2a_4c8a,
    0xfffa_3942, 0x8771_f681, 0x6d9d_6122, 0xfde5_380c, 0xa4be_ea44, 0x4bde_cfa9, 0xf6bb_4b60, 0xbebf_bc70,
    0x289b_7ec6, 0xeaa1_27fa, 0xd4ef_3085, 0x0488_1d05, 0xd9d4_d039, 0xe6db_99e5, 0x1fa2_7cf8, 0xc4ac_5665,
    0xf429_2244, 0x432a_ff97, 0xab94_23a7, 0xfc93_a039, 0x655b_59c3, 0x8f0c_cc92, 0xffef_f47d, 0x8584_5dd1,
    0x6fa8_7e4f, 0xfe2c_e6e0, 0xa301_4314, 0x4e08_11a1, 0xf753_7e82, 0xbd3a_f235, 0x2ad7_d2bb, 0xeb86_d391,
];

#[cfg(test)]
mod tests {
    use super::hexadecimal;

    /// RFC 1321 A.5, and messages on both sides of where the length needs another block, as `md5sum` has them.
    #[test]
    fn digests_are_those_of_the_test_suite() {
        let check =
            |message: &str, digest: &str| assert_eq!(hexadecimal(message.as_bytes()), digest);
        check("", "d41d8cd98f00b204e9800998ecf8427e");
        check("abc", "900150983cd24fb0d6963f7d28e17f72");
        check("message digest", "f96b697d7cb7938d525a2f31aaf161d0");
        check(&"1234567890".repeat(8), "57edf4a22be3c955ac49da2e2107b67a");
        check(&"a".repeat(55), "ef1772b6dff9a122358552954ad0df65");
        check(&"a".repeat(56), "3b0c8ac703f828b04c6c197006d17218");
        check(&"a".repeat(63), "b06521f39153d618550606be297466d5");
        check(&"a".repeat(64), "014842d480b571495a4a0363793f7367");
        check(&"a".repeat(119), "8a7bd0732ed6a28ce75f6dabc90e1613");
        check(&"a".repeat(120), "5f61c0ccad4cac44c75ff505e1f1e537");
    }
}
