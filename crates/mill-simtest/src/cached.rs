//! Worlds with a cache: clients, our server with several workers that share its caches, and origins whose answers change, fail
//! and end in the middle.
//!
//! The connections are mill-sim's own, without frames: what a network does to our stack is the matter of the other worlds, what
//! it does to a cache is delay, jitter and small windows. `plan::CachedPlan` is everything that a seed decides; the
//! `ledger` has all that origins have ever sent; `judge` compares with it what clients have got.
//!
//! What must hold in every such world:
//! - content is that of one answer of an origin, for this target, these fields of the request and this user, in this version;
//! - what is private, not to be stored, or guarded by `Authorization` reaches no other user, as far as the rules say so;
//! - nothing is older than its lifetime allows, or what the configuration and the answer say of stale ones;
//! - after a purge, and after a change that invalidates, nothing is served that is older than it;
//! - an answer that a client takes for whole is whole, also if the disk below the cache is full, slow or has changed what it holds;
//! - origins are asked again only for what is not fresh, and once at a time where requests wait for one another;
//! - when all have left, nothing is left of them at the workers.

/// What a seed decides.
pub mod plan;

/// All that origins have sent and were asked.
mod ledger;

/// What a server behind the cache does.
mod origin;

/// What a client does, and what it gets.
mod client;

/// Whether what clients got may be.
mod judge;

/// Whether origins were asked as seldom as they may be.
mod economy;

/// What befalls the disk.
mod trouble;

/// A world from its beginning to its end.
pub mod run;
