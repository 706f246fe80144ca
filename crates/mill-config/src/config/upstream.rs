//! Groups of servers that requests are passed to.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::{NameServers, Sticky, Template};
use crate::Text;

/// An `upstream` block, or the one host of a `proxy_pass` without such a block.
#[derive(Debug)]
pub struct Upstream {
    /// Its index in [`super::Http::upstreams`].
    pub index: usize,
    /// The block's name; the host of an implicit group, in brackets if it is an IPv6 address, the path if it is a socket.
    pub name: Text,
    /// The port of an implicit group; 0 if it is a block.
    pub port: u16,
    /// It is a block.
    pub explicit: bool,
    /// In the order of the text; never empty unless there is a `state` file.
    pub servers: Vec<UpstreamServer>,
    /// Which server takes a request.
    pub balancing: Balancing,
    /// Connections that are kept.
    pub keepalive: UpstreamKeepalive,
    /// `zone`.
    pub zone: Option<UpstreamZone>,
    /// `queue`.
    pub queue: Option<UpstreamQueue>,
    /// `sticky`.
    pub sticky: Option<Sticky>,
    /// `state`: the absolute path of the file that keeps the servers.
    pub state: Option<Text>,
    /// `resolver`, here or in http; present if a server has `resolve`.
    pub name_servers: Option<Arc<NameServers>>,
    /// `resolver_timeout`.
    pub resolver_timeout: Duration,
}

impl Upstream {
    /// A host that variables have named, at the addresses that it has now. As in nginx its failures do not count: the
    /// next request tries it again.
    pub fn evaluated(host: &[u8], port: u16, addresses: Vec<UpstreamAddress>) -> Self {
        let target = UpstreamTarget::Addresses(addresses);
        let server = UpstreamServer {
            max_fails: 0,
            ..UpstreamServer::new(Text::from(host), target)
        };
        Self {
            index: usize::MAX,
            name: Text::from(host),
            port,
            explicit: false,
            servers: vec![server],
            balancing: Balancing::RoundRobin,
            keepalive: UpstreamKeepalive::default(),
            zone: None,
            queue: None,
            sticky: None,
            state: None,
            name_servers: None,
            resolver_timeout: Duration::ZERO,
        }
    }
}

/// One `server` of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamServer {
    /// The address as it is written.
    pub name: Text,
    /// Where it is.
    pub target: UpstreamTarget,
    /// `weight=`, at least 1.
    pub weight: u32,
    /// `max_conns=`: most connections at a time; 0 is no limit.
    pub max_conns: u32,
    /// `max_fails=`: after so many failures within `fail_timeout` it gets no requests for that time; 0 is never.
    pub max_fails: u32,
    /// `fail_timeout=`.
    pub fail_timeout: Duration,
    /// `backup`: only used when all others fail.
    pub backup: bool,
    /// `down`.
    pub down: bool,
    /// `drain`: only requests of sessions that are bound to it.
    pub drain: bool,
    /// `slow_start=`: how long its weight grows after it recovered; zero is at once.
    pub slow_start: Duration,
    /// `route=`: its name in sticky sessions.
    pub route: Option<Text>,
    /// `service=`: the name of SRV records.
    pub service: Option<Text>,
    /// `resolve`: its name is resolved again while running.
    pub resolve: bool,
}

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpstreamTarget {
    /// Known since the configuration was read; several if a name has several. Each is a peer of its own.
    Addresses(Vec<UpstreamAddress>),
    /// Resolved while running.
    Name {
        /// The name.
        host: Text,
        /// The port, unless SRV records tell it.
        port: u16,
    },
}

/// An address to connect to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum UpstreamAddress {
    /// IPv4 or IPv6, and a port.
    Ip(SocketAddr),
    /// The path of a UNIX-domain socket.
    Unix(Text),
}

impl std::fmt::Display for UpstreamAddress {
    /// As in `$upstream_addr`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The method that chooses a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Balancing {
    /// Weighted round robin, the default.
    RoundRobin,
    /// `least_conn`.
    LeastConn,
    /// `ip_hash`.
    IpHash,
    /// `hash KEY [consistent]`.
    Hash {
        /// Evaluated for each request.
        key: Template,
        /// By points on a ring (ketama): few keys move when servers change.
        consistent: bool,
    },
    /// `random …`.
    Random(RandomChoice),
    /// `least_time header|last_byte [inflight]`.
    LeastTime {
        /// Which time is compared.
        time: ResponseTime,
        /// Requests that are not answered yet count too.
        inflight: bool,
    },
}

/// How `random` chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RandomChoice {
    /// One server by chance.
    One,
    /// `two [least_conn]`: of two the one with fewer connections.
    TwoLeastConn,
    /// `two least_time[=header|=last_byte]`: of two the faster one.
    TwoLeastTime(ResponseTime),
}

/// A time of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseTime {
    /// Until its head was there.
    Header,
    /// Until all of it was there.
    LastByte,
}

/// Connections to a group that are kept for further requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamKeepalive {
    /// `keepalive`: most idle connections of a worker; `None` if it is not written, 0 keeps none.
    pub connections: Option<u32>,
    /// `keepalive N local`: a connection only serves requests of the location that opened it.
    pub local: bool,
    /// `keepalive_requests`: most requests of a connection.
    pub requests: u64,
    /// `keepalive_time`: longest life of a connection.
    pub time: Duration,
    /// `keepalive_timeout`: longest idle time.
    pub timeout: Duration,
}

impl Default for UpstreamKeepalive {
    fn default() -> Self {
        Self {
            connections: None,
            local: false,
            requests: 1000,
            time: Duration::from_secs(60 * 60),
            timeout: Duration::from_secs(60),
        }
    }
}

/// `zone NAME [SIZE]`: what the group's state is called. Workers share it with or without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamZone {
    /// Its name.
    pub name: Text,
    /// Its size, if it is written here: checked, but memory is taken as needed.
    pub size_bytes: Option<u64>,
}

/// `queue NUMBER [timeout=TIME]`: requests wait while no server can take them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamQueue {
    /// Most requests that wait; others get 502.
    pub number: u32,
    /// Longest wait; then 502.
    pub timeout: Duration,
}
