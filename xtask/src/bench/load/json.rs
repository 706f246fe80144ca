//! The results as JSON (RFC 8259), every block of them, for programs.

use super::accuracy::AccuracyResult;
use super::block::Block;
use super::precision::Precision;
use super::report::Report;
use super::results::{CPU, CaseResult, RATE};
use super::situation::SituationResult;
use crate::bench::json::Value;
use crate::bench::members;
use crate::bench::told::Latency;

/// The whole report. Names end in their units; shares are of 1; what is absent is null.
pub(super) fn emit(report: &Report) -> String {
    let precision = report.precision.as_ref();
    let precision = precision.and_then(|found| found.as_ref().ok());
    let accounts = report.accuracy.iter().flat_map(accuracy).collect();
    let mut document = members::head(&report.command_line, &report.machine);
    document.extend([
        ("server", Value::text(report.server.name())),
        ("block_seconds", Value::count(report.seconds)),
        ("cases", Value::list(&report.cases, case)),
        ("open_loop", Value::of(precision, open_loop)),
        ("accuracy", Value::List(accounts)),
        ("verdicts", Value::list(&report.situations, situation)),
    ]);
    Value::Object(document).emit_document()
}

fn case(result: &CaseResult) -> Value {
    let mut ratios = Vec::new();
    for of in result.clients() {
        for to in of.rivals() {
            for (name, figure) in [("requests_per_s", RATE), ("cpu_us_per_request", CPU)] {
                let Some(ratio) = result.ratio(of, *to, figure) else {
                    continue;
                };
                let mut members = vec![("of", Value::text(of.name()))];
                members.extend(members::ratio(to.name(), name, ratio));
                ratios.push(Value::Object(members));
            }
        }
    }
    let calls = result.system_calls.iter().filter_map(|(client, calls)| {
        let calls = calls.as_ref().ok()?;
        Some(Value::Object(vec![
            ("client", Value::text(client.name())),
            ("calls", members::system_calls(calls)),
        ]))
    });
    Value::Object(vec![
        ("name", Value::text(result.case.name)),
        ("body_bytes", Value::Number(result.case.body_bytes as f64)),
        ("ratios", Value::List(ratios)),
        ("system_calls", Value::List(calls.collect())),
        ("blocks", Value::list(&result.blocks, block)),
    ])
}

fn block(block: &Block) -> Value {
    Value::Object(vec![
        ("client", Value::text(block.client.name())),
        ("pass", Value::Number(f64::from(block.pass))),
        ("requests", Value::count(block.requests)),
        ("requests_per_s", Value::Number(block.requests_per_s)),
        (
            "cpu_us_per_request",
            Value::Number(block.cpu_us_per_request),
        ),
        ("latency_ms", latency(&block.latency)),
        ("errors", Value::count(block.errors)),
        ("client_ran", Value::Number(block.client_ran)),
        ("client_waited", Value::Number(block.client_waited)),
        ("server_ran", Value::Number(block.server_ran)),
        ("server_waited", Value::Number(block.server_waited)),
        ("steal", Value::Number(block.steal)),
    ])
}

fn latency(latency: &Latency) -> Value {
    let [p50, p90, p99, p999, max] = latency.all().map(|ms| Value::of(ms, Value::Number));
    Value::Object(vec![
        ("p50", p50),
        ("p90", p90),
        ("p99", p99),
        ("p99_9", p999),
        ("max", max),
    ])
}

fn open_loop(found: &Precision) -> Value {
    let native = &found.native;
    Value::Object(vec![
        ("started", Value::count(native.started)),
        ("never_started", Value::count(native.never_started)),
        ("late_50us", Value::count(native.late_50us)),
        ("late_1ms", Value::count(native.late_1ms)),
        ("in_50us", Value::Number(found.in_50us())),
        ("lateness_ms", latency(&native.lateness)),
        ("verdict", Value::text(&native.word)),
        ("waited", Value::Number(found.waited)),
    ])
}

fn accuracy(result: &AccuracyResult) -> Vec<Value> {
    let accounts = result.accounts.iter().map(|account| {
        let found = account.measured.as_ref().ok();
        Value::Object(vec![
            ("delays", Value::text(result.delays.name())),
            ("client", Value::text(account.measurer.name())),
            ("told_ms", Value::of(found, |found| latency(&found.told))),
            ("true_ms", Value::of(found, |found| latency(&found.truth))),
        ])
    });
    accounts.collect()
}

fn situation(result: &SituationResult) -> Value {
    let judged = result.judged.as_ref().ok();
    Value::Object(vec![
        ("situation", Value::text(result.situation.name())),
        ("expected", Value::text(result.situation.expected())),
        (
            "word",
            Value::of(judged, |judged| Value::text(&judged.word)),
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::case;
    use crate::bench::load::results::tests::two_passes;

    #[test]
    fn every_block_of_a_case_is_there() {
        let mut out = String::new();
        case(&two_passes()).emit(&mut out);
        let document: serde_json::Value = serde_json::from_str(&out).unwrap();
        let blocks = document["blocks"].as_array().unwrap();
        assert_eq!(blocks.len(), 4);
        assert_eq!(blocks[0]["client"], "millstream wrk");
        assert!(blocks[0]["latency_ms"]["max"].is_null());
        assert_eq!(document["ratios"].as_array().unwrap().len(), 2);
    }
}
