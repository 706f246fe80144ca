//! Findings to draw in tests, made up in the likeness of two recipes; no figure here was measured.

mod pictures;

pub(super) use pictures::{bars, crowded, scaling};

use crate::findings::{Counts, Findings};

/// One core, two allocators: few points, much detail.
pub(super) fn jemalloc() -> Findings {
    let text = include_str!("example/jemalloc.toml");
    let mut findings: Findings = toml::from_str(text).expect("the example is one");
    findings.charts = pictures::jemalloc();
    findings
}

/// Many workers and sizes, columns that are not here, and a run that was interrupted.
pub(super) fn cookbook() -> Findings {
    let mut findings = jemalloc();
    findings.run.recipe = String::from("onload-cookbook");
    findings.run.title = String::from("nginx on the kernel and on Onload, by workers");
    findings.question =
        String::from("How do new connections a second scale with workers on each stack?");
    findings.origin = Some(String::from("Seed 001, rows O1 and O2"));
    findings.interrupted = true;
    findings.counts = Counts {
        measured: 31,
        disturbed: 2,
        disturbed_used: 0,
        absent: 24,
        failed: 1,
        missing: 14,
    };
    let text = include_str!("example/stacks.toml");
    findings.tables = vec![toml::from_str(text).expect("the table is one")];
    findings.charts = vec![scaling()];
    findings
}
