//! SipHash-1-3 (Aumasson, Bernstein 2012): a keyed hash whose collisions cannot be prepared without the seed.

/// The hash of `bytes` under the 128-bit `seed`.
pub(crate) fn siphash(seed: [u64; 2], bytes: &[u8]) -> u64 {
    let mut v = [
        seed[0] ^ 0x736f_6d65_7073_6575,
        seed[1] ^ 0x646f_7261_6e64_6f6d,
        seed[0] ^ 0x6c79_6765_6e65_7261,
        seed[1] ^ 0x7465_6462_7974_6573,
    ];
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        absorb(&mut v, u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    // The last word's upper byte is the length modulo 256.
    absorb(
        &mut v,
        u64::from_le_bytes(last) | (bytes.len() as u64) << 56,
    );
    v[2] ^= 0xff;
    for _ in 0..3 {
        round(&mut v);
    }
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

fn absorb(v: &mut [u64; 4], word: u64) {
    v[3] ^= word;
    round(v);
    v[0] ^= word;
}

fn round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[2] = v[2].rotate_left(32);
}

#[cfg(test)]
mod tests {
    use std::collections::hash_map::DefaultHasher;
    use std::hash::Hasher;

    use super::siphash;

    #[test]
    fn with_the_seed_zero_it_is_the_hash_of_the_standard_library() {
        let bytes: Vec<u8> = (0..=255).collect();
        for len in 0..=bytes.len() {
            let mut other = DefaultHasher::new();
            other.write(&bytes[..len]);
            assert_eq!(siphash([0, 0], &bytes[..len]), other.finish(), "{len}");
        }
    }

    #[test]
    fn each_half_of_the_seed_changes_it() {
        let plain = siphash([0, 0], b"key");
        assert_ne!(siphash([1, 0], b"key"), plain);
        assert_ne!(siphash([0, 1], b"key"), plain);
    }
}
