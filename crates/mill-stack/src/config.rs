//! The settings that a host is created with.

use crate::limits::Limits;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use mill_tcp::config::Config;

/// Addresses, routes, settings and secrets of a host.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Its addresses; each one's prefix is on the link.
    pub addresses: Vec<Prefix>,
    /// Routes through gateways.
    pub routes: Vec<Route>,
    /// What resolves the Ethernet addresses of neighbours.
    pub neighbors: Neighboring,
    pub tcp: Config,
    pub limits: Limits,
    /// Ports for active opens that do not ask for one, as `ip_local_port_range`.
    pub ephemeral_ports: core::ops::RangeInclusive<u16>,
    /// Key of the hashes that others must not guess: flow table, initial sequence numbers, cookies. From the
    /// system's randomness; in a simulation from its seed.
    pub secret: [u8; 16],
    /// The same for all hosts that a machine makes until it boots anew; the timestamps' offsets are derived from it.
    /// A port that the next process uses again then has timestamps that continue the former ones (RFC 7323 5.4), and
    /// the peer, which has the former connection in TIME-WAIT, opens the new one at once (RFC 6191). `None` derives
    /// them from the secret.
    pub boot_secret: Option<[u8; 16]>,
    /// Key of Fast Open's cookies, as Linux's `tcp_fastopen_key`: hosts that share an address and a key, Linux among
    /// them, take each other's cookies. `None` makes one of the secret.
    pub fast_open_key: Option<[u8; 16]>,
}

/// What resolves the Ethernet addresses of neighbours, and answers requests for ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Neighboring {
    /// The host itself, by ARP and neighbour discovery: it has the interface and its addresses to itself.
    #[default]
    Own,
    /// The kernel, whose interface and addresses they are. The host sends neither ARP nor neighbour discovery: it
    /// lists the neighbours that it needs (`take_wanted`) and gets their addresses (`set_neighbor`). Only its
    /// configured routes are used, also to the link. A reply is sent to where the request came from.
    Kernel,
}

/// An address and the length of its prefix in bits; `10.77.0.2/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    pub address: IpAddr,
    pub len: u8,
}

/// Where packets to a prefix are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    pub target: Prefix,
    /// A router on the link; the address of zeros if the targets themselves are on it.
    pub gateway: IpAddr,
}

impl Route {
    /// Targets that are on the link, and in no address' prefix.
    pub const fn on_link(target: Prefix) -> Self {
        let gateway = match target.address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        Self { target, gateway }
    }

    pub const fn is_on_link(&self) -> bool {
        self.gateway.is_unspecified()
    }
}

impl HostConfig {
    /// A host with one address or more and defaults for everything else.
    pub fn new(addresses: Vec<Prefix>, secret: [u8; 16]) -> Self {
        Self {
            addresses,
            routes: Vec::new(),
            neighbors: Neighboring::default(),
            tcp: Config::default(),
            limits: Limits::default(),
            ephemeral_ports: 32768..=60999,
            secret,
            boot_secret: None,
            fast_open_key: None,
        }
    }
}
