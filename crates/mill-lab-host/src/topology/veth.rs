//! Two namespaces, joined by a veth pair.

use super::link::{INTERFACE, Links, address};
use super::{Testbed, TopologyError, cpus};
use crate::host::Host;
use crate::journal::Journal;
use mill_lab::recipe::Topology;

pub(super) fn raise(topology: &Topology, journal: &mut Journal) -> Result<Testbed, TopologyError> {
    // First, because it makes nothing: a point that needs more cores leaves no traces.
    let split = cpus::split(&topology.cpus, &cpus::here()?)?;
    let mut links = Links::new(journal);
    let server = links.namespace("s")?;
    let client = links.namespace("c")?;
    links.pair([&server, &client], topology.queues, topology.mtu)?;
    links.up(&server, SERVER)?;
    links.up(&client, SERVER + 1)?;
    if let Some(rate) = topology.rate_gbit {
        links.limit(&server, rate)?;
        links.limit(&client, rate)?;
    }
    Ok(Testbed {
        server: Host::Namespace(server),
        clients: vec![Host::Namespace(client)],
        address: address(SERVER),
        client_addresses: vec![address(SERVER + 1)],
        server_interface: String::from(INTERFACE),
        client_interface: String::from(INTERFACE),
        server_cpus: split.server,
        client_cpus: split.client,
        link_mbit: topology.rate_gbit.map(|rate| rate * 1000.0),
    })
}

/// The server's place in the network.
pub(super) const SERVER: u32 = 0;
