//! A configuration, typed, validated and merged: the product of this crate.
//!
//! [`Config`] is immutable and `Send + Sync`; share it behind an `Arc`. A request keeps the `Arc` it began with, so a
//! reload never changes an answer half-way.
//!
//! Invariants: every index in it (log formats, user variables, maps, servers) is in range of its table; every path is
//! already joined to its prefix unless it has variables; all inheritance is resolved: nothing looks at an outer level
//! later.

pub mod access;
/// Certificates from authorities.
pub mod acme;
/// Bytes that a part of a head may have.
pub mod byte_set;
/// Caches of answers.
pub mod cache_path;
/// What clients show before they are served.
pub mod challenge;
pub mod events;
pub mod frang;
pub mod geo;
pub mod header;
pub mod health_check;
pub mod http;
pub mod limit_conn;
pub mod limit_req;
pub mod listen;
pub mod location;
pub mod location_tree;
pub mod log;
pub mod main;
pub mod map;
pub mod mime;
pub mod name_servers;
pub mod network_stack;
pub mod pass;
pub mod pattern;
pub mod rewrite;
pub mod server;
pub mod server_names;
pub mod settings;
pub mod sockets;
pub mod sticky;
pub mod stream;
pub mod temp_path;
pub mod template;
pub mod upstream;
pub mod variable;

pub use access::{AccessRule, Network};
pub use cache_path::{CachePace, CachePath};
pub use events::Events;
pub use geo::GeoTable;
pub use header::{AddedHeader, Expires};
pub use health_check::{Failover, HealthCheck, HealthCheckKind, Match};
pub use http::{Http, ProbingLocation, UserVariable};
pub use limit_conn::{ConnectionLimit, ConnectionZone};
pub use limit_req::{RequestLimit, RequestZone};
pub use listen::{KeepaliveProbes, ListenAddress, ListenOptions, Listener, SocketKeepalive};
pub use location::{Api, TryFallback};
pub use location::{LimitExcept, Location, LocationName, MethodSet, TryCandidate, TryFiles};
pub use location_tree::LocationTree;
pub use log::LogPath;
pub use log::{AccessLog, ErrorLog, ErrorLogTarget, LogBuffer, LogEscape, LogFormat, LogLevel};
pub use main::{CpuAffinity, CpuMask, EnvironmentVariable, Main, ThreadPool, User, WorkerCount};
pub use map::{Map, MapLookup, MapValue};
pub use mime::MimeTypes;
pub use name_servers::NameServers;
pub use network_stack::NetworkStack;
pub use pass::{Pass, PassProtocol, PassTarget};
pub use pattern::{Captures, Pattern};
pub use rewrite::{Condition, FileTest, Instruction, RewriteFlag};
pub use server::{Server, ServerName};
pub use server_names::{ServerNames, VirtualHosts};
pub use settings::Settings;
pub use sockets::ListeningSocket;
pub use sticky::{Sticky, StickyCookie, StickyExpires, StickyLearn};
pub use stream::{Stream, StreamHandler, StreamHost, StreamListener, StreamServer};
pub use temp_path::TempPath;
pub use template::{Part, Template};
pub use upstream::{Balancing, RandomChoice, ResponseTime, Upstream, UpstreamAddress};
pub use upstream::{
    UpstreamKeepalive, UpstreamQueue, UpstreamServer, UpstreamTarget, UpstreamZone,
};
pub use variable::{ClientCertificatePart, Variable};

/// One whole configuration.
#[derive(Debug)]
pub struct Config {
    /// Process-wide settings: user, workers, pid file, error log.
    pub main: Main,
    /// The `events` block.
    pub events: Events,
    /// The `http` block; `None` when the file has none.
    pub http: Option<Http>,
    /// The `stream` block.
    pub stream: Option<Stream>,
}
