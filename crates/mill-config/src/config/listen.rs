//! `listen`: sockets, their options, and the virtual hosts behind each address.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::VirtualHosts;
use crate::Text;
use crate::diagnostic::Spot;

/// One listening socket to be opened.
///
/// As in nginx, addresses without options of their own are served by the wildcard socket of
/// their port when there is one: then `specific` lists them, and the connection's local address
/// chooses.
#[derive(Debug)]
pub struct Listener {
    /// What to bind.
    pub address: ListenAddress,
    /// Its socket options.
    pub options: ListenOptions,
    /// Where it first occurs; for a server without `listen`, where its block begins.
    pub spot: Spot,
    /// The servers of the listener's own address.
    pub hosts: VirtualHosts,
    /// Other local addresses with servers of their own.
    pub specific: Vec<(IpAddr, VirtualHosts)>,
}

impl Listener {
    /// The virtual hosts of a connection by its local address (`None` on a UNIX-domain socket).
    pub fn hosts_for(&self, local: Option<IpAddr>) -> &VirtualHosts {
        let Some(local) = local.map(|address| address.to_canonical()) else {
            return &self.hosts;
        };
        let specific = self
            .specific
            .iter()
            .find(|(address, _)| address.to_canonical() == local);
        specific.map_or(&self.hosts, |(_, hosts)| hosts)
    }
}

/// An address to listen on. `*` is 0.0.0.0.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ListenAddress {
    /// An IPv4 or IPv6 address and port.
    Inet(SocketAddr),
    /// `unix:PATH`: an absolute path.
    Unix(Text),
}

impl std::fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Inet(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Socket options of a `listen` directive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenOptions {
    /// `backlog=`: connections that wait to be accepted.
    pub backlog: u32,
    /// `rcvbuf=`: SO_RCVBUF in bytes.
    pub receive_buffer_bytes: Option<u64>,
    /// `sndbuf=`: SO_SNDBUF in bytes.
    pub send_buffer_bytes: Option<u64>,
    /// `fastopen=`: TCP_FASTOPEN, length of its queue.
    pub fastopen: Option<u32>,
    /// `deferred`: TCP_DEFER_ACCEPT.
    pub deferred: bool,
    /// `reuseport`: a socket per worker.
    pub reuseport: bool,
    /// `ipv6only=`: IPV6_V6ONLY; on unless written otherwise.
    pub ipv6only: bool,
    /// `so_keepalive=`.
    pub so_keepalive: SocketKeepalive,
    /// `proxy_protocol`: connections begin with a header of the PROXY protocol, for all servers of this address; see
    /// [`VirtualHosts::proxy_protocol`].
    pub proxy_protocol: bool,
    /// `ssl`: connections begin with a handshake of TLS, for all servers of this address; see [`VirtualHosts::ssl`].
    pub ssl: bool,
    /// `http2`: as the directive `http2`, for all servers of this address.
    pub http2: bool,
    /// `bind`, or an option that needs a socket of its own.
    pub bind: bool,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self {
            backlog: DEFAULT_BACKLOG,
            receive_buffer_bytes: None,
            send_buffer_bytes: None,
            fastopen: None,
            deferred: false,
            reuseport: false,
            ipv6only: true,
            so_keepalive: SocketKeepalive::System,
            proxy_protocol: false,
            ssl: false,
            http2: false,
            bind: false,
        }
    }
}

/// Length of the accept queue where nothing is written (nginx on Linux).
const DEFAULT_BACKLOG: u32 = 511;

/// `so_keepalive=on|off|IDLE:INTERVAL:COUNT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketKeepalive {
    /// Not configured: the system decides.
    System,
    /// SO_KEEPALIVE off.
    Off,
    /// SO_KEEPALIVE on, with the configured parameters of the probes.
    On(KeepaliveProbes),
}

/// TCP keep-alive parameters; `None` leaves the system's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeepaliveProbes {
    /// TCP_KEEPIDLE.
    pub idle: Option<Duration>,
    /// TCP_KEEPINTVL.
    pub interval: Option<Duration>,
    /// TCP_KEEPCNT.
    pub count: Option<u32>,
}
