//! Many clients on one link, each with an interface of its own: the cookbook's 32.

use super::link::{CLIENTS_MAX, INTERFACE, Links, address};
use super::veth::SERVER;
use super::{Testbed, TopologyError, cpus};
use crate::host::Host;
use crate::journal::Journal;
use mill_lab::recipe::Topology;

pub(super) fn raise(topology: &Topology, journal: &mut Journal) -> Result<Testbed, TopologyError> {
    let split = cpus::split(&topology.cpus, &cpus::here()?)?;
    let count = topology.clients.unwrap_or(1).max(1);
    if count > CLIENTS_MAX {
        return Err(TopologyError::Failed(format!(
            "{count} client hosts: at most {CLIENTS_MAX}"
        )));
    }
    if topology.interface.is_some() && topology.rate_gbit.is_some() {
        return Err(TopologyError::Failed(String::from(
            "a given interface has its own rate: leave out rate_gbit, or interface",
        )));
    }
    let mut links = Links::new(journal);
    let server = links.namespace("s")?;
    let parent = match &topology.interface {
        None => stand_in(topology, &server, &mut links)?,
        Some(interface) => {
            // Interfaces of one parent reach each other in bridge mode only, and never the parent itself, so the
            // server is one of them.
            let parent = Parent::Given(interface.clone());
            macvlan(&parent, &server, topology.mtu, &mut links)?;
            parent
        }
    };
    links.up(&server, SERVER)?;
    let mut clients = Vec::new();
    for number in 0..count {
        let client = links.namespace(&format!("c{number}"))?;
        macvlan(&parent, &client, topology.mtu, &mut links)?;
        links.up(&client, SERVER + 1 + number)?;
        clients.push(Host::Namespace(client));
    }
    Ok(Testbed {
        server: Host::Namespace(server),
        clients,
        address: address(SERVER),
        client_addresses: (0..count)
            .map(|number| address(SERVER + 1 + number))
            .collect(),
        server_interface: String::from(INTERFACE),
        client_interface: String::from(INTERFACE),
        server_cpus: split.server,
        client_cpus: split.client,
        link_mbit: topology.rate_gbit.map(|rate| rate * 1000.0),
    })
}

/// The parent of the macvlan interfaces.
enum Parent {
    /// The end of a veth pair in a namespace of the link's own; the machine's namespace has no part of it.
    StandIn(String),
    /// An interface of the machine.
    Given(String),
}

fn stand_in(
    topology: &Topology,
    server: &str,
    links: &mut Links<'_>,
) -> Result<Parent, TopologyError> {
    let link = links.namespace("l")?;
    links.pair([server, &link], topology.queues, topology.mtu)?;
    links.make(&["ip", "-n", &link, "link", "set", INTERFACE, "up"])?;
    if let Some(rate) = topology.rate_gbit {
        links.limit(server, rate)?;
        links.limit(&link, rate)?;
    }
    Ok(Parent::StandIn(link))
}

/// Makes one on the parent, in a namespace.
fn macvlan(
    parent: &Parent,
    namespace: &str,
    mtu: Option<u32>,
    links: &mut Links<'_>,
) -> Result<(), TopologyError> {
    let mtu = mtu.map(|bytes| bytes.to_string());
    let mut argv = match parent {
        Parent::StandIn(link) => vec!["ip", "-n", link, "link", "add", "link", INTERFACE],
        Parent::Given(interface) => vec!["ip", "link", "add", "link", interface],
    };
    argv.extend(["name", INTERFACE, "netns", namespace]);
    if let Some(mtu) = &mtu {
        argv.extend(["mtu", mtu]);
    }
    argv.extend(["type", "macvlan", "mode", "bridge"]);
    links.make(&argv)
}
