//! Everything as one JSON document; docs/load.md describes it.

use crate::failure::FailureKind;
use crate::native::outcome::Outcome;
use crate::native::part::wire;
use crate::native::results::Results;
use crate::native::verdict::{Unit, Verdict};
use crate::plan::{Arrivals, Life, Opening, Plan};
use crate::source::Sources;
use core::time::Duration;
use mill_metrics::Histogram;
use serde_json::{Value, json};

/// Makes the document.
pub(super) fn emit(outcome: &Outcome<'_>) -> Value {
    let results = outcome.results;
    json!({
        "schema": SCHEMA,
        "millstream": env!("CARGO_PKG_VERSION"),
        "plan": plan(outcome),
        "summary": summary(results),
        "verdict": verdict(&outcome.verdict),
        "requirements": requirements(outcome),
        "status": outcome.status(),
        "results": wire::emit(results),
    })
}

/// The results of a document that `emit` made; the error is a message.
pub fn parse(text: &[u8]) -> Result<Results, String> {
    let value: Value = serde_json::from_slice(text).map_err(|error| format!("no JSON: {error}"))?;
    match value.get("schema").and_then(Value::as_u64) {
        Some(SCHEMA) => {}
        Some(other) => return Err(format!("schema {other} is not known, only {SCHEMA} is")),
        None => return Err(String::from("it is not a document of millstream load")),
    }
    let results = value.get("results").and_then(wire::parse);
    results.ok_or_else(|| String::from("its results are damaged"))
}

fn plan(outcome: &Outcome<'_>) -> Value {
    let options = outcome.options;
    let plan = &outcome.prepared.plan;
    let urls: Vec<Value> = options
        .urls
        .iter()
        .map(|(url, weight)| {
            json!({"url": format!("{}{}", url.origin(), url.target), "weight": weight})
        })
        .collect();
    let endpoints: Vec<String> = plan.endpoints.iter().map(ToString::to_string).collect();
    json!({
        "urls": urls,
        "endpoints": endpoints,
        "method": options.message.method,
        "keep_alive": options.message.keep_alive,
        "replay": options.message.replay,
        "connections": plan.connections,
        "streams": plan.streams,
        "threads": plan.threads,
        "processes": options.processes,
        "loop": if outcome.is_open_loop() { "open" } else { "closed" },
        "rate": options.rate,
        "arrivals": options.rate.map(|_| match options.arrivals {
            Arrivals::Uniform => "uniform",
            Arrivals::Poisson => "poisson",
        }),
        "think_ns": ns(options.think),
        "requests_per_connection": life(&plan.life),
        "opening": opening(plan.opening),
        "duration_ns": options.duration.map(ns),
        "requests": options.requests,
        "warm_up_ns": ns(options.warm_up),
        "timeout_ns": options.timeout.map(ns),
        "nodelay": plan.nodelay,
        "sources": sources(plan),
        "spin_ns": ns(plan.spin),
        "interval_ns": ns(plan.interval),
        "seed": plan.seed,
    })
}

fn life(life: &Life) -> Value {
    match life {
        Life::Unlimited => Value::Null,
        Life::Requests(count) => json!(count),
        Life::Distribution(weights) => json!(weights),
    }
}

fn opening(opening: Opening) -> Value {
    match opening {
        Opening::Together => json!("together"),
        Opening::Staggered(gap) => json!({"staggered_ns": ns(gap)}),
        Opening::Ramp(whole) => json!({"ramp_ns": ns(whole)}),
        Opening::Rate(rate) => json!({"rate": rate}),
    }
}

fn sources(plan: &Plan) -> Value {
    let Sources { addresses, ports } = &plan.sources;
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    let ports = ports.as_ref().map(|ports| [*ports.start(), *ports.end()]);
    json!({"addresses": addresses, "ports": ports})
}

/// The main figures, so that readers need not decode a histogram.
fn summary(results: &Results) -> Value {
    let tally = &results.tally;
    let measures = &results.measures;
    let failures: serde_json::Map<String, Value> = FailureKind::ALL
        .into_iter()
        .map(|kind| (String::from(kind.name()), json!(tally.failures_of(kind))))
        .collect();
    json!({
        "measured_ns": ns(results.measured),
        "answered_per_s": results.rate(),
        "bytes_received_per_s": results.per_second(tally.bytes_received),
        "started": tally.started,
        "answered": tally.answered,
        "failed": tally.failed(),
        "unfinished": tally.unfinished(),
        "never_started": tally.never_started,
        "failures": failures,
        "latency": figures(&measures.latency),
        "raw": measures.raw.as_ref().map(figures),
        "lateness": measures.lateness.as_ref().map(figures),
        "service": figures(&measures.service),
        "first_byte": figures(&measures.first_byte),
        "ttfb": figures(&measures.ttfb),
        "connect": figures(&measures.connect),
        "tls_handshake": figures(&measures.tls),
        "handshakes": handshakes(results),
    })
}

/// Handshakes of TLS by kind, those with early data also among the others; `null` if there were none.
fn handshakes(results: &Results) -> Value {
    let tally = &results.tally;
    if tally.handshakes == 0 {
        return Value::Null;
    }
    let kind = |count: u64| json!({"count": count, "per_s": results.per_second(count)});
    json!({
        "full": kind(tally.handshakes_full()),
        "resumed": kind(tally.handshakes_resumed),
        "early_accepted": kind(tally.early_accepted),
        "early_rejected": kind(tally.early_rejected),
        "early_too_early": kind(tally.early_too_early),
    })
}

/// `null` if nothing was counted: a latency of zero would be read as a fast one.
fn figures(histogram: &Histogram) -> Value {
    if histogram.is_empty() {
        return Value::Null;
    }
    json!({
        "count": histogram.count(),
        "min_ns": ns(histogram.min()),
        "mean_ns": ns(histogram.mean()),
        "stdev_ns": ns(histogram.stdev()),
        "p50_ns": ns(histogram.percentile(50.0)),
        "p90_ns": ns(histogram.percentile(90.0)),
        "p99_ns": ns(histogram.percentile(99.0)),
        "p99_9_ns": ns(histogram.percentile(99.9)),
        "p99_99_ns": ns(histogram.percentile(99.99)),
        "max_ns": ns(histogram.max()),
    })
}

fn verdict(verdict: &Verdict) -> Value {
    let checks: Vec<Value> = verdict
        .checks
        .iter()
        .map(|check| {
            json!({
                "name": check.name,
                "level": check.level.name(),
                "figure": check.figure,
                "unit": unit(check.unit),
                "threshold": check.threshold,
                "advice": check.advice,
            })
        })
        .collect();
    json!({"word": verdict.word.name(), "sentence": verdict.sentence, "checks": checks})
}

const fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Percent => "percent",
        Unit::Seconds => "s",
        Unit::PerSecond => "per_s",
        Unit::Count => "count",
    }
}

fn requirements(outcome: &Outcome<'_>) -> Value {
    let kept = outcome.requirements.iter().map(|kept| {
        json!({
            "option": kept.requirement.option(),
            "limit": kept.requirement.limit(),
            "measured": kept.measured,
            "held": kept.held,
        })
    });
    Value::Array(kept.collect())
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Incremented when a field changes its meaning or is removed, not when one is added.
const SCHEMA: u64 = 1;

#[cfg(test)]
mod tests;
