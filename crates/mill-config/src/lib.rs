//! nginx's configuration language: text in, a typed [`Config`] and diagnostics out.
//!
//! Text comes through a `Source`, so that the same code reads files in the master, replays
//! what the master read in the worker process, and reads literals in tests. Nothing here does
//! I/O, reads a clock or runs a server.
//!
//! Invariants: parsing never panics, whatever the bytes are; a [`Config`] that is returned is
//! valid and fully merged; a directive is applied, refused, or noted as having no effect, never
//! silently ignored.
#![forbid(unsafe_code)]

/// What a configuration says, typed and merged.
pub mod config;
/// Bytes of a configuration.
pub mod text;

pub use config::Config;
pub use text::Text;
