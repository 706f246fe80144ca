//! Bytes of content that is being filled, over all fills of a zone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The sum of what fills hold, below a limit.
#[derive(Debug)]
pub(crate) struct Ledger {
    limit: u64,
    reserved: AtomicU64,
}

impl Ledger {
    pub(crate) fn new(limit: u64) -> Self {
        let reserved = AtomicU64::new(0);
        Self { limit, reserved }
    }

    /// Takes `bytes`, or nothing if the sum would exceed the limit.
    pub(crate) fn reserve(&self, bytes: u64) -> bool {
        let room = |sum: u64| sum.checked_add(bytes).filter(|sum| *sum <= self.limit);
        self.reserved.fetch_update(Relaxed, Relaxed, room).is_ok()
    }

    /// Gives back what was reserved.
    pub(crate) fn release(&self, bytes: u64) {
        let before = self.reserved.fetch_sub(bytes, Relaxed);
        debug_assert!(before >= bytes, "released {bytes} of {before}");
    }

    pub(crate) fn reserved(&self) -> u64 {
        self.reserved.load(Relaxed)
    }
}

/// A part of a ledger that is given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    ledger: Arc<Ledger>,
    bytes: u64,
}

impl Reservation {
    pub(crate) fn new(ledger: Arc<Ledger>) -> Self {
        Self { ledger, bytes: 0 }
    }

    /// Adds `bytes` to it, or nothing if the limit does not allow it.
    pub(crate) fn extend(&mut self, bytes: u64) -> bool {
        let done = self.ledger.reserve(bytes);
        self.bytes += if done { bytes } else { 0 };
        done
    }

    /// Gives all of it back.
    pub(crate) fn clear(&mut self) {
        self.ledger.release(std::mem::take(&mut self.bytes));
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Ledger, Reservation};

    #[test]
    fn the_limit_is_exact_and_what_is_dropped_is_given_back() {
        let ledger = Arc::new(Ledger::new(10));
        let mut reservation = Reservation::new(ledger.clone());
        assert!(reservation.extend(4) && reservation.extend(6));
        assert!(ledger.reserved() == 10 && !reservation.extend(1));
        drop(reservation);
        assert_eq!(ledger.reserved(), 0);
    }
}
