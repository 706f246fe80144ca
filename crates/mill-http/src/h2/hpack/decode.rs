//! From bytes to fields.

use super::dynamic_table::DynamicTable;
use super::{huffman, integer, static_table};
use alloc::vec::Vec;

/// The reading side of one direction. One for each connection: every block that the peer sends has to go through it, in
/// order, or the tables of both sides differ.
#[derive(Debug)]
pub struct Decoder {
    table: DynamicTable,
    /// What our SETTINGS allow the peer's table to be.
    bytes_max: usize,
    /// A decoded name and value.
    scratch: Vec<u8>,
}

/// The block cannot be decoded, so none after it can: the connection ends with COMPRESSION_ERROR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompressionError;

impl Decoder {
    /// `bytes_max`: as our SETTINGS_HEADER_TABLE_SIZE says.
    pub const fn new(bytes_max: usize) -> Self {
        Self {
            table: DynamicTable::new(bytes_max),
            bytes_max,
            scratch: Vec::new(),
        }
    }

    /// Passes each field of a block to `take`, in order. Costs no allocation beyond what the table keeps.
    pub fn decode(
        &mut self,
        mut block: &[u8],
        mut take: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), CompressionError> {
        let mut size_updates = 0;
        let mut is_first = true;
        while let Some(first) = block.first() {
            block = match *first {
                0x80.. => {
                    let (index, rest) = integer::decode(block, 7).ok_or(CompressionError)?;
                    let (name, value) = self.field(index).ok_or(CompressionError)?;
                    take(name, value);
                    rest
                }
                0x40.. => self.literal(block, 6, true, &mut take)?,
                0x20.. => {
                    size_updates += 1;
                    if !is_first || size_updates > SIZE_UPDATES_MAX {
                        return Err(CompressionError);
                    }
                    let (size, rest) = integer::decode(block, 5).ok_or(CompressionError)?;
                    if size > self.bytes_max {
                        return Err(CompressionError);
                    }
                    self.table.set_bytes_max(size);
                    block = rest;
                    continue;
                }
                // Never indexed, or not indexed this time.
                _ => self.literal(block, 4, false, &mut take)?,
            };
            is_first = false;
        }
        Ok(())
    }

    /// A field with its value, and perhaps its name, written out.
    fn literal<'b>(
        &mut self,
        block: &'b [u8],
        prefix_bits: u32,
        is_kept: bool,
        take: &mut impl FnMut(&[u8], &[u8]),
    ) -> Result<&'b [u8], CompressionError> {
        let (index, mut rest) = integer::decode(block, prefix_bits).ok_or(CompressionError)?;
        let mut scratch = core::mem::take(&mut self.scratch);
        scratch.clear();
        if index == 0 {
            rest = string(rest, &mut scratch)?;
        } else {
            let (name, _) = self.field(index).ok_or(CompressionError)?;
            scratch.extend_from_slice(name);
        }
        let name_len = scratch.len();
        rest = string(rest, &mut scratch)?;
        let (name, value) = scratch.split_at(name_len);
        take(name, value);
        if is_kept {
            self.table.insert(name, value);
        }
        self.scratch = scratch;
        Ok(rest)
    }

    fn field(&self, index: usize) -> Option<(&[u8], &[u8])> {
        match index.checked_sub(static_table::LEN + 1) {
            None => static_table::field(index),
            Some(index) => self.table.field(index),
        }
    }
}

/// Appends a string; returns the bytes behind it.
fn string<'b>(bytes: &'b [u8], out: &mut Vec<u8>) -> Result<&'b [u8], CompressionError> {
    let is_huffman = bytes.first().is_some_and(|first| first & 0x80 != 0);
    let (len, rest) = integer::decode(bytes, 7).ok_or(CompressionError)?;
    let (text, rest) = rest.split_at_checked(len).ok_or(CompressionError)?;
    if is_huffman {
        huffman::decode(text, out).map_err(|_| CompressionError)?;
    } else {
        out.extend_from_slice(text);
    }
    Ok(rest)
}

/// Changes of the table's size at the beginning of a block: to the least and to the last one (RFC 7541 4.2).
const SIZE_UPDATES_MAX: u32 = 2;
