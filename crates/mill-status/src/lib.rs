//! The status of a running server: as values, as text for people, as JSON for programs.
//!
//! Place in the walk: the process in charge (the master, or the only process) answers a `Request` with a `Status`,
//! which has the figures that its workers have published; each worker adds a `Part` with tables that only it can make.
//! The client merges them, finds workers that hang, and shows the whole.
//!
//! Invariants: no I/O, no clock. Names of fields are the names in JSON, which do not change once published
//! (docs/status.md); additions are new fields.
#![forbid(unsafe_code)]

/// The status document.
pub mod document;
/// The client's request.
pub mod request;
/// The tables of one worker.
pub mod tables;
/// Which workers hang.
pub mod verdict;

/// As text for people.
pub mod text;

pub use document::{Figures, Status, Worker};
pub use request::{Request, TableName};
pub use tables::Part;
pub use verdict::State;
