//! The load generators as processes, beside the tools with the same command lines.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

/// Beside Debian's ab.
mod ab;
/// The client commands of published experiments.
mod commands;
/// Ctrl-C.
mod interrupt;
/// The names by which generators are called.
mod names;
/// Too few descriptors, a closed output, nothing to connect to.
mod scarcity;
/// Beside Debian's wrk.
mod wrk;

/// Checks that a report has this part.
#[track_caller]
fn assert_contains(report: &str, part: &str) {
    assert!(report.contains(part), "no {part:?} in {report}");
}
