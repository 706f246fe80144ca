//! The part of the lab that needs no machine: what an experiment is, what its figures mean, and how they are
//! reported.
//!
//! The path of an experiment, top to bottom. mill-lab-host comes between `plan` and `record`: it carries trials out.
//!
//! ```text
//! recipe    TOML to Recipe: inheritance, sizes, overrides; errors by line
//! plan      Recipe to trials in an order: points, blocks, A/A
//!           (mill-lab-host: topology, tuning, systems, clients, monitors, probes)
//! output    what wrk, ab, h2load and our own generator print, to metrics
//! record    what a run folder holds
//! limit     which side was the limit of a trial
//! store     run folders and their index
//! analysis  records to Findings: comparisons with intervals, tables, curves, charts
//! lint      the mistakes that printed benchmarks make
//! report    Findings to HTML, Markdown and CSV
//! desk      the commands that need no machine
//! ```
//!
//! Invariants: nothing here starts a process, changes the system or reads a clock. A figure in a report comes from a
//! record; published figures are separate and appear only as ratios.
#![forbid(unsafe_code)]

/// Records to findings.
pub mod analysis;
/// The load that a client's command line requests.
pub mod command;
/// Commands that need no machine.
pub mod desk;
/// The content of a report, independent of its format.
pub mod findings;
/// Which side was the limit.
pub mod limit;
/// The mistakes that benchmarks make.
pub mod lint;
/// Names, units and directions of figures.
pub mod metric;
/// What tools print.
pub mod output;
/// What tests look for.
#[cfg(test)]
mod parts;
/// Trials in an order.
pub mod plan;
/// Experiments as data.
pub mod recipe;
/// The stored records of a run.
pub mod record;
/// Findings to pages.
pub mod report;
/// Medians, intervals, tests, curves.
pub mod statistics;
/// Run folders and their index.
pub mod store;
