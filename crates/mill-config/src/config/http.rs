//! The `http` block.

use crate::config::acme::AcmeIssuer;
use crate::config::frang::FrangLimits;
use crate::config::settings::PassTlsSettings;
use std::sync::Arc;

use super::{
    CachePath, ConnectionZone, Listener, Location, LogFormat, Map, PassProtocol, RequestZone,
    Server, Upstream,
};
use crate::Text;

/// Everything that serves HTTP.
#[derive(Debug)]
pub struct Http {
    /// Sockets to open, in the order in which their addresses first occur.
    pub listeners: Vec<Listener>,
    /// All servers, by [`Server::index`].
    pub servers: Vec<Arc<Server>>,
    /// `log_format`s; `combined` is the first.
    pub log_formats: Vec<LogFormat>,
    /// Groups of servers, by [`Upstream::index`]: `upstream` blocks, then hosts without a block.
    pub upstreams: Vec<Arc<Upstream>>,
    /// Names of `status_zone`s, of servers and of locations.
    pub status_zones: Vec<Text>,
    /// Locations with [`Location::health_checks`].
    pub probing: Vec<ProbingLocation>,
    /// The settings of all locations which may pass requests on over TLS.
    pub tls_passes: Vec<Arc<PassTlsSettings>>,
    /// Authorities for certificates.
    pub acme_issuers: Vec<Arc<AcmeIssuer>>,
    /// Caches, by [`CachePath::index`].
    pub cache_zones: Vec<Arc<CachePath>>,
    /// `limit_req_zone`s, by [`RequestLimit::zone`](super::RequestLimit::zone).
    pub request_zones: Vec<RequestZone>,
    /// `limit_conn_zone`s, by [`ConnectionLimit::zone`](super::ConnectionLimit::zone).
    pub connection_zones: Vec<ConnectionZone>,
    /// Limits of clients: what `frang` of http says.
    pub frang: FrangLimits,
    /// `map`s.
    pub maps: Vec<Map>,
    /// Variables that the configuration defines, by the index in [`super::Variable::User`].
    pub user_variables: Vec<UserVariable>,
}

/// A location that probes the servers of its group, and the server that it belongs to.
#[derive(Debug, Clone)]
pub struct ProbingLocation {
    pub server: Arc<Server>,
    pub location: Arc<Location>,
}

impl Http {
    /// The group that an evaluated address means: by its name without case, and for an implicit group by its port.
    /// `port` is `None` if none is written, then `default_port` is the one of the protocol, or 0.
    pub fn upstream(
        &self,
        host: &[u8],
        port: Option<u16>,
        default_port: u16,
    ) -> Option<&Arc<Upstream>> {
        group_of(&self.upstreams, host, port, default_port)
    }

    /// The cache that an evaluated `…_cache` means.
    pub fn cache_zone(&self, protocol: PassProtocol, name: &[u8]) -> Option<&Arc<CachePath>> {
        let mut zones = self.cache_zones.iter();
        zones.find(|cache| cache.protocol == protocol && *cache.zone == *name)
    }
}

pub(super) fn group_of<'g>(
    groups: &'g [Arc<Upstream>],
    host: &[u8],
    port: Option<u16>,
    default_port: u16,
) -> Option<&'g Arc<Upstream>> {
    groups.iter().find(|group| {
        let is_port = match group.port {
            0 => port.is_none(),
            known => known == port.unwrap_or(default_port),
        };
        is_port && group.name.eq_ignore_ascii_case(host)
    })
}

/// A variable defined by `set`, `map` or a named capture. It lives as long as its request, and is empty until it is
/// set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserVariable {
    /// Its name, lower-cased, without `$`.
    pub name: Text,
    /// Index into [`Http::maps`] if a `map` defines it: the value unless another one was assigned.
    pub map: Option<usize>,
}
