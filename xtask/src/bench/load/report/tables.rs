//! The tables.

use crate::bench::bound::bound;
use crate::bench::load::accuracy::{AccuracyResult, ERROR_MAX, Found, Measurer};
use crate::bench::load::client::Client;
use crate::bench::load::precision::{IN_TIME_MIN, Precision, RATE as SENDS_PER_S};
use crate::bench::load::results::{CPU, CPU_OF_WRK_MAX, CaseResult, RATE};
use crate::bench::load::situation::SituationResult;
use crate::bench::ratio::{Ratio, Verdict};
use crate::bench::table::Table;
use crate::bench::told::Latency;

const ABSENT: &str = "–";

pub(super) fn speed(cases: &[CaseResult]) -> Table {
    let header = [
        "case",
        "client",
        "requests/s",
        "CPU µs",
        "calls",
        "p50 ms",
        "p99 ms",
        "errors",
        "client busy",
        "server busy",
        "bound",
    ];
    let mut table = Table::new(2, &header);
    for result in cases {
        for client in result.clients() {
            table.push(speed_row(result, client));
        }
    }
    table
}

fn speed_row(result: &CaseResult, client: Client) -> Vec<String> {
    let median = |figure| result.median(client, figure);
    let told = |figure| millis(result.median_told(client, figure));
    let calls = result.system_calls.iter().find(|(of, _)| *of == client);
    let calls = calls.and_then(|(_, calls)| calls.as_ref().ok());
    let client_wants = median(|block| block.client_ran + block.client_waited);
    let server_wants = median(|block| block.server_ran + block.server_waited);
    vec![
        result.case.name.to_owned(),
        client.name().to_owned(),
        format!("{:.0}", median(RATE)),
        format!("{:.2}", median(CPU)),
        calls.map_or_else(
            || ABSENT.to_owned(),
            |calls| format!("{:.2}", calls.total()),
        ),
        told(|block| block.latency.p50),
        told(|block| block.latency.p99),
        result.errors(client).to_string(),
        format!("{:.0} %", 100.0 * client_wants),
        format!("{:.0} %", 100.0 * server_wants),
        bound(server_wants, client_wants).to_owned(),
    ]
}

fn millis(value: Option<f64>) -> String {
    value.map_or_else(|| ABSENT.to_owned(), |ms| format!("{ms:.2}"))
}

pub(super) fn ratios(cases: &[CaseResult]) -> Table {
    let header = [
        "case",
        "ours",
        "to",
        "requests/s",
        "CPU time",
        "pairs",
        "target",
    ];
    let mut table = Table::new(3, &header);
    for result in cases {
        let clients = result.clients();
        for of in &clients {
            for to in of.rivals().iter().filter(|to| clients.contains(to)) {
                table.push(ratio_row(result, *of, *to));
            }
        }
    }
    table
}

fn ratio_row(result: &CaseResult, of: Client, to: Client) -> Vec<String> {
    let ratio = |figure| result.ratio(of, to, figure);
    let verdict = result.target(of, to).map(Verdict::name);
    let target = verdict.map(|verdict| format!("CPU ≤ {CPU_OF_WRK_MAX:.2}: {verdict}"));
    vec![
        result.case.name.to_owned(),
        of.name().to_owned(),
        to.name().to_owned(),
        interval(ratio(RATE)),
        interval(ratio(CPU)),
        ratio(CPU).map_or(0, |ratio| ratio.pairs).to_string(),
        target.unwrap_or_default(),
    ]
}

fn interval(ratio: Option<Ratio>) -> String {
    ratio.map_or_else(|| "refused: errors".to_owned(), |ratio| ratio.to_string())
}

pub(super) fn system_calls(cases: &[CaseResult]) -> Table {
    let mut table = Table::new(3, &["case", "client", "calls"]);
    for result in cases {
        for (client, calls) in &result.system_calls {
            let Ok(calls) = calls else { continue };
            let client = client.name().to_owned();
            table.push(vec![result.case.name.to_owned(), client, calls.listed()]);
        }
    }
    table
}

pub(super) fn precision(found: Option<&Precision>) -> Table {
    let header = [
        "asked for",
        "achieved",
        "requests due",
        "in 50 µs",
        "in 1 ms",
        "lateness p50 µs",
        "p90",
        "p99",
        "p99.9",
        "max",
        "verdict",
        "target",
    ];
    let mut table = Table::new(0, &header);
    let Some(found) = found else { return table };
    let native = &found.native;
    let achieved = native.told.requests as f64 / native.told.duration.as_secs_f64();
    let mut row = vec![
        format!("{SENDS_PER_S}/s"),
        format!("{achieved:.0}/s"),
        (native.started + native.never_started).to_string(),
        percent(found.in_50us()),
        percent(found.in_1ms()),
    ];
    let micros = |ms: f64| format!("{:.1}", 1000.0 * ms);
    let lateness = native.lateness.all();
    row.extend(lateness.map(|ms| ms.map_or_else(|| ABSENT.to_owned(), micros)));
    row.push(native.word.clone());
    row.push(format!(
        "in 50 µs ≥ {:.1} %: {}",
        100.0 * IN_TIME_MIN,
        met(found.in_50us() >= IN_TIME_MIN)
    ));
    table.push(row);
    table
}

/// Never rounded up to all.
fn percent(share: f64) -> String {
    format!("{:.3} %", (share * 100_000.0).floor() / 1000.0)
}

const fn met(is_met: bool) -> &'static str {
    if is_met { "met" } else { "missed" }
}

pub(super) fn accuracy(results: &[AccuracyResult]) -> Table {
    let mut header = vec!["delays", "client", "ms"];
    header.extend(Latency::NAMES);
    header.extend(["worst", "target"]);
    let mut table = Table::new(3, &header);
    for result in results {
        for account in &result.accounts {
            let Ok(found) = &account.measured else {
                continue;
            };
            let names = [result.delays.name(), account.measurer.name()];
            for row in accuracy_rows(names, account.measurer, found) {
                table.push(row);
            }
        }
    }
    table
}

fn accuracy_rows(names: [&str; 2], measurer: Measurer, found: &Found) -> [Vec<String>; 3] {
    let row = |what: &str, cells: [String; 5], rest: [String; 2]| {
        let mut row: Vec<String> = names.map(str::to_owned).into();
        row.push(what.to_owned());
        row.extend(cells);
        row.extend(rest);
        row
    };
    let figures = |latency: Latency| latency.all().map(precise);
    let errors = found.errors();
    let error = |error: f64| format!("{:+.1} %", 100.0 * error);
    let absent = || ABSENT.to_owned();
    let worst = found
        .worst()
        .map_or_else(absent, |worst| format!("{:.1} %", 100.0 * worst));
    let target = match found.worst() {
        Some(worst) if measurer == Measurer::OpenLoop => {
            format!("≤ {:.0} %: {}", 100.0 * ERROR_MAX, met(worst <= ERROR_MAX))
        }
        None if measurer == Measurer::OpenLoop => "not told: missed".to_owned(),
        _ => String::new(),
    };
    let none = || [String::new(), String::new()];
    [
        row("told", figures(found.told), none()),
        row("true", figures(found.truth), none()),
        row(
            "error",
            errors.map(|known| known.map_or_else(absent, error)),
            [worst, target],
        ),
    ]
}

fn precise(ms: Option<f64>) -> String {
    ms.map_or_else(|| ABSENT.to_owned(), |ms| format!("{ms:.3}"))
}

pub(super) fn situations(results: &[SituationResult]) -> Table {
    let mut table = Table::new(4, &["situation", "expected", "word", "sentence"]);
    for result in results {
        let Ok(judged) = &result.judged else { continue };
        let situation = result.situation;
        table.push(vec![
            situation.name().to_owned(),
            situation.expected().to_owned(),
            judged.word.clone(),
            judged.sentence.clone(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::{accuracy_rows, percent, precision, ratios, speed};
    use crate::bench::load::accuracy::tests::latency;
    use crate::bench::load::accuracy::{Found, Measurer};
    use crate::bench::load::precision::tests::precision as found;
    use crate::bench::load::results::tests::two_passes;

    #[test]
    fn a_case_is_a_row_a_client_and_a_row_a_comparison() {
        let results = [two_passes()];
        assert_eq!(speed(&results).emit_text().lines().count(), 3);
        let expected = "\
| case | ours | to | requests/s | CPU time | pairs | target |
| --- | --- | --- | ---: | ---: | ---: | ---: |
| keep-alive-0 | millstream wrk | wrk | 1.250 [1.250, 1.250] | 0.750 [0.750, 0.750] | 2 | CPU ≤ 0.80: met |
";
        assert_eq!(ratios(&results).emit_markdown(), expected);
    }

    #[test]
    fn a_ratio_with_errors_is_refused_in_words() {
        let mut result = two_passes();
        result.blocks.iter_mut().for_each(|block| block.errors = 1);
        assert!(ratios(&[result]).emit_text().contains("refused: errors"));
    }

    #[test]
    fn a_share_is_never_rounded_up_to_the_target() {
        assert_eq!(percent(0.998_999_9), "99.899 %");
        assert_eq!(percent(1.0), "100.000 %");
        let text = precision(Some(&found())).emit_text();
        assert!(text.contains("in 50 µs ≥ 99.9 %: missed"), "{text}");
        assert!(precision(None).is_empty());
    }

    #[test]
    fn an_account_is_three_rows_and_the_open_loop_has_a_target() {
        let truth = latency([1.0, 1.0, 2.0, 2.0, 4.0]);
        let told = latency([1.01, 1.0, 2.0, 1.9, 4.0]);
        let rows = |measurer| {
            accuracy_rows(
                ["d", "c"],
                measurer,
                &Found {
                    told,
                    truth,
                    waited: 0.0,
                },
            )
        };
        let [_, _, errors] = rows(Measurer::OpenLoop);
        let expected = [
            "d",
            "c",
            "error",
            "+1.0 %",
            "+0.0 %",
            "+0.0 %",
            "-5.0 %",
            "+0.0 %",
            "5.0 %",
            "≤ 2 %: missed",
        ];
        assert_eq!(errors, expected);
        let [_, _, errors] = rows(Measurer::Wrk);
        assert_eq!(errors.last().map(String::as_str), Some(""));
    }
}
