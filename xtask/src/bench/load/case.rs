//! What clients are asked to do: a named case is a size and a kind of connection.

/// How long a connection lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connections {
    /// Until the block ends.
    KeepAlive,
    /// One request each, which says `Connection: close`; the server closes.
    PerRequest,
    /// The client closes after this many requests and connects anew.
    OfRequests(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) body_bytes: usize,
    pub(super) connections: Connections,
}

/// Open at any time, wrk's and ab's users' habit.
pub(super) const CONCURRENCY: u32 = 64;

/// All cases, in the order in which they are run.
pub(super) const CASES: [Case; 5] = [
    Case {
        name: "keep-alive-0",
        body_bytes: 0,
        connections: Connections::KeepAlive,
    },
    Case {
        name: "keep-alive-1k",
        body_bytes: 1000,
        connections: Connections::KeepAlive,
    },
    Case {
        name: "keep-alive-10k",
        body_bytes: 10_000,
        connections: Connections::KeepAlive,
    },
    Case {
        name: "close-0",
        body_bytes: 0,
        connections: Connections::PerRequest,
    },
    Case {
        name: "close-after-14-0",
        body_bytes: 0,
        connections: Connections::OfRequests(14),
    },
];
