//! What must hold of any header block. Used by the fuzz target and by the ordinary test that replays the corpus.

use mill_http::h2::hpack::{Decoder, Encoder, Indexing, TABLE_BYTES};

/// The input is blocks of one connection, each behind a byte that is its length.
pub(crate) fn check(mut input: &[u8]) {
    let mut decoder = Decoder::new(TABLE_BYTES);
    let (mut encoder, mut mirror) = (Encoder::new(), Decoder::new(TABLE_BYTES));
    while let Some((len, rest)) = input.split_first() {
        let (block, behind) = rest.split_at(rest.len().min(usize::from(*len)));
        input = behind;
        let mut fields = Vec::new();
        let take = |name: &[u8], value: &[u8]| fields.push((name.to_vec(), value.to_vec()));
        if decoder.decode(block, take).is_err() {
            return;
        }
        // What was decoded survives being encoded, through tables of its own.
        let mut again = Vec::new();
        encoder.set_bytes_max(usize::from(*len) * 16);
        encoder.begin(&mut again);
        for (place, (name, value)) in fields.iter().enumerate() {
            let indexing = match place % 3 {
                0 => Indexing::Kept,
                1 => Indexing::NotKept,
                _ => Indexing::Never,
            };
            encoder.field(name, value, indexing, &mut again);
        }
        let mut found = Vec::new();
        let take = |name: &[u8], value: &[u8]| found.push((name.to_vec(), value.to_vec()));
        assert!(mirror.decode(&again, take).is_ok());
        assert_eq!(found, fields);
    }
}
