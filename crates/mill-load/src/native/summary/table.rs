//! The table of latencies by percentile.

use super::{Style, wrap};
use crate::native::outcome::Outcome;
use crate::native::units;
use core::time::Duration;
use mill_metrics::Histogram;
use std::fmt::Write;

/// A row's name and what it shows.
type Row<'a> = (&'static str, &'a Histogram);

pub(super) fn emit(text: &mut String, outcome: &Outcome<'_>, style: Style) {
    let measures = &outcome.results.measures;
    if measures.latency.is_empty() && measures.connect.is_empty() {
        return;
    }
    let open = outcome.is_open_loop();
    let mut rows: Vec<Row<'_>> = vec![
        ("connect", &measures.connect),
        ("TLS", &measures.tls),
        ("first byte", &measures.first_byte),
    ];
    if !measures.tls.is_empty() {
        rows.push(("TTFB", &measures.ttfb));
    }
    if open {
        rows.push(("raw", measures.raw()));
        rows.push(("latency", &measures.latency));
    } else {
        rows.push(("total", &measures.latency));
    }
    header(text, style);
    for (name, histogram) in rows {
        if !histogram.is_empty() {
            row(text, name, histogram, style);
        }
    }
    text.push('\n');
    wrap(text, "  ", &meaning(outcome));
    text.push('\n');
}

fn header(text: &mut String, style: Style) {
    let mut line = format!("  {:<10}", "");
    for name in ["p50", "p90", "p99", "p99.9", "max", "mean"] {
        let _ = write!(line, "{name:>11}");
    }
    let _ = writeln!(text, "{}", style.paint("2", &line));
}

fn row(text: &mut String, name: &str, histogram: &Histogram, style: Style) {
    let mut line = String::new();
    let percentiles = [50.0, 90.0, 99.0, 99.9].map(|percent| histogram.percentile(percent));
    let figures = percentiles
        .into_iter()
        .chain([histogram.max(), histogram.mean()]);
    for figure in figures {
        let _ = write!(line, "{:>11}", units::duration(figure));
    }
    let name = format!("{name:<10}");
    let name = if matches!(name.trim_end(), "total" | "latency") {
        style.heading(&name)
    } else {
        name
    };
    let _ = writeln!(text, "  {name}{line}");
}

/// The meaning of the rows, and in an open loop of the difference between the two.
fn meaning(outcome: &Outcome<'_>) -> String {
    let measures = &outcome.results.measures;
    if !outcome.is_open_loop() {
        return String::from(
            "total is service time, not response time: a closed loop asks less often while the server is slow, \
             so it hides waiting. --rate shows what users would wait.",
        );
    }
    let mut sentence = String::from(
        "latency counts from when each request was due, raw from when it could be started.",
    );
    let percentile = |histogram: &Histogram| histogram.percentile(99.0);
    let latency = percentile(&measures.latency);
    let gap = latency.saturating_sub(percentile(measures.raw()));
    let tally = &outcome.results.tally;
    let waited = tally.waited_1ms + tally.never_started;
    if gap <= GAP_MIN.max(latency / 10) {
        sentence.push_str(" They are close: requests were started on time.");
    } else if waited * 2 >= tally.late_1ms {
        let _ = write!(
            sentence,
            " The gap at p99, {}, is time in which all connections were busy with earlier requests; \
             raw alone does not show it.",
            units::duration(gap)
        );
    } else {
        let _ = write!(
            sentence,
            " The gap at p99, {}, is this client's: connections were idle, but it did not keep time.",
            units::duration(gap)
        );
    }
    sentence
}

/// The cost of a wake-up: a smaller gap is not significant.
const GAP_MIN: Duration = Duration::from_micros(200);
