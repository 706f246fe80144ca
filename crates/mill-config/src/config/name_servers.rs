//! Where names are looked up while the server runs.

use std::net::SocketAddr;
use std::time::Duration;

use crate::Text;

/// `resolver`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameServers {
    /// Asked in turn; never empty.
    pub servers: Vec<SocketAddr>,
    /// `valid=`: how long an answer holds, whatever its TTL.
    pub valid: Option<Duration>,
    /// Whether A records are asked for (`ipv4=`).
    pub ipv4: bool,
    /// Whether AAAA records are asked for (`ipv6=`).
    pub ipv6: bool,
    /// `status_zone=`: its name in the API.
    pub status_zone: Option<Text>,
}
