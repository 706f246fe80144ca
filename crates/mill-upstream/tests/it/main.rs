//! Upstream groups and the resolver over the simulated world.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

/// What a DNS server of the tests says.
mod zone;

/// Messages of DNS.
mod messages;

/// A world with a resolver and the servers that it asks.
mod dns_world;

/// The resolver over servers that answer, fail, lie or are silent.
mod resolving;

/// Names that are followed while they change.
mod following;

/// Groups with servers whose names stand for other addresses from time to time.
mod members;
