//! The results as JSON (RFC 8259), every block of them, for programs.

use super::accuracy::AccuracyResult;
use super::block::Block;
use super::precision::Precision;
use super::report::Report;
use super::results::{CPU, CaseResult, RATE};
use super::situation::SituationResult;
use super::told::Latency;
use crate::bench::json::Value;

/// The whole report. Names end in their units; shares are of 1; what is absent is null.
pub(super) fn emit(report: &Report) -> String {
    let machine = report.machine.lines();
    let precision = report
        .precision
        .as_ref()
        .and_then(|found| found.as_ref().ok());
    let value = Value::Object(vec![
        ("command_line", Value::text(&report.command_line)),
        ("date", Value::text(&report.machine.date)),
        (
            "machine",
            Value::List(machine.iter().map(|line| Value::text(line)).collect()),
        ),
        ("server", Value::text(report.server.name())),
        ("block_seconds", count(report.seconds)),
        (
            "cases",
            Value::List(report.cases.iter().map(case).collect()),
        ),
        ("open_loop", precision.map_or(Value::Null, open_loop)),
        (
            "accuracy",
            Value::List(report.accuracy.iter().flat_map(accuracy).collect()),
        ),
        (
            "verdicts",
            Value::List(report.situations.iter().map(situation).collect()),
        ),
    ]);
    let mut out = String::new();
    value.emit(&mut out);
    out.push('\n');
    out
}

fn count(number: u64) -> Value {
    Value::Number(number as f64)
}

fn case(result: &CaseResult) -> Value {
    let mut ratios = Vec::new();
    for of in result.clients() {
        for to in of.rivals() {
            for (name, figure) in [("requests_per_s", RATE), ("cpu_us_per_request", CPU)] {
                let Some(ratio) = result.ratio(of, *to, figure) else {
                    continue;
                };
                ratios.push(Value::Object(vec![
                    ("of", Value::text(of.name())),
                    ("to", Value::text(to.name())),
                    ("figure", Value::text(name)),
                    ("mean", Value::Number(ratio.mean)),
                    ("low", Value::Number(ratio.low)),
                    ("high", Value::Number(ratio.high)),
                    ("pairs", Value::Number(ratio.pairs as f64)),
                ]));
            }
        }
    }
    let calls = result.system_calls.iter().filter_map(|(client, calls)| {
        let rows = calls.as_ref().ok()?.by_name.iter().map(|(name, count)| {
            Value::Object(vec![
                ("name", Value::text(name)),
                ("per_request", Value::Number(*count)),
            ])
        });
        Some(Value::Object(vec![
            ("client", Value::text(client.name())),
            ("calls", Value::List(rows.collect())),
        ]))
    });
    Value::Object(vec![
        ("name", Value::text(result.case.name)),
        ("body_bytes", Value::Number(result.case.body_bytes as f64)),
        ("ratios", Value::List(ratios)),
        ("system_calls", Value::List(calls.collect())),
        (
            "blocks",
            Value::List(result.blocks.iter().map(block).collect()),
        ),
    ])
}

fn block(block: &Block) -> Value {
    Value::Object(vec![
        ("client", Value::text(block.client.name())),
        ("pass", Value::Number(f64::from(block.pass))),
        ("requests", count(block.requests)),
        ("requests_per_s", Value::Number(block.requests_per_s)),
        (
            "cpu_us_per_request",
            Value::Number(block.cpu_us_per_request),
        ),
        ("latency_ms", latency(&block.latency)),
        ("errors", count(block.errors)),
        ("client_ran", Value::Number(block.client_ran)),
        ("client_waited", Value::Number(block.client_waited)),
        ("server_ran", Value::Number(block.server_ran)),
        ("server_waited", Value::Number(block.server_waited)),
        ("steal", Value::Number(block.steal)),
    ])
}

fn latency(latency: &Latency) -> Value {
    let [p50, p90, p99, p999, max] = latency
        .all()
        .map(|ms| ms.map_or(Value::Null, Value::Number));
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
        ("started", count(native.started)),
        ("never_started", count(native.never_started)),
        ("late_50us", count(native.late_50us)),
        ("late_1ms", count(native.late_1ms)),
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
            (
                "told_ms",
                found.map_or(Value::Null, |found| latency(&found.told)),
            ),
            (
                "true_ms",
                found.map_or(Value::Null, |found| latency(&found.truth)),
            ),
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
            judged.map_or(Value::Null, |judged| Value::text(&judged.word)),
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
