//! The client's request.

use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// One question to a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Tables that workers are to make; an empty list only asks them whether they still run.
    pub tables: Vec<TableName>,
    /// Rows of each table, of each worker.
    pub limit: u32,
    /// Which connections.
    #[serde(default)]
    pub filter: Filter,
    /// Frames to be written to the file whose descriptor comes with the question.
    #[serde(default)]
    pub capture: Option<Capture>,
}

/// A table that workers make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TableName {
    Connections,
    Listeners,
    Neighbors,
    Routes,
    Rings,
    Timers,
    Upstreams,
    Zones,
    Caches,
    Blocks,
    Certificates,
}

/// Which connections, or frames; everything that is given has to match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// Either side's port.
    pub port: Option<u16>,
    /// Either side's address.
    pub address: Option<IpAddr>,
    /// As `ss` calls it: `established`, `time-wait`, …
    pub state: Option<String>,
}

/// The limits of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    pub ms: u64,
    pub frames: u64,
    pub bytes: u64,
}

impl Filter {
    /// Whether a connection between these two matches.
    pub fn has(&self, local: SocketAddr, remote: SocketAddr) -> bool {
        let both = [local, remote];
        let port = self
            .port
            .is_none_or(|port| both.iter().any(|end| end.port() == port));
        let address = self.address.is_none_or(|address| {
            let address = address.to_canonical();
            both.iter().any(|end| end.ip().to_canonical() == address)
        });
        port && address
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_looks_at_both_ends() {
        let local: SocketAddr = "10.0.0.1:80".parse().unwrap();
        let remote: SocketAddr = "[::ffff:10.0.0.2]:4000".parse().unwrap();
        let check = |filter: Filter, expected| {
            assert_eq!(filter.has(local, remote), expected, "{filter:?}");
        };
        let port = |port| Filter {
            port: Some(port),
            ..Default::default()
        };
        check(Filter::default(), true);
        check(port(80), true);
        check(port(4000), true);
        check(port(81), false);
        let address = |address: &str| Filter {
            address: Some(address.parse().unwrap()),
            ..port(80)
        };
        check(address("10.0.0.2"), true);
        check(address("10.0.0.1"), true);
        check(address("10.0.0.3"), false);
    }
}
