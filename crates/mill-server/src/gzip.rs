//! gzip (RFC 1952) while an answer is sent: bytes in, compressed bytes out.

/// Whether a client may get a compressed answer.
pub mod acceptable;

use flate2::{Compress, Compression, FlushCompress, Status};
use std::fmt;

/// One compressed content. Call `push` for each piece in order, and `finish` once at the end; `flush` in between, where
/// the next piece is awaited. All append to the output.
/// Allocates about 300 KB when it is made and nothing afterwards but the output.
pub struct Encoder {
    deflate: Compress,
}

impl Encoder {
    /// `level` is `gzip_comp_level`; values outside 1 to 9 are clamped. Level 1 compresses with the library's level 2,
    /// because only that compresses as well as zlib's level 1.
    pub fn new(level: u8) -> Self {
        let level = Compression::new(u32::from(level.clamp(LEVEL_MIN, LEVEL_MAX)));
        Self {
            deflate: Compress::new_gzip(level, WINDOW_BITS),
        }
    }

    /// Resets it to compress another content at the same level. Costs a fraction of a new one.
    pub fn restart(&mut self) {
        self.deflate.reset();
    }

    /// Compresses a piece; its output may be appended by a later call.
    pub fn push(&mut self, content: &[u8], out: &mut Vec<u8>) {
        self.run(content, FlushCompress::None, out);
    }

    /// Appends the output of all pieces so far, so that the client can decompress them. Costs some bytes each time.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        self.run(&[], FlushCompress::Sync, out);
    }

    /// Appends the rest, with the checksum and the length.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.run(&[], FlushCompress::Finish, out);
    }

    fn run(&mut self, mut content: &[u8], flush: FlushCompress, out: &mut Vec<u8>) {
        loop {
            out.reserve(OUT_STEP_BYTES);
            let before = self.deflate.total_in();
            // Deflate fails only if called after its end, and `finish` does not go on after that.
            let Ok(status) = self.deflate.compress_vec(content, out, flush) else {
                return;
            };
            let taken = usize::try_from(self.deflate.total_in() - before).unwrap_or(usize::MAX);
            content = content.get(taken..).unwrap_or_default();
            let has_room = out.len() < out.capacity();
            let is_done = match flush {
                FlushCompress::Finish => status == Status::StreamEnd,
                _ => content.is_empty() && has_room,
            };
            if is_done {
                return;
            }
        }
    }
}

/// Compresses a whole content.
pub fn compress(content: &[u8], level: u8) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len() / 3 + OUT_STEP_BYTES);
    let mut encoder = Encoder::new(level);
    encoder.push(content, &mut out);
    encoder.finish(&mut out);
    out
}

impl fmt::Debug for Encoder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "Encoder {{ taken: {} }}",
            self.deflate.total_in()
        )
    }
}

/// The library's levels in use. Its level 1 was measured 13 to 25 % larger than zlib's, its level 2 from 4 % smaller to
/// 1 % larger and no slower than zlib's level 1 (10 kB of source, 32 kB of Markdown, a 281 kB program).
const LEVEL_MIN: u8 = 2;
const LEVEL_MAX: u8 = 9;

/// The binary logarithm of the window in bytes: zlib's largest (`gzip_window 32k`, nginx's default).
const WINDOW_BITS: u8 = 15;

/// Room reserved in the output before each step, in bytes: a few steps for a piece of 64 KiB.
const OUT_STEP_BYTES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn check(content: &[u8], piece_len: usize, level: u8) {
        let mut encoder = Encoder::new(level);
        let mut compressed = Vec::new();
        for piece in content.chunks(piece_len) {
            encoder.push(piece, &mut compressed);
        }
        encoder.finish(&mut compressed);
        let mut restored = Vec::new();
        let mut decoder = flate2::read::GzDecoder::new(compressed.as_slice());
        decoder.read_to_end(&mut restored).unwrap();
        assert!(restored == content, "level {level}, pieces of {piece_len}");
    }

    /// Bytes that do not compress, the same each time.
    fn noise(len: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let next = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[0]
        };
        (0..len).map(next).collect()
    }

    #[test]
    fn what_was_compressed_in_pieces_is_restored() {
        let text = b"the mill stream runs to the wheel, ".repeat(3000);
        let noise = noise(200_000);
        for level in [0, 1, 6, 9, 255] {
            check(&text, 1000, level);
        }
        for piece_len in [1, 7, 65_536, 1_000_000] {
            check(&text, piece_len, 1);
            check(&noise, piece_len, 1);
        }
        check(b"", 1, 1);
    }

    #[test]
    fn what_was_flushed_can_be_read_before_the_end() {
        let mut encoder = Encoder::new(1);
        let (mut compressed, mut restored) = (Vec::new(), Vec::new());
        for piece in [noise(10_000), noise(10), noise(70_000)] {
            encoder.push(&piece, &mut compressed);
            encoder.flush(&mut compressed);
            restored.extend_from_slice(&piece);
            let mut decoder = flate2::read::GzDecoder::new(compressed.as_slice());
            let mut begun = vec![0; restored.len()];
            decoder.read_exact(&mut begun).unwrap();
            assert!(begun == restored);
        }
    }

    #[test]
    fn a_whole_content_is_compressed_as_one_gzip_member() {
        let compressed = compress(&[b'a'; 3000], 1);
        assert!(compressed.len() < 100, "{}", compressed.len());
        assert_eq!(compressed.get(..3), Some(&[0x1f, 0x8b, 8][..]));
        // RFC 1952 2.3.1: the length stands at the end.
        assert_eq!(compressed.last_chunk(), Some(&3000_u32.to_le_bytes()));
    }
}
