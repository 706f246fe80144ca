//! One neighbour: its Ethernet address, and how far that can be trusted (RFC 4861 7.3.2).

use mill_tcp::time::Instant;
use mill_wire::ethernet::MacAddress;

/// An entry of the cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Valid in the states that [`Entry::is_known`] names.
    pub(super) mac: MacAddress,
    pub(super) state: State,
    /// When the last request for it was sent.
    pub(super) used: Instant,
    /// When `mac` was set last.
    pub(super) changed: Instant,
}

/// RFC 4861 7.3.2, and a memory of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// So many requests were broadcast, the next one is due at `at`.
    Incomplete {
        asked: u8,
        at: Instant,
    },
    Reachable {
        until: Instant,
    },
    /// It answered once.
    Stale,
    /// In use again: the upper layer may confirm it meanwhile.
    Delay {
        until: Instant,
    },
    /// So many unicast probes were sent.
    Probe {
        asked: u8,
        at: Instant,
    },
    /// No answer: requested again after `until` at the earliest.
    Failed {
        until: Instant,
    },
}

impl State {
    /// As `ip neigh` calls it.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Incomplete { .. } => "incomplete",
            Self::Reachable { .. } => "reachable",
            Self::Stale => "stale",
            Self::Delay { .. } => "delay",
            Self::Probe { .. } => "probe",
            Self::Failed { .. } => "failed",
        }
    }
}

impl Entry {
    pub(super) const fn new(mac: MacAddress, state: State, now: Instant) -> Self {
        Self {
            mac,
            state,
            used: now,
            changed: now,
        }
    }

    /// A neighbour learnt from its own packets that nothing was sent to: the first to be dropped when there is no
    /// room, so that a flood of addresses displaces none in use.
    pub(super) const fn learnt(mac: MacAddress, now: Instant) -> Self {
        Self {
            mac,
            state: State::Stale,
            used: Instant::from_nanos(0),
            changed: now,
        }
    }

    /// Whether there is an address to send to.
    pub(super) const fn is_known(&self) -> bool {
        !matches!(self.state, State::Incomplete { .. } | State::Failed { .. })
    }

    /// When it changes by a timer.
    pub(super) const fn due(&self) -> Option<Instant> {
        match self.state {
            State::Incomplete { at, .. } | State::Probe { at, .. } => Some(at),
            State::Reachable { until } | State::Delay { until } | State::Failed { until } => {
                Some(until)
            }
            State::Stale => None,
        }
    }
}
