//! The document of `millstream load --json`, schema 1; docs/load.md describes it.

use super::figures::percentile_name;
use super::quantity::Quantity;
use super::{OutputError, Printed};
use mill_metrics::Histogram;
use serde_json::Value;

/// Parses one document. Without `results` (if the histograms were cut out) the summary's percentiles are used.
pub(super) fn parse(tool: &'static str, text: &str) -> Result<Printed, OutputError> {
    let error = |problem| OutputError { tool, problem };
    let document: Value = serde_json::from_str(text.trim()).map_err(|problem| {
        error(format!(
            "no whole JSON document ({problem}); run it with `--json -`"
        ))
    })?;
    match number(&document, "/schema") {
        Some(SCHEMA) => {}
        Some(other) => {
            return Err(error(format!(
                "schema {other} is not known, only {SCHEMA} is"
            )));
        }
        None => return Err(error(String::from("no field \"schema\""))),
    }
    let need = |path: &str| {
        number(&document, path).ok_or_else(|| error(format!("no number at \"{path}\"")))
    };
    let mut printed = Printed::default();
    let requests = need("/summary/answered")?;
    printed.set("requests", requests);
    printed.set("requests_per_s", need("/summary/answered_per_s")?);
    printed.set("seconds", need("/summary/measured_ns")? / NS);
    printed.set_transfer(need("/summary/bytes_received_per_s")?);
    printed.set("connections_asked", need("/plan/connections")?);
    printed.set("threads", need("/plan/threads")?);
    if let Some(asked) = number(&document, "/plan/duration_ns") {
        printed.set("seconds.asked", asked / NS);
    }
    if let Some(bytes) = number(&document, "/results/tally/bytes_received")
        && requests > 0.0
    {
        printed.set_response(Quantity {
            value: bytes / requests,
            half_width: 0.0,
        });
    }
    failures(&document, need("/summary/failed")?, &mut printed);
    for (measure, family) in MEASURES {
        latency(&document, measure, family, &mut printed);
    }
    printed.sort_percentiles();
    late(&document, &mut printed);
    words(&document, &mut printed);
    Ok(printed)
}

/// Our measures, and the families they belong to: what ab calls by the same names.
const MEASURES: [(&str, &str); 6] = [
    ("latency", super::curve::LATENCY),
    ("raw", "latency_s.uncorrected"),
    ("connect", "connect_s"),
    ("first_byte", "waiting_s"),
    ("service", "processing_s"),
    // How much later than due requests began.
    ("lateness", "lateness_s"),
];

fn latency(document: &Value, measure: &str, family: &str, printed: &mut Printed) {
    let path = format!("/results/measures/{measure}/v2");
    let histogram = document
        .pointer(&path)
        .and_then(Value::as_str)
        .and_then(|text| Histogram::parse(text).ok());
    if let Some(histogram) = histogram {
        printed.set_histogram(family, histogram);
        return;
    }
    let at = |field: &str| number(document, &format!("/summary/{measure}/{field}"));
    for part in ["min", "mean", "stdev", "max"] {
        if let Some(ns) = at(&format!("{part}_ns")) {
            printed.set(&format!("{family}.{part}"), ns / NS);
        }
    }
    for (field, percent) in [
        ("p50_ns", 50.0),
        ("p90_ns", 90.0),
        ("p99_ns", 99.0),
        ("p99_9_ns", 99.9),
        ("p99_99_ns", 99.99),
        ("max_ns", 100.0),
    ] {
        let Some(ns) = at(field) else { continue };
        if family == super::curve::LATENCY {
            printed.add_percentile(percent, ns / NS);
        } else if percent < 100.0 {
            printed.set(&percentile_name(family, percent), ns / NS);
        }
    }
}

/// Failures by kind, under the names that wrk's have.
fn failures(document: &Value, failed: f64, printed: &mut Printed) {
    let kinds = |names: &[&str]| -> f64 {
        names
            .iter()
            .filter_map(|name| number(document, &format!("/summary/failures/{name}")))
            .sum()
    };
    let status = number(document, "/results/tally/statuses_bad").unwrap_or(0.0);
    let named = [
        (
            "connect",
            kinds(&["connect", "connect_timeout", "no_descriptor", "no_port"]),
        ),
        (
            "read",
            kinds(&["reset", "ended_early", "garbage", "wrong_content"]),
        ),
        ("write", 0.0),
        ("timeout", kinds(&["timeout"])),
        ("status", status),
    ];
    printed.set_failures(&named, failed + status, failed);
}

/// Of the requests that were due: those that began later than that, or never.
fn late(document: &Value, printed: &mut Printed) {
    let summary = |name: &str| number(document, &format!("/summary/{name}"));
    let (Some(started), Some(never)) = (summary("started"), summary("never_started")) else {
        return;
    };
    for (name, field) in [("50us", "late_50us"), ("1ms", "late_1ms")] {
        if let Some(late) = number(document, &format!("/results/tally/{field}")) {
            printed.set(
                &format!("late_share.{name}"),
                (late + never) / (started + never),
            );
        }
    }
}

/// The words of a verdict.
const VERDICTS: [&str; 6] = [
    "server-bound",
    "paced",
    "unstable",
    "link-bound",
    "client-bound",
    "invalid",
];

/// The URL, the verdict, and whether it was ended early.
fn words(document: &Value, printed: &mut Printed) {
    let text = |path: &str| document.pointer(path).and_then(Value::as_str);
    printed.url = text("/plan/urls/0/url").map(String::from);
    printed.interrupted = document.pointer("/results/interrupted") == Some(&Value::Bool(true));
    if let Some(reason) = text("/results/aborted") {
        printed.interrupted = true;
        printed.notes.push(format!("it ended by itself: {reason}"));
    }
    if let (Some(word), Some(sentence)) = (text("/verdict/word"), text("/verdict/sentence")) {
        printed
            .notes
            .push(format!("its verdict: {word}. {sentence}"));
        for known in VERDICTS {
            printed.set(
                &format!("verdict.{known}"),
                f64::from(u8::from(word == known)),
            );
        }
    }
    let asked = number(document, "/plan/connections");
    if let Some(open) = number(document, "/results/tally/open") {
        printed.set("connections_held", open);
    }
    let open = number(document, "/results/tally/open_max");
    if let (Some(asked), Some(open)) = (asked, open) {
        printed.set("connections_asked.open", open);
        if open < asked {
            printed
                .notes
                .push(format!("{open} of {asked} connections were open at most"));
        }
    }
}

fn number(document: &Value, path: &str) -> Option<f64> {
    document.pointer(path)?.as_f64()
}

/// The schema that is known here.
const SCHEMA: f64 = 1.0;

/// Nanoseconds in a second.
const NS: f64 = 1e9;
