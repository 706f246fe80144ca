//! nginx's configuration language: text in, a typed [`Config`] and diagnostics out.
//!
//! Text comes through a [`Source`], so that the same code reads files in the master, replays
//! what the master read in the worker process, and reads literals in tests. Nothing here does
//! I/O, reads a clock or runs a server.
//!
//! Invariants: parsing never panics, whatever the bytes are; a [`Config`] that is returned is
//! valid and fully merged; a directive is applied, refused, or noted as having no effect, never
//! silently ignored.
#![forbid(unsafe_code)]

/// What one parse read, to be replayed elsewhere.
pub mod bundle;
/// What a configuration says, typed and merged.
pub mod config;
/// Errors, warnings and notices.
pub mod diagnostic;
/// What a directive is.
pub mod directive;
/// Tables of all directives.
pub mod directives;
/// Patterns of `include`.
pub mod glob;
/// The way in: [`load()`].
pub mod load;
/// Where text comes from.
pub mod source;
/// Bytes of a configuration.
pub mod text;
/// Numbers, sizes, times.
pub mod value;

mod lexer;
mod resolve;
mod suggest;

pub use bundle::{Bundle, Recording};
pub use config::Config;
pub use diagnostic::Diagnostic;
pub use load::{Failure, Loaded, Options, Paths, load};
pub use source::{Memory, Source, SourceError};
pub use text::Text;
