//! Content of an upstream server's answer that has arrived whole: nothing is awaited, and nothing is read ahead.

use super::{Pull, clamp, put_back};
use crate::local::Local;
use mill_http::range::ByteRange;
use mill_runtime::engine::Engine;
use mill_runtime::payload::Payload;

/// Bytes in one of the worker's buffers.
#[derive(Debug)]
pub struct Held {
    bytes: Vec<u8>,
    given: usize,
    /// The head of the answer has said how many they are: only then is a length announced.
    has_length: bool,
}

impl Held {
    pub(crate) const fn new(bytes: Vec<u8>, has_length: bool) -> Self {
        Self {
            bytes,
            given: 0,
            has_length,
        }
    }

    /// Leaves these bytes alone.
    pub(super) fn cut(&mut self, range: ByteRange) {
        self.bytes.truncate(clamp(range.end));
        self.given = self.bytes.len().min(clamp(range.start));
        self.has_length = true;
    }

    pub(super) fn remaining(&self) -> Option<u64> {
        self.has_length.then_some(self.held())
    }

    pub(super) const fn is_exhausted(&self) -> bool {
        self.held() == 0
    }

    const fn held(&self) -> u64 {
        (self.bytes.len() - self.given) as u64
    }

    /// The next piece, in `buffer`, which is one of the worker's.
    pub(super) fn next<'b, File, E: Engine>(
        &mut self,
        pull: &Pull<'_, E>,
        buffer: &'b mut Vec<u8>,
    ) -> Option<Payload<'b, File>> {
        let rest = self.bytes.get(self.given..).unwrap_or_default();
        let most = clamp(pull.most);
        if rest.is_empty() {
            return None;
        }
        put_back(buffer, pull.local);
        if self.given == 0 && rest.len() <= most {
            *buffer = std::mem::take(&mut self.bytes);
        } else {
            let piece = rest.get(..most).unwrap_or(rest);
            *buffer = pull.local.take_buffer();
            buffer.extend_from_slice(piece);
            self.given += piece.len();
        }
        Some(Payload::Copy(buffer))
    }

    pub(super) fn release<E: Engine>(mut self, local: &Local<E>) {
        put_back(&mut self.bytes, local);
    }
}
