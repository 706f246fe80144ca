//! `millstream load`: our own command line and its reports.
//!
//! The walk: `options` → `preparation` → the platform's run, with a `recorder` per thread and `live` as its watch →
//! `results` → `outcome` with its `verdict` → `summary`, `json`, `hlog`, `csv`, `svg`.

/// The properties of the output streams.
pub mod terminal;

/// Whether all answers were the same.
pub mod answers;
/// The durations measured of a request.
pub mod measures;
/// One thread's records.
pub mod recorder;
/// The results of a run.
pub mod results;
/// Interval by interval.
pub mod series;

/// Merges several results.
pub mod merge;
/// A run in several processes.
pub mod part;
/// The highest rate under an objective.
pub mod search;
/// Processes times connections.
pub mod sweep;
/// The verdict on a run.
pub mod verdict;

/// From arguments to an exit status.
mod command;
/// The time series as a table.
mod csv;
/// The output files.
mod files;
/// Latencies as an HdrHistogram log.
mod hlog;
/// Everything as JSON.
pub mod json;
/// Progress during a run.
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
/// Requirements on a run.
pub mod requirements;
/// Single runs, several processes, searches, sweeps.
mod runs;
/// Fixed results for tests.
#[cfg(test)]
mod sample_results;
/// The summary for people.
mod summary;
/// A chart of the latencies.
mod svg;
/// Figures as people read them.
pub mod units;

pub use command::{STATUS_FAILED, main};
