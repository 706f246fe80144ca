//! Whole servers and clients over our own stack in simulated networks: a seed is a world.
//!
//! Read on in this order: [`plan::Plan`] is everything that a seed decides; [`run::run`] builds that world, lets it end,
//! and says what was wrong. The same stack without engines, two hosts on a cable, is [`bare`]; the matrix of throughput
//! by loss, delay and buffer is measured with it. Worlds of another kind, with rules of their own, are in [`proxied`] and [`cached`].
//!
//! What must hold in every world:
//! - every byte of every transfer that completed is the right one, and of every other a prefix is;
//! - every transfer completes, unless its plan is to end early or its host vanishes;
//! - when all have left, nothing is left of them: no stream, slot, timer, buffer, flow or frame on any host;
//! - what a host sends is right by an independent reading (`mill_sim::packet`), and by that of another TCP ([`plain_tcp`]).
#![forbid(unsafe_code)]

/// What a seed decides.
pub mod plan;

/// The bytes that are carried.
pub mod content;

/// Another TCP than ours.
pub mod plain_tcp;

/// What clients do, and what they find.
pub mod talk;

/// The servers of a world: ours, and two that are only bytes.
pub mod servers;

/// A world from its beginning to its end.
pub mod run;

/// Clients, a server and origins: whose turn it is.
mod parties;

/// Worlds with a proxy.
pub mod proxied;

/// Worlds with a cache.
pub mod cached;

/// Many worlds, and the names of those that fail.
pub mod seeds;

/// Two hosts on a cable, without engines.
pub mod bare;

/// Throughput by loss, delay and buffer.
pub mod matrix;

/// Ten paths on which the stack is compared with the kernel.
pub mod standard_paths;

use mill_bypass::BypassEngine;
use mill_sim::engine::SimEngine;
use mill_sim::packet::sim_link::SimLink;

/// The engine of every host of a world.
pub type WorldEngine = BypassEngine<SimLink, SimEngine>;
