//! The `events` block.

use std::time::Duration;

use super::Network;

/// How connections are accepted and how many there may be.
#[derive(Debug, Clone)]
pub struct Events {
    /// `worker_connections`: connections per worker thread, listeners included.
    pub worker_connections: u32,
    /// `multi_accept`: accept all waiting connections, not one per turn.
    pub multi_accept: bool,
    /// `accept_mutex`: parsed; workers have listeners of their own or share one, none locks.
    pub accept_mutex: bool,
    /// `accept_mutex_delay`: parsed, without effect.
    pub accept_mutex_delay: Duration,
    /// `ssl_handshakes_per_turn`: those which a worker answers before it looks at its other connections again.
    pub handshakes_per_turn: u32,
    /// `debug_connection`: clients whose connections are logged at level debug.
    pub debug_connection: Vec<Network>,
}

impl Default for Events {
    fn default() -> Self {
        Self {
            worker_connections: DEFAULT_WORKER_CONNECTIONS,
            multi_accept: false,
            accept_mutex: false,
            accept_mutex_delay: Duration::from_millis(500),
            handshakes_per_turn: DEFAULT_HANDSHAKES_PER_TURN,
            debug_connection: Vec::new(),
        }
    }
}

/// Connections per worker (nginx's documentation, worker_connections).
const DEFAULT_WORKER_CONNECTIONS: u32 = 512;

const DEFAULT_HANDSHAKES_PER_TURN: u32 = 1;
