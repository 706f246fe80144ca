//! Worlds with a proxy: simulated clients, our server that passes their requests on, and origins behind it, all on bad
//! networks; origins that answer wrongly, late or not at all.
//!
//! What must hold in every such world:
//! - every byte of content that reaches a client or an origin is the right one;
//! - an answer that a client takes for whole is whole: a cut one shows that it is cut;
//! - a request that may not be repeated reaches the origins once at most;
//! - what an origin is sent are requests that clients have made, and nothing else;
//! - where nothing goes wrong, every request is answered;
//! - when all have left, nothing is left of them at the proxy.

/// What a seed decides.
pub mod plan;

/// A message as it arrives: its head, and its content by its framing.
pub(crate) mod incoming;

/// What a server behind the proxy does, and what it sees.
mod origin;

/// TLS between clients and the proxy.
pub mod secured;

/// What a client does, and what it finds.
mod client;

/// A world from its beginning to its end.
pub mod run;
