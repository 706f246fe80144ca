//! The zones of a configuration. What is counted goes on over a reload as long as name, key and size are the same.

use super::connections::ConnectionTable;
use super::requests::RequestTable;
use mill_config::Text;
use mill_config::config::{Config, ConnectionZone, RequestZone};
use std::sync::Arc;

/// All of them, by the numbers that limits have.
#[derive(Debug, Default)]
pub struct LimitZones {
    pub requests: Vec<LimitedRequests>,
    pub connections: Vec<LimitedConnections>,
    /// Those of `stream`.
    pub sessions: Vec<LimitedConnections>,
}

/// A `limit_req_zone`.
pub type LimitedRequests = LimitedZone<RequestTable>;

/// A `limit_conn_zone`.
pub type LimitedConnections = LimitedZone<ConnectionTable>;

/// A zone: its directive, and the table in which it counts.
#[derive(Debug)]
pub struct LimitedZone<T: ZoneTable> {
    pub config: T::Directive,
    pub(crate) table: Arc<T>,
}

/// The table of a zone.
pub trait ZoneTable {
    type Directive: ZoneDirective;
    /// What was counted.
    type Figures: ZoneFigures;

    /// An empty one; the size is that of the directive.
    fn new(zone_bytes: u64) -> Self;

    /// Adds up what its parts have counted; takes each lock once.
    fn figures(&self) -> Self::Figures;

    /// Counts from zero again; what its keys owe, and what is under way, stays.
    fn reset(&self);
}

/// The directive of a zone.
pub trait ZoneDirective: Clone {
    /// Name, key as it is written, and size. Of two configurations, zones that have the same are one.
    fn identity(&self) -> (&Text, &Text, u64);
}

/// What a zone has counted.
pub trait ZoneFigures {
    /// Keys that it has.
    fn keys(&self) -> u64;

    /// Requests or sessions, by what became of them.
    fn by_outcome(&self) -> Vec<(&'static str, u64)>;
}

impl LimitZones {
    pub(crate) fn following(previous: Option<&Self>, config: &Config) -> Self {
        let none = Self::default();
        let previous = previous.unwrap_or(&none);
        let (http, stream) = (&config.http, &config.stream);
        let requests = http.iter().flat_map(|http| &http.request_zones);
        let connections = http.iter().flat_map(|http| &http.connection_zones);
        let sessions = stream.iter().flat_map(|stream| &stream.connection_zones);
        Self {
            requests: requests
                .map(|zone| LimitedZone::following(&previous.requests, zone))
                .collect(),
            connections: connections
                .map(|zone| LimitedZone::following(&previous.connections, zone))
                .collect(),
            sessions: sessions
                .map(|zone| LimitedZone::following(&previous.sessions, zone))
                .collect(),
        }
    }
}

impl<T: ZoneTable> LimitedZone<T> {
    fn following(previous: &[Self], config: &T::Directive) -> Self {
        let (_, _, bytes) = config.identity();
        let mut previous = previous.iter();
        let table = match previous.find(|known| known.config.identity() == config.identity()) {
            Some(same) => Arc::clone(&same.table),
            None => Arc::new(T::new(bytes)),
        };
        let config = config.clone();
        Self { config, table }
    }

    pub(crate) fn name(&self) -> &Text {
        self.config.identity().0
    }

    /// What was counted; takes each of its locks once.
    pub fn figures(&self) -> T::Figures {
        self.table.figures()
    }

    pub(crate) fn reset(&self) {
        self.table.reset();
    }
}

impl ZoneDirective for RequestZone {
    fn identity(&self) -> (&Text, &Text, u64) {
        (&self.name, &self.key_text, self.bytes)
    }
}

impl ZoneDirective for ConnectionZone {
    fn identity(&self) -> (&Text, &Text, u64) {
        (&self.name, &self.key_text, self.bytes)
    }
}
