//! wrk 4.1 and 4.2, with the extensions of sephe's branch.

/// The numbers behind its columns.
pub mod statistics;
