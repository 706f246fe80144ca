//! The whole server over the simulated world: no socket, no sleep, no clock.
#![forbid(unsafe_code)]

/// A whole server in a simulated world.
mod server;

/// Answers as a client reads them.
mod answer;

/// How long a connection stays open, and what closes it.
mod keep_alive;

/// Many requests at once, and requests in pieces.
mod pipelining;

/// The header of the PROXY protocol before requests.
mod proxy_header;

/// The client as a proxy in front tells it.
mod real_ip;

/// Clients that send slowly.
mod slow_to_ask;

/// Clients that read slowly.
mod slow_to_read;

/// Clients that disappear.
mod resets;

/// Requests with content.
mod request_content;

/// A handler that reads content and answers in steps.
mod exchange;

/// Limits against attacks.
mod frang;

/// What clients show before they are served.
mod challenge;

/// A site in Tempesta FW's language and in nginx's.
mod both_languages;

/// Refused heads, and how the connection ends then.
mod refusals;

/// Files that change while they are sent.
mod changing_files;

/// What the open-file cache and the hot answers save, and when their entries end.
mod caches;

/// `$realpath_root`: when it is evaluated.
mod real_root;

/// Requests that are passed on to other servers.
mod proxy;

/// Connections that are passed on as they are.
mod stream;

/// Limits of requests by a key.
mod limited;

/// Attackers beside a usual client.
mod attacks;

/// What is counted of servers and locations.
mod zones;

/// A hot answer equals the answer of the whole way.
mod hot_or_not;

/// HEAD, conditions, ranges, gzip.
mod semantics;

/// A server that is not the default one of its socket.
mod second_server;

/// A new configuration while the server runs.
mod reload;

/// Draining a worker.
mod drain;

/// Limits of the worker and of the engine.
mod limits;

/// Files that take their time.
mod slow_files;

/// Access and error log lines.
mod logs;

/// Two workers.
mod workers;

/// Hundreds of random worlds.
mod soak;

/// Bytes per connection.
mod sizes;

/// What a DNS server says.
#[expect(
    dead_code,
    clippy::unwrap_used,
    reason = "mill-upstream's tests use all of it"
)]
#[path = "../../../mill-upstream/tests/it/zone.rs"]
mod zone;
