//! Counters of the frames that the program has seen, by their fate.

use super::layout::{COUNTERS_BYTES, ROW_BYTES, ROWS};
use mill_sys::bpf::map::ArrayMemory;
use std::sync::atomic::Ordering;

/// Frames since the program was loaded; each frame is counted exactly once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SteeringCounters {
    /// Redirected to a socket.
    pub redirected: u64,
    /// Passed to the kernel: another address, port or protocol, a later fragment, or too many tags.
    pub passed: u64,
    /// Left to the kernel as part of a connection that it had before the port was served.
    pub kept: u64,
    /// For a served port, but the queue and worker have no socket: left to the kernel.
    pub unclaimed: u64,
    /// First fragments of datagrams for served ports, dropped: later fragments cannot be recognised and pass, so the
    /// kernel would reassemble the datagram and answer for a connection that it does not have.
    pub fragments: u64,
    /// From a blocked address, for a served port: dropped.
    pub blocked: u64,
    /// Truncated or contradictory headers: left to the kernel, which counts them too.
    pub malformed: u64,
    /// IPv6 with more extension headers than the program passes over, or one that it does not pass, such as that of
    /// authentication: left to the kernel.
    pub chains: u64,
}

/// A counter's place in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counter {
    Redirected,
    Passed,
    Kept,
    Unclaimed,
    Fragments,
    Malformed,
    Blocked,
    Chains,
}

impl Counter {
    /// Bytes from the start of a row.
    pub(super) const fn offset(self) -> usize {
        self as usize * size_of::<u64>()
    }
}

const _: () = assert!(Counter::Chains.offset() + size_of::<u64>() <= ROW_BYTES);

impl SteeringCounters {
    /// Sums up the rows of all queues.
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
            blocked: sum(Counter::Blocked),
            chains: sum(Counter::Chains),
        }
    }
}
