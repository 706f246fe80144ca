//! Why a request went to a server, in the words of the configuration: for the log at level debug.

use mill_config::config::Upstream;
use mill_config::config::upstream::{Balancing, RandomChoice};
use std::fmt;

/// The method by which a group has chosen.
pub(super) struct Method<'a> {
    pub(super) upstream: &'a Upstream,
    /// The request's session is bound to the server.
    pub(super) is_bound: bool,
}

impl fmt::Display for Method<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match &self.upstream.balancing {
            _ if self.is_bound => "its session",
            Balancing::RoundRobin => "round robin",
            Balancing::LeastConn => "least_conn",
            Balancing::IpHash => "ip_hash",
            Balancing::Hash {
                consistent: true, ..
            } => "hash consistent",
            Balancing::Hash { .. } => "hash",
            Balancing::Random(RandomChoice::One) => "random",
            Balancing::Random(RandomChoice::TwoLeastConn) => "random two least_conn",
            Balancing::Random(RandomChoice::TwoLeastTime(_)) => "random two least_time",
            Balancing::LeastTime { .. } => "least_time",
        })
    }
}
