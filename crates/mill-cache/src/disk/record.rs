//! The format of an object's file: header, content, tail. All numbers are little-endian.
//!
//! ```text
//! header, 40 bytes   magic, version, length of the content, length of the tail, checksum of the tail, of the header
//! content            as it is sent
//! tail               key; tags; checksum of each block of 64 KiB of content; metadata
//! ```
//!
//! The tail is behind the content because its checksums are known once all of that is written. Checksums are CRC-32
//! (ISO 3309): they are against what disks and crashes do, not against peers that may write to the folder.

use std::fmt;

/// Bytes of the header.
pub const HEADER_BYTES: usize = 40;

/// Bytes of content that have one checksum; the last block may be shorter.
pub const BLOCK_BYTES: usize = 64 * 1024;

/// Bytes of a tail at most: key, tags and metadata have limits of their own, and content of 64 TiB has as many checksums.
const TAIL_BYTES_MAX: u32 = u32::MAX;

const MAGIC: [u8; 8] = *b"MILLOBJ\n";
const VERSION: u32 = 1;

/// Why a file is not what it should be: it is removed, and was a miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// It does not begin as one.
    Foreign,
    /// Of another version of the format.
    Version,
    /// It is shorter or longer than it says.
    Length,
    /// A checksum does not match.
    Checksum,
    /// The checksum matches what makes no sense.
    Form,
}

impl fmt::Display for Damage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Foreign => "it is no file of a cache",
            Self::Version => "it was written by another version",
            Self::Length => "it has not the length that it says",
            Self::Checksum => "a checksum does not match",
            Self::Form => "it cannot be read",
        })
    }
}

impl std::error::Error for Damage {}

/// The checksums of content, block by block, while it is written.
#[derive(Clone, Debug, Default)]
pub struct BlockSums {
    sums: Vec<u8>,
    open: Option<crc32fast::Hasher>,
    open_bytes: usize,
}

impl BlockSums {
    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(BLOCK_BYTES - self.open_bytes));
            self.open.get_or_insert_default().update(now);
            self.open_bytes += now.len();
            rest = later;
            if self.open_bytes == BLOCK_BYTES {
                self.close();
            }
        }
    }

    fn close(&mut self) {
        self.open_bytes = 0;
        if let Some(open) = self.open.take() {
            self.sums.extend_from_slice(&open.finalize().to_le_bytes());
        }
    }

    /// Those of all bytes.
    fn finish(mut self) -> Vec<u8> {
        self.close();
        self.sums
    }
}

/// What is written beside the content.
#[derive(Clone, Copy, Debug)]
pub struct RecordParts<'a> {
    pub key: &'a [u8],
    pub tags: &'a [&'a [u8]],
    /// The caller's.
    pub meta: &'a [u8],
}

/// The bytes behind the content.
pub fn emit_tail(parts: RecordParts<'_>, sums: BlockSums) -> Vec<u8> {
    let mut tail = Vec::new();
    emit_text(parts.key, &mut tail);
    tail.extend_from_slice(&length(parts.tags.len()));
    for tag in parts.tags {
        emit_text(tag, &mut tail);
    }
    emit_text(&sums.finish(), &mut tail);
    emit_text(parts.meta, &mut tail);
    tail
}

/// The bytes before the content.
pub fn emit_header(content_len: u64, tail: &[u8]) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..20].copy_from_slice(&content_len.to_le_bytes());
    header[20..24].copy_from_slice(&length(tail.len()));
    header[24..28].copy_from_slice(&crc32fast::hash(tail).to_le_bytes());
    let sum = crc32fast::hash(&header[..SUMMED]);
    header[SUMMED..].copy_from_slice(&sum.to_le_bytes());
    header
}

/// Bytes of the header before its own checksum; those from 28 on are zero.
const SUMMED: usize = HEADER_BYTES - 4;

fn emit_text(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&length(text.len()));
    out.extend_from_slice(text);
}

fn length(len: usize) -> [u8; 4] {
    u32::try_from(len).unwrap_or(TAIL_BYTES_MAX).to_le_bytes()
}

/// Where the parts of a file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub content_len: u64,
    pub tail_len: u32,
    tail_sum: u32,
}

impl Header {
    /// Of a file of `file_len` bytes that begins with `bytes`.
    ///
    /// # Errors
    /// If it is no whole file of this format.
    pub fn parse(bytes: &[u8], file_len: u64) -> Result<Self, Damage> {
        let mut reading = Reading(bytes.get(..HEADER_BYTES).ok_or(Damage::Length)?);
        if reading.take(8)? != MAGIC {
            return Err(Damage::Foreign);
        }
        let version = reading.u32()?;
        let header = Self {
            content_len: reading.u64()?,
            tail_len: reading.u32()?,
            tail_sum: reading.u32()?,
        };
        reading.take(SUMMED - 28)?;
        if reading.u32()? != crc32fast::hash(&bytes[..SUMMED]) {
            return Err(Damage::Checksum);
        }
        if version != VERSION {
            return Err(Damage::Version);
        }
        let before_tail = header.tail_start().ok_or(Damage::Form)?;
        if before_tail.checked_add(header.tail_len.into()) != Some(file_len) {
            return Err(Damage::Length);
        }
        Ok(header)
    }

    /// Where the tail begins; `None` of a length that is beyond all files.
    fn tail_start(&self) -> Option<u64> {
        self.content_len.checked_add(HEADER_BYTES as u64)
    }

    /// Where the tail begins.
    pub fn tail_offset(&self) -> u64 {
        // Checked when it was parsed.
        self.tail_start().unwrap_or(u64::MAX)
    }
}

/// The tail of a file, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    pub key: &'a [u8],
    pub tags: Vec<&'a [u8]>,
    pub meta: &'a [u8],
    sums: &'a [u8],
}

impl<'a> Record<'a> {
    /// Of the tail's bytes.
    ///
    /// # Errors
    /// If they are not those that were written.
    pub fn parse(header: &Header, tail: &'a [u8]) -> Result<Self, Damage> {
        if u32::try_from(tail.len()) != Ok(header.tail_len) {
            return Err(Damage::Length);
        }
        if crc32fast::hash(tail) != header.tail_sum {
            return Err(Damage::Checksum);
        }
        let mut reading = Reading(tail);
        let key = reading.text()?;
        let mut tags = Vec::new();
        for _ in 0..reading.u32()? {
            tags.push(reading.text()?);
        }
        let sums = reading.text()?;
        let meta = reading.text()?;
        let blocks = header.content_len.div_ceil(BLOCK_BYTES as u64);
        if !reading.0.is_empty() || sums.len() as u64 != blocks * 4 {
            return Err(Damage::Form);
        }
        Ok(Self {
            key,
            tags,
            meta,
            sums,
        })
    }

    /// The checksums of its blocks, for [`check_blocks`].
    pub fn sums(&self) -> &'a [u8] {
        self.sums
    }
}

/// Whether `bytes`, which begin with the block of this number, are whole blocks of what was written, but for the last one.
pub fn check_blocks(sums: &[u8], first: usize, bytes: &[u8]) -> Result<(), Damage> {
    let (sums, _) = sums.as_chunks::<4>();
    for (at, block) in bytes.chunks(BLOCK_BYTES).enumerate() {
        let sum = sums.get(first + at).ok_or(Damage::Length)?;
        if u32::from_le_bytes(*sum) != crc32fast::hash(block) {
            return Err(Damage::Checksum);
        }
    }
    Ok(())
}

/// Numbers and texts, one after the other.
pub(super) struct Reading<'a>(pub(super) &'a [u8]);

impl<'a> Reading<'a> {
    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], Damage> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Damage::Form)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Damage> {
        let bytes = self.take(4)?;
        Ok(u32::from_le_bytes(
            bytes.try_into().map_err(|_| Damage::Form)?,
        ))
    }

    pub(super) fn u64(&mut self) -> Result<u64, Damage> {
        let bytes = self.take(8)?;
        Ok(u64::from_le_bytes(
            bytes.try_into().map_err(|_| Damage::Form)?,
        ))
    }

    fn text(&mut self) -> Result<&'a [u8], Damage> {
        let len = usize::try_from(self.u32()?).map_err(|_| Damage::Form)?;
        self.take(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(content: &[u8]) -> Vec<u8> {
        let mut sums = BlockSums::default();
        // In odd pieces, as content comes.
        content
            .chunks(1000)
            .for_each(|piece: &[u8]| sums.push(piece));
        let parts = RecordParts {
            key: b"http://a/b",
            tags: &[b"one", b"two"],
            meta: b"metadata",
        };
        let tail = emit_tail(parts, sums);
        [
            &emit_header(content.len() as u64, &tail)[..],
            content,
            &tail,
        ]
        .concat()
    }

    fn read(file: &[u8]) -> Result<(), Damage> {
        let header = Header::parse(file, file.len() as u64)?;
        let tail_at = usize::try_from(header.tail_offset()).unwrap();
        let record = Record::parse(&header, &file[tail_at..])?;
        assert_eq!(record.key, b"http://a/b");
        assert_eq!(record.tags, [b"one", b"two"]);
        assert_eq!(record.meta, b"metadata");
        check_blocks(record.sums(), 0, &file[HEADER_BYTES..tail_at])
    }

    fn content(len: usize) -> Vec<u8> {
        (0..=250).cycle().take(len).collect()
    }

    #[test]
    fn what_was_written_is_read() {
        for len in [0, 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES] {
            assert_eq!(read(&file(&content(len))), Ok(()), "{len}");
        }
    }

    #[test]
    fn each_flipped_bit_is_found() {
        let whole = file(&content(300));
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut damaged = whole.clone();
                damaged[at] ^= 1 << bit;
                assert!(read(&damaged).is_err(), "byte {at}, bit {bit}");
            }
        }
    }

    #[test]
    fn each_shortened_file_is_found() {
        let whole = file(&content(300));
        for len in 0..whole.len() {
            assert!(read(&whole[..len]).is_err(), "{len} bytes");
        }
        assert_eq!(read(&[&whole[..], b"x"].concat()), Err(Damage::Length));
    }

    #[test]
    fn a_block_from_the_middle_is_checked_by_its_number() {
        let content = content(2 * BLOCK_BYTES + 5);
        let file = file(&content);
        let header = Header::parse(&file, file.len() as u64).unwrap();
        let tail_at = usize::try_from(header.tail_offset()).unwrap();
        let record = Record::parse(&header, &file[tail_at..]).unwrap();
        let second = &content[BLOCK_BYTES..2 * BLOCK_BYTES];
        assert_eq!(check_blocks(record.sums(), 1, second), Ok(()));
        assert!(check_blocks(record.sums(), 0, second).is_err());
        assert_eq!(check_blocks(record.sums(), 3, b"x"), Err(Damage::Length));
    }

    #[test]
    fn a_file_of_another_version_says_so() {
        let mut file = file(b"x");
        file[8] = 9;
        let sum = crc32fast::hash(&file[..SUMMED]);
        file[SUMMED..HEADER_BYTES].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(read(&file), Err(Damage::Version));
    }
}
