//! The lab without a machine: what an experiment is, what its figures mean, and what is said of them.
//!
//! The way of an experiment, top to bottom. mill-lab-host stands between `plan` and `record`: it carries trials out.
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
//! record; published figures are kept apart and appear only as ratios.
#![forbid(unsafe_code)]

/// Experiments as data.
pub mod recipe;

/// Trials in an order.
pub mod plan;

/// What a client was asked to do, by its command line.
mod command;

/// What tools print.
pub mod output;

/// Names, units and directions of figures.
pub mod metric;

/// What is kept of a run.
pub mod record;

/// Which side was the limit.
pub mod limit;

/// Run folders and their index.
pub mod store;

/// Medians, intervals, tests, curves.
pub mod statistics;

/// Records to findings.
pub mod analysis;

/// What a report says, before it has a form.
pub mod findings;

/// The mistakes that benchmarks make.
pub mod lint;

/// Findings to pages.
pub mod report;

/// Commands that need no machine.
pub mod desk;
