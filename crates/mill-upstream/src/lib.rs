//! The servers behind this one, as a proxy needs them: over any engine, without a socket of its own.
//!
//! Invariants:
//! - I/O is done through the engine's traits alone; what a message says is decided by values without any.
//! - Whatever a server sends, memory is bounded: by names, by requests that wait, by bytes.
#![forbid(unsafe_code)]

/// The stub resolver: names of hosts to addresses.
pub mod resolver;
