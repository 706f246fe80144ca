//! What an acknowledgement says has arrived.

use super::{Moment, Sent};
use mill_wire::seq::SeqNumber;

/// Collected while the acknowledgement and its SACK blocks are gone through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Bytes that had not been known to have arrived (DeliveredData of RFC 9937).
    pub bytes: u32,
    /// When the first and the last of those that were sent only once left.
    pub first_original_at: Option<Moment>,
    pub last_original_at: Option<Moment>,
    /// The lowest end of what was sent only once.
    pub original_end: Option<SeqNumber>,
    /// Some of it had been sent more than once.
    pub has_retransmitted: bool,
    /// Something sent only once arrived behind what had been sent later (RFC 8985 6.2 step 3).
    pub is_reordered: bool,
    /// … and how far: bytes from where it begins to the highest end that had arrived.
    pub reordered_bytes: u32,
    /// Of all that arrived, what had been sent last (RFC 8985 6.2 step 2).
    pub newest: Option<Newest>,
}

/// A segment that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Newest {
    pub at: Moment,
    pub end: SeqNumber,
    pub is_retransmission: bool,
}

impl Delivery {
    #[inline]
    pub(super) fn take(&mut self, part: &Sent, highest: &mut SeqNumber) {
        self.bytes += part.len();
        let is_retransmission = part.retransmits > 0;
        if is_retransmission {
            self.has_retransmitted = true;
        } else {
            self.first_original_at.get_or_insert(part.at);
            self.last_original_at = Some(part.at);
            self.original_end.get_or_insert(part.end);
            if part.end.is_before(*highest) {
                self.is_reordered = true;
                self.reordered_bytes = self.reordered_bytes.max(*highest - part.start);
            }
        }
        *highest = highest.max(part.end);
        if self
            .newest
            .is_none_or(|newest| is_sent_after((part.at, part.end), (newest.at, newest.end)))
        {
            self.newest = Some(Newest {
                at: part.at,
                end: part.end,
                is_retransmission,
            });
        }
    }
}

/// RFC 8985 6.2: whether the first of two segments left later; of what left together, the one that ends later.
#[inline]
pub fn is_sent_after(a: (Moment, SeqNumber), b: (Moment, SeqNumber)) -> bool {
    a.0.is_after(b.0) || (a.0 == b.0 && a.1.is_after(b.1))
}
