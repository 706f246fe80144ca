//! HPACK: field sections as bytes, with a table of earlier fields for each direction of a connection (RFC 7541).

/// From bytes to fields.
mod decode;
/// The table that a connection fills.
mod dynamic_table;
/// From fields to bytes.
mod encode;
/// The code of strings.
mod huffman;
/// Numbers.
mod integer;
/// The table that every connection has.
mod static_table;

pub use decode::{CompressionError, Decoder};
pub use encode::{Encoder, Indexing};
pub(super) use encode::{emit_plain, emit_stamped};

/// Bytes of a dynamic table until a peer's SETTINGS say otherwise (RFC 9113 6.5.2).
pub const TABLE_BYTES: usize = 4096;
