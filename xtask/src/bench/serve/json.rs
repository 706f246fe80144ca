//! The results as JSON (RFC 8259), every block of them, for programs.

use super::block::Block;
use super::case::Connections;
use super::report::Report;
use super::results::{CPU, CaseResult, Costs, IdleResult, Measured, RATE};
use super::server::Subject;
use crate::bench::json::Value;
use crate::bench::members;

/// The whole report. Names end in their units; shares are of 1.
pub(super) fn emit(report: &Report) -> String {
    let mut document = members::head(&report.command_line, &report.machine);
    let softirq_account = format!("{:?}", report.softirq_account);
    document.extend([
        ("block_seconds", Value::count(report.seconds.into())),
        ("softirq_account", Value::text(&softirq_account)),
        ("cases", Value::list(&report.cases, case)),
        ("idle_connections", Value::list(&report.idle, idle)),
    ]);
    Value::Object(document).emit_document()
}

fn case(result: &CaseResult) -> Value {
    let case = &result.case;
    let per_connection = match case.connections {
        Connections::KeepAlive => Value::Null,
        Connections::PerRequest => Value::Number(1.0),
        Connections::OfRequests(count) => Value::Number(f64::from(count)),
    };
    let failure = Value::of(result.failure.as_deref(), Value::text);
    Value::Object(vec![
        ("name", Value::text(&case.name)),
        ("body_bytes", Value::Number(case.body_bytes as f64)),
        ("requests_per_connection", per_connection),
        ("concurrency", Value::Number(f64::from(case.concurrency))),
        ("gzip", Value::Bool(case.gzip)),
        ("access_log", Value::Bool(case.access_log)),
        ("failure", failure),
        ("ratios", ratios(result)),
        ("costs", Value::list(&result.costs, costs)),
        ("blocks", Value::list(&result.blocks, block)),
    ])
}

fn ratios(result: &CaseResult) -> Value {
    let mut list = Vec::new();
    for to in [Subject::Nginx, Subject::Floor] {
        for (figure_name, figure) in [("requests_per_s", RATE), ("cpu_us_per_request", CPU)] {
            let Some(ratio) = result.ratio(Subject::Millstream, to, figure) else {
                continue;
            };
            let members = members::ratio(to.name(), figure_name, ratio);
            list.push(Value::Object(members));
        }
    }
    Value::List(list)
}

fn costs(costs: &Costs) -> Value {
    Value::Object(vec![
        ("server", Value::text(costs.subject.name())),
        (
            "system_calls",
            measured(&costs.system_calls, members::system_calls),
        ),
        (
            "allocations_per_request",
            measured(&costs.allocations, |count| Value::Number(*count)),
        ),
    ])
}

fn block(block: &Block) -> Value {
    let latency = block.latency;
    Value::Object(vec![
        ("server", Value::text(block.subject.name())),
        ("pass", Value::Number(f64::from(block.pass))),
        ("requests", Value::Number(block.requests)),
        ("requests_per_s", Value::Number(block.requests_per_s)),
        (
            "cpu_us_per_request",
            Value::Number(block.cpu_us_per_request),
        ),
        (
            "softirq_us_per_request",
            Value::Number(block.softirq_us_per_request),
        ),
        ("bytes_per_s", Value::Number(block.bytes_per_s)),
        ("answer_bytes", Value::Number(block.answer_bytes as f64)),
        ("errors", Value::count(block.errors)),
        ("latency_us_p50", Value::count(latency.p50_us)),
        ("latency_us_p99", Value::count(latency.p99_us)),
        ("latency_us_p999", Value::count(latency.p999_us)),
        ("latency_us_max", Value::count(latency.max_us)),
        (
            "client_cpu_us_per_request",
            Value::Number(block.client_cpu_us_per_request),
        ),
        ("server_ran", Value::Number(block.server_ran)),
        ("client_ran", Value::Number(block.client_ran)),
        ("server_waited", Value::Number(block.server_waited)),
        ("client_waited", Value::Number(block.client_waited)),
        ("steal", Value::Number(block.steal)),
    ])
}

fn idle(result: &IdleResult) -> Value {
    let memory = measured(&result.memory, |memory| {
        Value::Object(vec![
            (
                "pss_bytes_per_connection",
                Value::Number(memory.pss_bytes_per_connection),
            ),
            (
                "private_bytes_per_connection",
                Value::Number(memory.private_bytes_per_connection),
            ),
            (
                "pss_bytes_before",
                Value::Number(memory.pss_bytes_before as f64),
            ),
        ])
    });
    Value::Object(vec![
        ("server", Value::text(result.subject.name())),
        ("memory", memory),
    ])
}

/// What could not be measured is null: the reason is in the report for people.
fn measured<T>(figure: &Measured<T>, emit: impl FnOnce(&T) -> Value) -> Value {
    Value::of(figure.as_ref().ok(), emit)
}

#[cfg(test)]
mod tests {
    use super::case;
    use crate::bench::serve::results::tests::two_passes;

    #[test]
    fn every_block_of_a_case_is_there() {
        let mut out = String::new();
        case(&two_passes()).emit(&mut out);
        assert_eq!(out.matches("\"latency_us_p999\":2000").count(), 4);
        assert!(out.contains("\"requests_per_connection\":null"));
    }
}
