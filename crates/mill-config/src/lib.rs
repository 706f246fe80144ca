//! nginx's configuration language: text in, a typed [`Config`] and diagnostics out. Tempesta FW's is translated to it.
//!
//! Text comes through a [`Source`], so that the same code reads files in the master, replays
//! what the master read in the worker process, and reads literals in tests. Nothing here does
//! I/O, reads a clock or runs a server.
//!
//! Invariants: parsing never panics, whatever the bytes are; a [`Config`] that is returned is
//! valid and fully merged; a directive is applied, refused, or noted as having no effect, never
//! silently ignored.
//!
//! ```
//! use mill_config::{Memory, Options, load};
//!
//! let source = Memory::new().with("/etc/nginx/nginx.conf", "events {} http { lisen 80; }");
//! let failure = load(&source, &Options::default()).unwrap_err();
//! assert_eq!(
//!     failure.error.line(),
//!     "[emerg] unknown directive \"lisen\" in /etc/nginx/nginx.conf:1"
//! );
//! assert_eq!(failure.error.help.as_deref(), Some("did you mean \"listen\"?"));
//! ```
#![forbid(unsafe_code)]

/// The entry point: [`load()`], its options and results.
pub mod load;

/// Where text comes from.
pub mod source;

/// The text of one parse, to be replayed elsewhere.
pub mod bundle;

/// Patterns of `include`.
pub mod glob;

/// Words, blocks, comments.
pub mod lexer;

/// The description of a directive.
pub mod directive;

/// Tables of all directives, one file per feature.
pub mod directives;

/// Statements to drafts, drafts to the configuration.
mod resolve;

/// Tempesta FW's language.
pub mod tempesta;

/// A configuration, typed and merged.
pub mod config;

/// Errors, warnings and notices.
pub mod diagnostic;

/// OpenSSL's language for sets of ciphers.
pub mod cipher_list;

/// "Did you mean".
pub mod suggest;

/// Numbers, sizes, times.
pub mod value;

/// Addresses of upstreams.
pub mod url;

/// Bytes of a configuration.
pub mod text;

pub use bundle::{Bundle, Recording};
pub use config::Config;
pub use diagnostic::Diagnostic;
pub use load::{Failure, Loaded, Options, Paths, load};
pub use source::{Memory, Source, SourceError};
pub use text::Text;
