//! The servers behind this one, as a proxy needs them: over any engine, without a socket of its own.
//!
//! A group is shared by all workers: what counts for the machine (connections, failures, states) is in its peers, as
//! atomics. A worker has a selector and a pool of idle connections for each group; no other worker touches them.
//!
//! Invariants:
//! - I/O is done through the engine's traits alone; what a message says is decided by values without any.
//! - Whatever a server sends, memory is bounded: by names, by requests that wait, by bytes.
#![forbid(unsafe_code)]

/// A group of servers, and its peers as they change.
pub mod group;

/// One server at one address.
pub mod peer;

/// The choice of a server for a request.
pub mod select;

/// Which server a session is bound to, as its answers taught.
pub mod sessions;

/// The digest that names servers in cookies.
mod md5;

/// Idle connections of one worker to one group.
pub mod pool;

/// Health checks: what follows from the answers to probes.
pub mod probe;

/// The stub resolver: names of hosts to addresses.
pub mod resolver;

/// Parameters as in CGI, which FastCGI, uwsgi and SCGI carry.
pub mod params;

/// FastCGI: requests, and answers in records.
pub mod fastcgi;

/// uwsgi: requests.
pub mod uwsgi;

/// SCGI: requests.
pub mod scgi;

/// memcached: lookups.
pub mod memcached;

/// The PROXY protocol: a header before a connection's own bytes.
pub mod proxy_protocol;
