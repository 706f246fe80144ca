//! The `stream` block: connections that are passed on as they are, whatever protocol they speak.

use std::net::IpAddr;
use std::sync::Arc;

use super::settings::{PassTlsSettings, Settings};
use super::{
    ConnectionZone, ListenAddress, ListenOptions, LogFormat, Map, PassTarget, Template, Upstream,
};
use super::{UserVariable, http};
use crate::diagnostic::Spot;

/// Everything that serves connections of TCP.
#[derive(Debug)]
pub struct Stream {
    /// Sockets to open, in the order in which their addresses first occur.
    pub listeners: Vec<StreamListener>,
    /// All servers, by [`StreamServer::index`].
    pub servers: Vec<Arc<StreamServer>>,
    /// `log_format`s.
    pub log_formats: Vec<LogFormat>,
    /// Groups of servers, by [`Upstream::index`].
    pub upstreams: Vec<Arc<Upstream>>,
    /// `limit_conn_zone`s, by [`ConnectionLimit::zone`](super::ConnectionLimit::zone).
    pub connection_zones: Vec<ConnectionZone>,
    /// The settings of all servers which may pass connections on over TLS.
    pub tls_passes: Vec<Arc<PassTlsSettings>>,
    /// `map`s.
    pub maps: Vec<Map>,
    /// Variables that the block defines, by the index in [`super::Variable::User`].
    pub user_variables: Vec<UserVariable>,
}

impl Stream {
    /// The group that an evaluated address means.
    pub fn upstream(&self, host: &[u8], port: Option<u16>) -> Option<&Arc<Upstream>> {
        http::group_of(&self.upstreams, host, port, 0)
    }
}

/// One listening socket. As in http, addresses without options of their own are served by the wildcard socket of their
/// port.
#[derive(Debug)]
pub struct StreamListener {
    /// What to bind.
    pub address: ListenAddress,
    /// Its socket options.
    pub options: ListenOptions,
    /// Where it first occurs.
    pub spot: Spot,
    /// What serves the listener's own address.
    pub host: StreamHost,
    /// Other local addresses, and what serves them.
    pub specific: Vec<(IpAddr, StreamHost)>,
}

impl StreamListener {
    /// What serves a connection, by its local address (`None` on a UNIX-domain socket).
    pub fn host_for(&self, local: Option<IpAddr>) -> &StreamHost {
        let local = local.map(|address| address.to_canonical());
        let mut specific = self.specific.iter();
        let found = specific.find(|(address, _)| Some(address.to_canonical()) == local);
        found.map_or(&self.host, |(_, host)| host)
    }
}

/// The server of an address, and how connections to it begin.
#[derive(Debug)]
pub struct StreamHost {
    pub server: Arc<StreamServer>,
    /// `proxy_protocol`: with a header of the PROXY protocol.
    pub proxy_protocol: bool,
    /// `ssl`: with a handshake of TLS, behind that header.
    pub ssl: bool,
}

/// One `server` block.
#[derive(Debug)]
pub struct StreamServer {
    /// Its index in [`Stream::servers`].
    pub index: usize,
    pub settings: Settings,
    pub handler: StreamHandler,
    /// `set`: user variables and their values, in their order, once the first bytes have been looked at.
    pub assignments: Vec<(usize, Template)>,
}

/// What becomes of a connection.
#[derive(Debug)]
pub enum StreamHandler {
    /// `proxy_pass`.
    Pass(PassTarget),
    /// `return`: the client gets this text.
    Return(Template),
}
