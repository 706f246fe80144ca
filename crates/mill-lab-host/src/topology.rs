//! The links between client and server: made before a trial, removed after the run.
//!
//! ```text
//! loopback   client ── lo ── server                       the machine's own namespace
//! veth       msPID-c [ms0] ══ tbf both ways ══ [ms0] msPID-s
//! macvlan    msPID-c0 [ms0]┐
//!            msPID-c1 [ms0]┼─ macvlan ── msPID-l [ms0] ══ [ms0] msPID-s
//!            msPID-c… [ms0]┘            (or on a given interface, the server a macvlan beside them)
//! ssh        client@there ── their network ── server@there
//! vm         client guest or msPID-c [ms0] ── bridge ── [ms0] server guest
//! ```

use crate::host::Host;
use crate::interrupt::Interrupt;
use crate::journal::Journal;
use mill_lab::recipe::{Side, Topology, TopologyKind};

/// The division of CPUs between the sides.
mod cpus;
/// Interfaces and namespaces by ip(8) and tc(8).
mod link;
/// Many clients on one link.
mod macvlan;
/// Machines over ssh(1).
mod remote;
/// Two namespaces.
mod veth;
/// Virtual machines.
mod vm;

pub use cpus::parse_list as parse_cpus;

/// A topology in place: each side's host, and how clients reach the server.
#[derive(Clone, Debug, PartialEq)]
pub struct Testbed {
    pub server: Host,
    /// One for each client host, at least one.
    pub clients: Vec<Host>,
    /// The server's address as clients see it.
    pub address: String,
    /// The addresses of `clients`; empty where the lab does not assign them.
    pub client_addresses: Vec<String>,
    /// The server's interface towards the clients (`lo`, `ms0`), as named where the server lives.
    pub server_interface: String,
    /// The client's interface, of the first client host.
    pub client_interface: String,
    /// CPUs of each side.
    pub server_cpus: Vec<u32>,
    pub client_cpus: Vec<u32>,
    /// The link's limit in each direction, in 10⁶ bits/s, if there is one.
    pub link_mbit: Option<f64>,
}

/// Why a topology cannot be made here: the text of the report's cell names what is missing.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// "needs 4 cores", "not on this machine: needs ssh to ada@far".
    #[error("{0}")]
    Absent(String),
    #[error("{0}")]
    Failed(String),
}

/// Makes it. Names of namespaces carry the lab's process id, so that two labs do not collide. What was made before a
/// failure is in the journal, and removed with it. Guests take seconds to begin, which an interrupt ends.
pub fn raise(
    topology: &Topology,
    journal: &mut Journal,
    interrupt: &Interrupt,
) -> Result<Testbed, TopologyError> {
    match topology.kind {
        TopologyKind::Loopback => loopback(topology),
        TopologyKind::Veth => {
            needs_root()?;
            veth::raise(topology, journal)
        }
        TopologyKind::Macvlan => {
            needs_root()?;
            macvlan::raise(topology, journal)
        }
        TopologyKind::Ssh => remote::raise(topology),
        TopologyKind::Vm => vm::raise(topology, journal, interrupt),
    }
}

fn loopback(topology: &Topology) -> Result<Testbed, TopologyError> {
    let split = cpus::split(&topology.cpus, &cpus::here()?)?;
    Ok(Testbed::loopback(split.server, split.client))
}

impl Testbed {
    /// Where the systems of a side run; those of the client's side at its first host.
    pub fn host(&self, side: Side) -> &Host {
        match side {
            Side::Server => &self.server,
            Side::Client => self.clients.first().unwrap_or(&self.server),
        }
    }

    pub fn cpus(&self, side: Side) -> &[u32] {
        match side {
            Side::Server => &self.server_cpus,
            Side::Client => &self.client_cpus,
        }
    }

    /// The address at which the server reaches systems of a side.
    pub fn address_of(&self, side: Side) -> &str {
        match side {
            Side::Server => &self.address,
            // Without addresses of its own the client is where the server is.
            Side::Client => self.client_addresses.first().unwrap_or(&self.address),
        }
    }

    /// Both sides on this machine, in its own namespace.
    pub fn loopback(server_cpus: Vec<u32>, client_cpus: Vec<u32>) -> Self {
        Self {
            server: Host::Local,
            clients: vec![Host::Local],
            address: String::from("127.0.0.1"),
            client_addresses: Vec::new(),
            server_interface: String::from("lo"),
            client_interface: String::from("lo"),
            server_cpus,
            client_cpus,
            link_mbit: None,
        }
    }
}

fn needs_root() -> Result<(), TopologyError> {
    if mill_sys::account::is_super_user() {
        return Ok(());
    }
    Err(TopologyError::Absent(String::from(
        "needs root (CAP_NET_ADMIN)",
    )))
}
