//! `millstream load`: our own command line and everything behind it.

/// What stands behind the output.
pub mod terminal;

/// Whether all answers were the same.
pub mod answers;
/// What is measured of a request.
pub mod measures;
/// One thread's memory.
pub mod recorder;
/// What a run brought.
pub mod results;
/// Interval by interval.
pub mod series;

/// What a run has shown, in one word.
pub mod verdict;
/// The highest rate under an objective.
pub mod search;
/// Several results as one.
pub mod merge;
/// Processes times connections.
pub mod sweep;
/// A run in several processes.
pub mod part;
