//! Limits of all tables and queues.

/// The limits of one host. The effect of each is documented beside it, and counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections, established or opening. Beyond: SYNs are dropped, `connect` fails.
    pub connections_max: u32,
    /// Handshakes of listeners that wait for their last acknowledgement. Beyond: SYN cookies.
    pub half_open_max: u32,
    /// Connections in TIME-WAIT. Beyond: the oldest is forgotten.
    pub time_wait_max: u32,
    /// Bytes received and not read yet, all connections together. Beyond three fourths: windows stop growing, data out of
    /// order is dropped. Beyond all of it: data in order, too.
    pub receive_bytes_max: u64,
    /// Bytes of incomplete datagrams. Beyond: the oldest is dropped.
    pub fragment_bytes_max: u32,
    /// Neighbours known or being asked for. Beyond: the one not used for longest is forgotten.
    pub neighbors_max: u32,
    /// Frames or flows that wait for one neighbour's address.
    pub neighbor_queue_max: u32,
    /// Targets of which it is remembered that their path carries less than the link; twice, since datagrams have theirs.
    /// Beyond: the oldest is forgotten, and found again if it matters.
    pub paths_max: u32,
    /// Resets for what belongs to no connection, echo replies and ICMP errors a second, each.
    pub answers_per_second: u32,
    /// Servers whose Fast Open cookies are kept. Beyond: the one not heard of for longest is forgotten.
    pub fast_open_peers_max: u32,
    /// Frames taken from the link in one call of `receive`.
    pub burst_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 1 << 20,
            half_open_max: 4096,
            time_wait_max: 1 << 18,
            receive_bytes_max: 1 << 30,
            fragment_bytes_max: 4 << 20,
            neighbors_max: 1024,
            neighbor_queue_max: 128,
            paths_max: 1024,
            answers_per_second: 1000,
            fast_open_peers_max: 1024,
            burst_max: 64,
        }
    }
}
