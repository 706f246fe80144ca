//! The zones of a configuration. What is counted goes on over a reload as long as name, key and size are the same.

use super::connections::{ConnectionFigures, ConnectionTable};
use super::requests::{RequestFigures, RequestTable};
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
#[derive(Debug)]
pub struct LimitedRequests {
    pub config: RequestZone,
    pub(crate) table: Arc<RequestTable>,
}

/// A `limit_conn_zone`.
#[derive(Debug)]
pub struct LimitedConnections {
    pub config: ConnectionZone,
    pub(crate) table: Arc<ConnectionTable>,
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
                .map(|zone| LimitedRequests::following(&previous.requests, zone))
                .collect(),
            connections: connections
                .map(|zone| LimitedConnections::following(&previous.connections, zone))
                .collect(),
            sessions: sessions
                .map(|zone| LimitedConnections::following(&previous.sessions, zone))
                .collect(),
        }
    }
}

impl LimitedRequests {
    fn following(previous: &[Self], config: &RequestZone) -> Self {
        let is_same = |known: &&Self| {
            (
                &known.config.name,
                &known.config.key_text,
                known.config.bytes,
            ) == (&config.name, &config.key_text, config.bytes)
        };
        let table = match previous.iter().find(is_same) {
            Some(same) => Arc::clone(&same.table),
            None => Arc::new(RequestTable::new(config.bytes)),
        };
        let config = config.clone();
        Self { config, table }
    }

    /// What was counted; takes each of its locks once.
    pub fn figures(&self) -> RequestFigures {
        self.table.figures()
    }

    pub(crate) fn reset(&self) {
        self.table.reset();
    }
}

impl LimitedConnections {
    fn following(previous: &[Self], config: &ConnectionZone) -> Self {
        let is_same = |known: &&Self| {
            (
                &known.config.name,
                &known.config.key_text,
                known.config.bytes,
            ) == (&config.name, &config.key_text, config.bytes)
        };
        let table = match previous.iter().find(is_same) {
            Some(same) => Arc::clone(&same.table),
            None => Arc::new(ConnectionTable::new(config.bytes)),
        };
        let config = config.clone();
        Self { config, table }
    }

    /// What was counted; takes each of its locks once.
    pub fn figures(&self) -> ConnectionFigures {
        self.table.figures()
    }

    pub(crate) fn reset(&self) {
        self.table.reset();
    }
}
