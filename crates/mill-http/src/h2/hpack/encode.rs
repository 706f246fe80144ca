//! From fields to bytes.

use super::dynamic_table::{self, DynamicTable};
use super::{TABLE_BYTES, huffman, integer, static_table};
use alloc::vec::Vec;

/// The writing side of one direction. Blocks must be sent in the order in which they were made.
#[derive(Debug)]
pub struct Encoder {
    table: DynamicTable,
    /// Changes of the table's size that the next block begins with: the least one, and the last one.
    size_update: Option<(usize, usize)>,
}

/// Whether a field is worth a place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// It may come again.
    Kept,
    /// It will hardly come again, or is too large.
    NotKept,
    /// It must not be guessed from the sizes of blocks: no peer on the way may keep it (RFC 7541 7.1).
    Never,
}

impl Encoder {
    pub const fn new() -> Self {
        Self {
            table: DynamicTable::new(TABLE_BYTES),
            size_update: None,
        }
    }

    /// The peer's SETTINGS_HEADER_TABLE_SIZE. No more is used than by default.
    pub fn set_bytes_max(&mut self, bytes_max: usize) {
        let bytes_max = bytes_max.min(TABLE_BYTES);
        if bytes_max == self.table.bytes_max() {
            return;
        }
        self.table.set_bytes_max(bytes_max);
        let least = self
            .size_update
            .map_or(bytes_max, |(least, _)| least.min(bytes_max));
        self.size_update = Some((least, bytes_max));
    }

    /// Appends what must stand at the beginning of a block.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        let Some((least, last)) = self.size_update.take() else {
            return;
        };
        if least < last {
            integer::encode(least, 5, 0x20, out);
        }
        integer::encode(last, 5, 0x20, out);
    }

    /// Appends a field; its name is in lower case.
    pub fn field(&mut self, name: &[u8], value: &[u8], indexing: Indexing, out: &mut Vec<u8>) {
        let known = match static_table::find(name, value) {
            Some((index, true)) => return integer::encode(index, 7, 0x80, out),
            known => known,
        };
        let own = match indexing {
            Indexing::Kept => self.table.find(name, value),
            Indexing::NotKept | Indexing::Never => None,
        };
        let index = match (own, known) {
            (Some((index, true)), _) => {
                return integer::encode(index + static_table::LEN + 1, 7, 0x80, out);
            }
            (_, Some((index, _))) => index,
            (Some((index, false)), None) => index + static_table::LEN + 1,
            (None, None) => 0,
        };
        let is_kept = indexing == Indexing::Kept
            && dynamic_table::size(name, value) <= self.table.bytes_max() / 2;
        literal(index, name, value, (is_kept, indexing), out);
        if is_kept {
            self.table.insert(name, value);
        }
    }
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

/// Appends a field that uses no connection's table: such blocks may be kept and sent on any connection.
pub(crate) fn emit_plain(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    match static_table::find(name, value) {
        Some((index, true)) => integer::encode(index, 7, 0x80, out),
        Some((index, false)) => literal(index, name, value, (false, Indexing::NotKept), out),
        None => literal(0, name, value, (false, Indexing::NotKept), out),
    }
}

/// As [`emit_plain`], with the value as it stands: returns where it begins, so that it may be overwritten.
pub(crate) fn emit_stamped(name: &[u8], value: &[u8], out: &mut Vec<u8>) -> usize {
    let index = static_table::find(name, b"").map_or(0, |(index, _)| index);
    integer::encode(index, 4, 0, out);
    if index == 0 {
        string(name, out);
    }
    integer::encode(value.len(), 7, 0, out);
    let at = out.len();
    out.extend_from_slice(value);
    at
}

fn literal(
    index: usize,
    name: &[u8],
    value: &[u8],
    (is_kept, indexing): (bool, Indexing),
    out: &mut Vec<u8>,
) {
    match (is_kept, indexing) {
        (true, _) => integer::encode(index, 6, 0x40, out),
        (false, Indexing::Never) => integer::encode(index, 4, 0x10, out),
        (false, _) => integer::encode(index, 4, 0, out),
    }
    if index == 0 {
        string(name, out);
    }
    string(value, out);
}

/// Appends a string in the shorter form.
fn string(text: &[u8], out: &mut Vec<u8>) {
    let coded_len = huffman::encoded_len(text);
    if coded_len < text.len() {
        integer::encode(coded_len, 7, 0x80, out);
        huffman::encode(text, out);
    } else {
        integer::encode(text.len(), 7, 0, out);
        out.extend_from_slice(text);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Decoder;
    use super::*;

    fn decoded(decoder: &mut Decoder, block: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut fields = Vec::new();
        let take = |name: &[u8], value: &[u8]| fields.push((name.to_vec(), value.to_vec()));
        decoder.decode(block, take).unwrap();
        fields
    }

    #[test]
    fn what_is_encoded_is_decoded_while_tables_fill_and_shrink() {
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(TABLE_BYTES));
        for round in 0..200_usize {
            if round % 50 == 49 {
                encoder.set_bytes_max(round);
                encoder.set_bytes_max(round * 20);
            }
            let long = alloc::format!("{round:0>width$}", width = round * 7 % 300);
            let fields: [(&[u8], &[u8], Indexing); 6] = [
                (b":status", b"200", Indexing::Kept),
                (b"server", b"millstream", Indexing::Kept),
                (b"x-long", long.as_bytes(), Indexing::Kept),
                (b"set-cookie", b"secret", Indexing::Never),
                (b"etag", b"\"1-2\"", Indexing::NotKept),
                (b"x-short", b"", Indexing::Kept),
            ];
            let mut block = Vec::new();
            encoder.begin(&mut block);
            for (name, value, indexing) in fields {
                encoder.field(name, value, indexing, &mut block);
            }
            let found = decoded(&mut decoder, &block);
            let expected: Vec<_> = fields
                .map(|(name, value, _)| (name.to_vec(), value.to_vec()))
                .into();
            assert_eq!(found, expected, "round {round}");
        }
    }

    /// RFC 7541 C.4: requests, with Huffman codes, on one connection.
    #[test]
    fn the_examples_of_the_rfc_are_decoded() {
        let mut decoder = Decoder::new(TABLE_BYTES);
        let text = |fields: Vec<(Vec<u8>, Vec<u8>)>| {
            let line = |(name, value): &(Vec<u8>, Vec<u8>)| {
                alloc::format!("{}={}", name.escape_ascii(), value.escape_ascii())
            };
            fields.iter().map(line).collect::<Vec<_>>().join(" ")
        };
        let first = b"\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff";
        let common = ":method=GET :scheme=http :path=/ :authority=www.example.com";
        assert_eq!(text(decoded(&mut decoder, first)), common);
        let second = b"\x82\x86\x84\xbe\x58\x86\xa8\xeb\x10\x64\x9c\xbf";
        let with_cache = alloc::format!("{common} cache-control=no-cache");
        assert_eq!(text(decoded(&mut decoder, second)), with_cache);
        let third = b"\x82\x87\x85\xbf\x40\x88\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f\x89\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf";
        assert_eq!(
            text(decoded(&mut decoder, third)),
            ":method=GET :scheme=https :path=/index.html :authority=www.example.com custom-key=custom-value"
        );
    }

    #[test]
    fn malformed_blocks_are_errors() {
        for block in [
            &b"\x80"[..],
            b"\xbe",
            b"\xff\x80\x80\x80\x80\x01",
            b"\x40",
            b"\x40\x05abc",
            b"\x3f\xe2\x1f",
            b"\x82\x20",
            b"\x20\x20\x20",
            b"\x41\x81\xff",
        ] {
            let mut decoder = Decoder::new(TABLE_BYTES);
            let result = decoder.decode(block, |_, _| ());
            assert!(result.is_err(), "{block:?}");
        }
    }
}
