//! Processes whose connections are the stack's, as they show themselves to other processes.
//!
//! Each has a memory file with its figures as text (sheet.rs), which is found among its descriptors in /proc (search.rs). So
//! there is nothing to remove when a process is killed, no process has to answer, and the keeper has no part in it.

use std::net::SocketAddr;

/// From a value to text, and back.
pub(crate) mod text;

/// The memory file.
pub mod sheet;

/// Finding them.
pub mod search;

/// What they have on the kernel's sockets beside it.
pub mod kernel_connections;

/// What a process shows of its stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accelerated {
    /// In the process's own namespace.
    pub process: u32,
    pub program: String,
    /// The same for all processes of one `millstream run`.
    pub run: u64,
    /// `EF_CLUSTER_NAME`, if there is one.
    pub cluster: Option<String>,
    pub interface: String,
    /// Whether new connections over the interface come to this process.
    pub has_interface: bool,
    /// When the stack was made, in nanoseconds of the monotonic clock.
    pub made_at_ns: u64,
    /// Options of `--stack` in force.
    pub options: Vec<(String, String)>,
    /// What was counted.
    pub figures: Vec<(String, u64)>,
    pub listeners: Vec<Listener>,
    /// The first ones, at most [`CONNECTIONS_MAX`].
    pub connections: Vec<Connection>,
    pub connections_total: usize,
}

/// A listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listener {
    pub address: SocketAddr,
    pub backlog: u32,
    /// Connections that wait to be accepted.
    pub waiting: u32,
    /// Handshakes under way.
    pub half_open: u32,
}

/// A connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// As ss(8) calls it.
    pub state: String,
    pub local: SocketAddr,
    pub remote: SocketAddr,
    /// Bytes that the program has not read, and those that the peer has not acknowledged.
    pub unread: u64,
    pub queued: u64,
}

impl Accelerated {
    /// A count of this name; 0 if it is not there.
    pub fn figure(&self, name: &str) -> u64 {
        let found = self.figures.iter().find(|(own, _)| own == name);
        found.map_or(0, |(_, value)| *value)
    }

    /// The name of the processes of its `millstream run` together.
    pub fn cluster_name(&self) -> &str {
        self.cluster.as_deref().unwrap_or(&self.program)
    }
}

/// Connections of one process that are shown.
pub const CONNECTIONS_MAX: usize = 1024;

/// Its listeners that are shown.
pub const LISTENERS_MAX: usize = 256;
