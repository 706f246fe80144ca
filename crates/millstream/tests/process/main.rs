//! The binary as processes: signals, reloads, upgrades and faults, from outside.
//!
//! Each test runs its own servers in a directory of its own, on ports that were free a moment before, and ends its
//! processes by number, also when it fails. As root, the worker process runs as www-data.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "a failed test shows the error log")]

/// A directory, a configuration, and the processes started with it.
mod site;

/// Requests, one connection each or several on one.
mod client;

/// Limits against attacks.
mod frang;

/// Access logs in a database.
mod clickhouse;

/// Marks of netfilter.
mod packet_marks;

/// HUP, USR1, QUIT, TERM, WINCH, and `-s`.
mod signals;

/// USR2: replacing the binary.
mod upgrade;

/// Killed processes, taken ports, bad configurations.
mod faults;

/// Reloads and an upgrade, with eight clients that lose nothing.
mod load;

/// Sockets from one configuration to the next.
mod listeners;

/// Limits of requests by a key.
mod limits;

/// A cache of several workers, and its status.
mod caching;

/// Killed processes with a cache on disk.
mod cache_kills;

/// Output and exit codes.
mod command_line;

/// `millstream ab https://…` beside Debian's ab.
mod ab_tls;

/// `master_process off`.
mod single;

/// A directory without a configuration.
mod directory;

/// Logs that cannot be written to.
mod logs;

/// Names that are resolved while the server runs.
mod names;

/// What a DNS server says.
#[expect(dead_code, reason = "mill-upstream's tests use all of it")]
#[path = "../../../mill-upstream/tests/it/zone.rs"]
mod zone;

/// The servers of groups, kept in a file.
mod state;

/// What is counted of servers and locations.
mod zones;

/// Requests and tunnels to servers while the processes change.
mod proxied;

/// Certificates from an authority.
mod acme;

/// `listen … ssl`, with curl and OpenSSL as clients.
mod client_certificates;
mod evaluated_certificates;
mod grpc;
mod grpc_health;
mod handshakes;
mod http2;
mod http2_directives;
mod http2_smuggling;
mod proxy_http2;
mod proxy_protocol;
mod proxy_tls;
mod stapling;
/// Connections that are passed on as they are.
mod stream;
mod tls;
/// What clients that break rules are told.
mod tls_alerts;

/// Files on a disk that is slow, or does not answer.
mod slow_disk;
