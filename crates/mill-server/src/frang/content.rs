//! Limits of a request's content while it arrives: `http_body_len`, `http_body_chunk_cnt`.

use super::limit::FrangLimit;
use super::refusal::limits_of;
use crate::exchange::{ContentError, Excess};
use crate::request::Request;
use mill_config::config::frang::FrangAction;

/// How much of a request's content has arrived, and in how many pieces.
#[derive(Debug)]
pub(crate) struct Arriving {
    pieces: u32,
    /// What is taken next has arrived since the last piece was counted.
    is_new: bool,
}

impl Arriving {
    pub(crate) const fn new() -> Self {
        Self {
            pieces: 0,
            is_new: true,
        }
    }

    /// More of it has been waited for.
    pub(crate) const fn wait(&mut self) {
        self.is_new = true;
    }

    /// Some of it was taken.
    pub(crate) const fn take(&mut self) {
        if self.is_new {
            self.is_new = false;
            self.pieces = self.pieces.saturating_add(1);
        }
    }

    /// Whether it is more than `frang` allows: content of no known length has `bytes` so far. The second value: the
    /// connection is to be reset.
    pub(crate) fn check(&self, bytes: u64, request: &Request) -> Option<(ContentError, bool)> {
        let most_bytes = request.location.frang.content_bytes;
        let most_pieces = request.site.frang.as_ref()?.limits.content_pieces;
        let (limit, value, most) = if most_bytes > 0 && bytes > most_bytes {
            (FrangLimit::ContentLen, bytes, most_bytes)
        } else if most_pieces > 0 && self.pieces > most_pieces {
            let (value, most) = (self.pieces.into(), most_pieces.into());
            (FrangLimit::ContentPieces, value, most)
        } else {
            return None;
        };
        let (frang, _) = limits_of(request)?;
        let is_reset = frang.limits.action == FrangAction::Drop || frang.limits.ip_block.is_some();
        let excess = Excess { limit, value, most };
        Some((ContentError::Limited(excess), is_reset))
    }
}
