//! Probes of the servers of a group.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use super::{Pattern, Template, Variable};
use crate::Text;

/// One `health_check` of a location: it probes the servers of the group that the location passes requests to, with the
/// location's settings.
#[derive(Debug, Clone)]
pub struct HealthCheck {
    /// `interval=`: between two probes of a server.
    pub interval: Duration,
    /// `jitter=`: each probe comes later by a random time up to this one.
    pub jitter: Duration,
    /// `fails=`: so many failures in a row make a server unhealthy.
    pub fails: u32,
    /// `passes=`: so many successes in a row make it healthy.
    pub passes: u32,
    /// `uri=`.
    pub uri: Text,
    /// `method=`, where the location has no `proxy_method`. Not in NGINX Plus.
    pub method: Text,
    /// `match=`: what the answer must be; without it a status of 200 to 399.
    pub matching: Option<Arc<Match>>,
    /// `port=`: in the place of the server's port.
    pub port: Option<u16>,
    /// `mandatory`: a new server gets no requests before it has passed.
    pub mandatory: bool,
    /// `persistent`: but the state before a reload counts.
    pub persistent: bool,
    /// `type=`.
    pub kind: HealthCheckKind,
    /// For `type=grpc` alone.
    pub grpc: GrpcHealth,
    /// `failover=`: answers to clients that make a server unhealthy until a probe passes. Not in NGINX Plus.
    pub failovers: Vec<Failover>,
    /// `keepalive_time=`: connections of probes are kept so long; `None` opens one for each.
    pub keepalive_time: Option<Duration>,
}

/// So many answers with such a status within a time make a server unhealthy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failover {
    pub statuses: RangeInclusive<u16>,
    /// At least 1.
    pub answers: u32,
    pub period: Duration,
}

/// What a probe does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthCheckKind {
    /// A request in the protocol of the location.
    Request,
    /// `type=tcp`: a connection alone.
    Tcp,
    /// `type=grpc`: a call of gRPC's own health service.
    Grpc,
}

/// What a probe of `type=grpc` asks, and takes for an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrpcHealth {
    /// `grpc_service=`; empty for the server as a whole.
    pub service: Text,
    /// `grpc_status=`: a status of gRPC other than 0 (OK) that also passes, as that of a server without the service.
    pub accepted_status: Option<u8>,
}

/// A `match` block: all tests must hold.
#[derive(Debug, Clone)]
pub struct Match {
    /// Its name.
    pub name: Text,
    /// `status`.
    pub status: Option<StatusTest>,
    /// `header`.
    pub headers: Vec<HeaderTest>,
    /// `body`.
    pub body: Option<BodyTest>,
    /// `crc32`.
    pub checksum: Option<Checksum>,
    /// `require`: variables that must neither be empty nor `0`.
    pub require: Vec<Variable>,
}

/// `crc32`: what the checksum of the first 256 KiB of the content is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// This.
    Is(u32),
    /// `auto`: that of the first answer that the server has given.
    OfFirst,
}

impl Match {
    /// Whether it looks at content.
    pub const fn tests_content(&self) -> bool {
        self.body.is_some() || self.checksum.is_some()
    }

    /// Whether the status passes.
    pub fn admits_status(&self, status: u16) -> bool {
        self.status.as_ref().is_none_or(|test| {
            let mut ranges = test.ranges.iter();
            ranges.any(|&(first, last)| (first..=last).contains(&status)) != test.negated
        })
    }
}

/// `status [!] CODE…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusTest {
    /// `!`: any other status.
    pub negated: bool,
    /// First and last of each range.
    pub ranges: Vec<(u16, u16)>,
}

/// `header …`.
#[derive(Debug, Clone)]
pub struct HeaderTest {
    /// Name of the field.
    pub name: Text,
    /// What must hold.
    pub condition: HeaderCondition,
}

/// What must hold of a field.
#[derive(Debug, Clone)]
pub enum HeaderCondition {
    /// It is there.
    Present,
    /// `!`: it is not.
    Absent,
    /// `=`: it has this value.
    Equal(Template),
    /// `!=`: it does not have this value; it may be absent.
    Unequal(Template),
    /// `~`: the expression matches.
    Matches(Arc<Pattern>),
    /// `!~`: it does not; the field may be absent.
    Differs(Arc<Pattern>),
}

/// `body ~ EXPRESSION` and `body !~ EXPRESSION`, on the first 256 KiB.
#[derive(Debug, Clone)]
pub struct BodyTest {
    /// The expression.
    pub pattern: Arc<Pattern>,
    /// `!~`.
    pub negated: bool,
}
