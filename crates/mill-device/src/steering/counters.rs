//! What became of the frames that the program has seen.

use super::layout::{COUNTERS_BYTES, ROW_BYTES, ROWS};
use mill_sys::bpf::map::ArrayMemory;
use std::sync::atomic::Ordering;

/// Numbers of frames since the program was loaded; each frame is in exactly one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SteeringCounters {
    /// Ours: given to a socket.
    pub redirected: u64,
    /// The kernel's: another address, port or protocol, a later fragment, too many tags.
    pub passed: u64,
    /// Of a connection that the kernel had before the port was served: left to it.
    pub kept: u64,
    /// Ours, but there was no socket for the queue and worker: left to the kernel.
    pub unclaimed: u64,
    /// First fragments of datagrams for what is served, dropped: the later ones can't be told apart, and the kernel would
    /// answer for a connection that it does not know.
    pub fragments: u64,
    /// Headers cut short or contradictory: left to the kernel, which counts them too.
    pub malformed: u64,
}

/// Which number of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counter {
    Redirected,
    Passed,
    Kept,
    Unclaimed,
    Fragments,
    Malformed,
}

impl Counter {
    /// Bytes from the beginning of a row.
    pub(super) const fn offset(self) -> usize {
        self as usize * size_of::<u64>()
    }
}

const _: () = assert!(Counter::Malformed.offset() + size_of::<u64>() <= ROW_BYTES);

impl SteeringCounters {
    /// Adds the rows of all queues up.
    pub(super) fn read(memory: &ArrayMemory) -> Self {
        let sum = |counter: Counter| {
            let rows = (0..COUNTERS_BYTES).step_by(ROW_BYTES).take(ROWS);
            let numbers = rows.filter_map(|row| memory.atomic_u64(row + counter.offset()));
            numbers.map(|number| number.load(Ordering::Relaxed)).sum()
        };
        Self {
            redirected: sum(Counter::Redirected),
            passed: sum(Counter::Passed),
            kept: sum(Counter::Kept),
            unclaimed: sum(Counter::Unclaimed),
            fragments: sum(Counter::Fragments),
            malformed: sum(Counter::Malformed),
        }
    }
}
