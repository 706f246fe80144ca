//! Bytes that arrived before those in front of them.

/// Ranges of sequence numbers and their bytes, in order, no two of them touching.
#[derive(Debug, Default)]
pub struct Reassembly {}

impl Reassembly {
    pub fn clear(&mut self) {}
}
