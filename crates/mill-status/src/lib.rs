//! What is told of a running server: as values, as text for people, as JSON for programs.
//!
//! Place in the walk: the process in charge answers a `Request` with a `Status`, in which is what its workers have shown
//! on their boards; each worker adds a `Part` with tables that it alone can make. Whoever asked puts them together,
//! judges who hangs, and shows the whole.
//!
//! Invariants: no I/O, no clock. Names of fields are the names in JSON, which stay as they are once published
//! (docs/status.md); what is new comes as new fields.
#![forbid(unsafe_code)]

/// What is told.
pub mod document;
/// What is asked for.
pub mod request;
/// The tables of one worker.
pub mod tables;
/// Who hangs.
pub mod verdict;

/// As text for people.
pub mod text;

pub use document::{Figures, Status, Worker};
pub use request::{Request, TableName};
pub use tables::Part;
pub use verdict::State;
