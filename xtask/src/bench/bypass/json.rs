//! The results as JSON (RFC 8259), every block of them, for programs.

use super::block::{Block, CoreUse};
use super::overload::Overload;
use super::report::Report;
use super::results::{CellResult, Found, TargetResult, Trial};
use super::subject::{RAW, Subject};
use crate::bench::json::Value;
use crate::bench::members::{self, Members};
use crate::bench::told::Latency;

/// The whole report. Names end in their units; shares are of 1.
pub(super) fn emit(report: &Report) -> String {
    let mut document = members::head(&report.command_line, &report.machine);
    document.extend([
        ("block_seconds", Value::count(report.seconds.into())),
        (
            "left_out",
            Value::list(&report.left_out, |(kind, why)| {
                Value::Object(vec![
                    ("server", Value::text(kind.name())),
                    ("why", Value::text(why)),
                ])
            }),
        ),
        (
            "shortfalls",
            Value::list(&report.shortfalls, |why| Value::text(why)),
        ),
        ("cells", Value::list(&report.cells, cell)),
    ]);
    Value::Object(document).emit_document()
}

fn cell(result: &CellResult) -> Value {
    let cell = &result.cell;
    let per_connection = cell.requests_per_connection();
    Value::Object(vec![
        ("name", Value::text(&cell.name)),
        ("body_bytes", Value::count(cell.body_bytes as u64)),
        (
            "requests_per_connection",
            Value::of(per_connection, |count| Value::count(count.into())),
        ),
        ("connections", Value::count(cell.concurrency.into())),
        ("mtu", Value::count(cell.mtu.into())),
        ("pace", Value::text(&format!("{:?}", cell.pace))),
        (
            "failures",
            Value::list(&result.failures, |(subject, why)| {
                let mut members = named(*subject);
                members.push(("why", Value::text(why)));
                Value::Object(members)
            }),
        ),
        ("clients", Value::list(&result.clients, trial)),
        ("targets", Value::list(&result.targets(), target)),
        ("ratios", ratios(result)),
        ("blocks", Value::list(&result.blocks, block)),
        ("overloads", Value::list(&result.overloads, overload)),
    ])
}

fn overload(overload: &Overload) -> Value {
    let mut members = named(overload.subject);
    members.extend([
        ("alone_per_s", Value::Number(overload.alone_per_s)),
        ("many_per_s", Value::Number(overload.many_per_s)),
        ("offered_per_s", Value::Number(overload.offered_per_s)),
        ("goodput_per_s", Value::Number(overload.goodput_per_s)),
        ("kept", Value::Number(overload.kept())),
        ("errors", Value::count(overload.errors)),
        (
            "series_per_s",
            Value::list(&overload.series, |rate| Value::Number(*rate)),
        ),
    ]);
    members.extend(latency(&overload.latency));
    Value::Object(members)
}

fn latency(latency: &Latency) -> Members {
    let names = [
        "latency_ms_p50",
        "latency_ms_p90",
        "latency_ms_p99",
        "latency_ms_p999",
        "latency_ms_max",
    ];
    let named = names.into_iter().zip(latency.all());
    named
        .map(|(name, ms)| (name, Value::of(ms, Value::Number)))
        .collect()
}

fn named(subject: Subject) -> Members {
    vec![("subject", Value::text(&subject.name()))]
}

fn trial(trial: &Trial) -> Value {
    let mut members = named(trial.subject);
    members.push((
        "requests_per_s",
        Value::list(&trial.rates, |(client, rate)| {
            Value::Object(vec![
                ("client", Value::text(client.name())),
                ("requests_per_s", Value::Number(*rate)),
            ])
        }),
    ));
    Value::Object(members)
}

fn target(result: &TargetResult) -> Value {
    let found = match result.found {
        Found::Ratio(ratio) => members::ratio("", "requests_per_s", ratio),
        Found::Times(own, to) => vec![("own_ms", Value::Number(own)), ("to_ms", Value::Number(to))],
        Found::Rate(rate) | Found::Time(rate) | Found::Bytes(rate) | Found::Kept(rate) => vec![
            ("median", Value::Number(rate.median)),
            ("least", Value::Number(rate.least)),
            ("most", Value::Number(rate.most)),
        ],
    };
    Value::Object(vec![
        ("target", Value::text(&format!("{:?}", result.target))),
        ("verdict", Value::text(result.verdict.name())),
        ("found", Value::Object(found)),
    ])
}

fn ratios(result: &CellResult) -> Value {
    let mut list = Vec::new();
    for subject in result.subjects() {
        for to in [subject.nginx(), RAW] {
            if subject == to {
                continue;
            }
            if let Some(ratio) = result.ratio(subject, to) {
                let mut members = named(subject);
                members.extend(members::ratio(&to.name(), "requests_per_s", ratio));
                list.push(Value::Object(members));
            }
        }
    }
    Value::List(list)
}

fn block(block: &Block) -> Value {
    let mut members = named(block.subject);
    members.extend([
        ("pass", Value::count(block.pass.into())),
        ("requests_per_s", Value::Number(block.requests_per_s)),
        ("bytes_per_s", Value::Number(block.bytes_per_s)),
        ("errors", Value::count(block.errors)),
        ("server_core", core(block, block.server_core)),
        ("client_core", core(block, block.client_core)),
        (
            "server_us_per_request",
            Value::Number(block.us_per_request(block.server_ran)),
        ),
        (
            "client_us_per_request",
            Value::Number(block.us_per_request(block.client_ran)),
        ),
    ]);
    members.push(("server_waited", Value::Number(block.server_waited)));
    members.push(("client_waited", Value::Number(block.client_waited)));
    let late = block.lateness.p999;
    members.push(("lateness_ms_p999", Value::of(late, Value::Number)));
    members.extend([
        (
            "connections_held",
            Value::of(block.connections_held, Value::count),
        ),
        (
            "server_bytes_per_connection",
            Value::Number(block.server_bytes),
        ),
        (
            "client_bytes_per_connection",
            Value::Number(block.client_bytes),
        ),
    ]);
    members.extend(latency(&block.latency));
    Value::Object(members)
}

fn core(block: &Block, core: CoreUse) -> Value {
    Value::Object(vec![
        ("busy", Value::Number(core.busy)),
        ("softirq", Value::Number(core.softirq)),
        ("steal", Value::Number(core.steal)),
        (
            "us_per_request",
            Value::Number(block.us_per_request(core.busy)),
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::cell;
    use crate::bench::bypass::results::tests::two_passes;
    use crate::bench::bypass::subject::{NGINX_BY_XDP, RAW, XDP};

    #[test]
    fn every_block_and_ratio_of_a_cell_is_there() {
        let rates = [(NGINX_BY_XDP, 100.0), (XDP, 500.0), (RAW, 1000.0)];
        let mut out = String::new();
        cell(&two_passes("ka-0B-64", &rates)).emit(&mut out);
        assert_eq!(out.matches("\"latency_ms_p50\":0.05").count(), 6);
        assert_eq!(out.matches("\"to\":\"raw frames\"").count(), 2);
        assert!(out.contains("\"verdict\":\"missed\""));
        assert!(out.contains("\"requests_per_connection\":null"));
    }
}
