//! Findings of runs that were made up: nothing here was measured.

mod busy;
mod made_up;
mod pictures;
mod runs;
mod tables;
mod targets;
mod verdicts;
