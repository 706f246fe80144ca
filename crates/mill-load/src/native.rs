//! `millstream load`: our own command line and everything behind it.
//!
//! The walk: `options` → `preparation` → the ground's run, with a `recorder` per thread and `live` looking on →
//! `results` → `outcome` with its `verdict` → `summary`, `json`, `hlog`, `csv`, `svg`.

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

/// Several results as one.
pub mod merge;
/// A run in several processes.
pub mod part;
/// The highest rate under an objective.
pub mod search;
/// Processes times connections.
pub mod sweep;
/// What a run has shown, in one word.
pub mod verdict;

/// From arguments to an exit status.
mod command;
/// The time series as a table.
mod csv;
/// The files that were asked for.
mod files;
/// Latencies as an HdrHistogram log.
mod hlog;
/// Everything as JSON.
pub mod json;
/// What is shown while a run goes on.
mod live;
/// Requests as bytes.
mod message;
/// The command line.
pub mod options;
/// Options, results and verdict together.
pub mod outcome;
/// From options to a plan.
pub mod preparation;
/// Requests of a file.
mod replay;
/// What a run must keep.
pub mod requirements;
/// The ways in which runs are carried out.
mod runs;
/// Results that tests know.
#[cfg(test)]
mod sample_results;
/// What people read.
mod summary;
/// A picture of the latencies.
mod svg;
/// Figures as people read them.
pub mod units;

pub use command::{STATUS_FAILED, main};
