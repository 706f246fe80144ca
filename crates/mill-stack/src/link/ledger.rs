//! A record of a host's connections that outlives its process.

use super::ExclusiveLink;
use crate::host::tables::NextNumbers;
use alloc::vec::Vec;

/// Keeps what the process that has this link next needs to tell the peers, should this one be killed.
pub trait LinkLedger {
    /// Whether there is a record; the same as long as the link lives.
    fn has_ledger(&self) -> bool;

    /// What is in a slot of the host now. Some memory writes; slots beyond the record are not kept.
    fn note(&mut self, slot: u32, numbers: Option<NextNumbers>);

    /// What a process has left that was killed, asked once before anything is noted.
    fn take_left(&mut self) -> Vec<NextNumbers>;
}

/// The connections of such a link end with its device.
impl<L: ExclusiveLink> LinkLedger for L {
    fn has_ledger(&self) -> bool {
        false
    }

    fn note(&mut self, _slot: u32, _numbers: Option<NextNumbers>) {}

    fn take_left(&mut self) -> Vec<NextNumbers> {
        Vec::new()
    }
}
