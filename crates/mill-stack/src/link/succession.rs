//! Which process has the device, where it goes from one to the next.

use super::ExclusiveLink;
use alloc::vec::Vec;

/// Passes connections that wait at listeners to the process that has the device now. They are bytes of
/// [`crate::host::migration::format`].
pub trait LinkSuccession {
    /// Whether another process has taken the device over from this one.
    fn has_heir(&self) -> bool;

    /// This process is about to end: its next turn looks whether another one that serves asks for the device. Whether one may, so that it is
    /// worth some turns: what has arrived and the ways to others go on by that one.
    fn seek_heir(&mut self) -> bool;

    /// Passes them to that process; `false` if it does not get them.
    fn pass_waiting(&mut self, connections: &[u8]) -> bool;

    /// Connections are on the way from this process to another one, by another way than this: for some time no process answers segments of
    /// those that are listed as on the way.
    fn note_moving(&mut self);

    /// What a process that had the device before has passed to this one.
    fn take_passed(&mut self) -> Option<Vec<u8>>;
}

/// No other process ever has it.
impl<L: ExclusiveLink> LinkSuccession for L {
    fn has_heir(&self) -> bool {
        false
    }

    fn seek_heir(&mut self) -> bool {
        false
    }

    fn pass_waiting(&mut self, _connections: &[u8]) -> bool {
        false
    }

    fn note_moving(&mut self) {}

    fn take_passed(&mut self) -> Option<Vec<u8>> {
        None
    }
}
