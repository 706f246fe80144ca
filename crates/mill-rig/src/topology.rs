//! What lies between client and server: made before a trial, taken away after the run.

use crate::host::Host;

/// A topology that stands: where each side lives, and how clients reach the server.
#[derive(Clone, Debug, PartialEq)]
pub struct Ground {
    pub server: Host,
    /// One for each client host, at least one.
    pub clients: Vec<Host>,
    /// The server's address as clients see it.
    pub address: String,
    /// The server's interface towards the clients (`lo`, `ms0`), as named where the server lives.
    pub server_interface: String,
    /// The client's interface, of the first client host.
    pub client_interface: String,
    /// CPUs of each side.
    pub server_cpus: Vec<u32>,
    pub client_cpus: Vec<u32>,
    /// What the link lets through each way, in 10⁶ bits/s, if it is limited.
    pub link_mbit: Option<f64>,
}

use crate::journal::Journal;
use mill_lab::recipe::Topology;

/// Why a topology can't stand here: absent parts say what they need, in the words of the report's cell.
#[derive(Debug, thiserror::Error)]
pub enum TopologyError {
    /// "needs 4 cores", "not on this machine: needs ssh to ada@far".
    #[error("{0}")]
    Absent(String),
    #[error("{0}")]
    Failed(String),
}

/// Makes it. Names of namespaces carry the lab's process id, so that two labs don't meet.
pub fn raise(topology: &Topology, journal: &mut Journal) -> Result<Ground, TopologyError> {
    let _ = (topology, journal);
    Err(TopologyError::Failed(String::from(
        "topologies are not made yet",
    )))
}
