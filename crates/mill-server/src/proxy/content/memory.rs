//! A request's content in memory.

use crate::exchange::ContentPiece;
use crate::local::Local;
use mill_runtime::engine::Engine;
use mill_runtime::received::Received;

/// Large pieces at the beginning stand where they were received; what follows them is copied.
#[derive(Debug, Default)]
pub(in crate::proxy) struct Memory {
    pieces: Vec<Received>,
    copied: Vec<u8>,
    len: usize,
}

impl From<Vec<u8>> for Memory {
    fn from(bytes: Vec<u8>) -> Self {
        Self {
            len: bytes.len(),
            pieces: Vec::new(),
            copied: bytes,
        }
    }
}

impl Memory {
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Appends a piece. Memory for copies is taken once, for `bytes` of content if that is more than a usual buffer.
    pub(super) fn push<E: Engine>(
        &mut self,
        piece: ContentPiece<'_>,
        bytes: usize,
        local: &Local<E>,
    ) {
        let piece = match piece {
            ContentPiece::Given(piece) if self.copied.is_empty() => {
                if self.pieces.capacity() == 0 {
                    self.pieces = local.take_pieces();
                }
                self.len += piece.len();
                return self.pieces.push(piece);
            }
            ContentPiece::Given(ref piece) => piece,
            ContentPiece::Lent(piece) => piece,
        };
        if self.copied.capacity() == 0 {
            self.copied = local.take_buffer();
            self.copied.reserve(bytes.saturating_sub(self.len));
        }
        self.copied.extend_from_slice(piece);
        self.len += piece.len();
    }

    /// The bytes from `at` on, as far as they stand in one piece; empty at the end.
    pub(super) fn at(&self, mut at: usize) -> &[u8] {
        for piece in self.parts() {
            match piece.get(at..) {
                Some(rest @ [_, ..]) => return rest,
                _ => at -= piece.len(),
            }
        }
        &[]
    }

    /// All bytes, in pieces.
    pub(super) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let pieces = self.pieces.iter().map(|piece| &**piece);
        pieces.chain([self.copied.as_slice()])
    }

    pub(super) fn release<E: Engine>(self, local: &Local<E>) {
        if self.pieces.capacity() > 0 {
            local.put_pieces(self.pieces);
        }
        local.put_buffer(self.copied);
    }
}
