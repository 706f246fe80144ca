//! Conclusions that quote other figures than the output shows: `RPS … from 33585.56 to 36087.54` beside a run that printed
//! 36120.88. Only of two runs, one before and one after, is it known which figure is which; and only if one figure of the
//! sentence is that of its run is the sentence about them.

use super::changes::{Change, of_line};
use super::sample::Sample;
use super::warning;
use crate::findings::Warning;
use crate::output::quantity::Quantity;

pub(super) fn of_text(name: &str, text: &str, samples: &[Sample]) -> Vec<Warning> {
    let [before, after] = samples else {
        return Vec::new();
    };
    let mut warnings = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let Some(wrong) = of_line(line).and_then(|change| wrong(&change, before, after)) else {
            continue;
        };
        let text = format!("{name}:{number}: {wrong}.");
        warnings.push(warning(
            "quoted-figures",
            text,
            "Quote the figures of the output that is shown, or show the output of those figures.",
        ));
    }
    warnings
}

fn wrong(change: &Change<'_>, before: &Sample, after: &Sample) -> Option<String> {
    let metric = metric(change)?;
    let scale = match change.unit {
        "" if metric == "requests_per_s" => 1.0,
        "ms" => 1e-3,
        "us" | "µs" => 1e-6,
        "s" => 1.0,
        _ => return None,
    };
    let sides = [(change.from, before), (change.to, after)].map(|(said, sample)| {
        let printed = sample.figure(metric)?;
        Some((said, printed, is_same(said.times(scale), printed), sample))
    });
    let [Some(from), Some(to)] = sides else {
        return None;
    };
    let other = match (from.2, to.2) {
        (true, false) => to,
        (false, true) => from,
        _ => return None,
    };
    let (said, printed, _, sample) = other;
    let unit = change.unit;
    Some(format!(
        "{} {} {}{unit}, the output at {} has {}{unit}",
        change
            .subject
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" "),
        "is said to be",
        said.value,
        sample.place,
        rounded(printed / scale)
    ))
}

/// The figure of a run that the words before "from" name.
fn metric(change: &Change<'_>) -> Option<&'static str> {
    let subject = change.subject.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| subject.contains(word));
    if says(&[
        "rps",
        "requests per second",
        "requests/s",
        "reqs/s",
        "req/s",
    ]) {
        return Some("requests_per_s");
    }
    if !says(&["latency", "response time", "percentile"]) {
        return None;
    }
    PERCENTILES
        .iter()
        .find(|(words, _)| says(words))
        .map(|(_, metric)| *metric)
}

/// Within the rounding of what was quoted.
fn is_same(said: Quantity, printed: f64) -> bool {
    (said.value - printed).abs() <= said.half_width * (1.0 + 1e-9) + printed.abs() * 1e-9
}

/// To six digits.
fn rounded(value: f64) -> f64 {
    format!("{value:.6e}").parse().unwrap_or(value)
}

/// Words for a percentile, and the figure; the rarer ones first.
const PERCENTILES: [(&[&str], &str); 4] = [
    (&["99.9%", "p99.9", "p999", "99.9th"], "latency_s.p999"),
    (&["99%", "p99", "99th"], "latency_s.p99"),
    (&["90%", "p90", "90th"], "latency_s.p90"),
    (&["50%", "p50", "median"], "latency_s.p50"),
];

#[cfg(test)]
mod tests {
    use super::super::blocks;
    use super::*;

    fn block(rate: &str, p99: &str) -> String {
        format!(
            "Running 1s test @ http://h/x\n  1 threads and 2 connections\n  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency     1.00ms    1.00ms   2.00ms   90.00%\n    Req/Sec     1.00k     1.00     2.00k    90.00%\n  Latency Distribution\n     50%    1.00ms\n     75%    1.00ms\n     90%    1.00ms\n     99%    {p99}\n  100 requests in 1.00s, 1.00MB read\nRequests/sec:    {rate}\nTransfer/sec:      1.00MB\n"
        )
    }

    #[track_caller]
    fn check(conclusion: &str, expected: &[&str]) {
        let text = format!(
            "Before\n{}After\n{}{conclusion}\n",
            block("100.00", "5.00ms"),
            block("120.00", "12.00ms")
        );
        let (samples, problems) = blocks::of("page", &text);
        assert!(problems.is_empty(), "{problems:?}");
        let warnings = of_text("page", &text, &samples);
        let texts: Vec<&str> = warnings.iter().map(|it| it.text.as_str()).collect();
        assert_eq!(texts.len(), expected.len(), "{texts:?}");
        for (text, part) in texts.iter().zip(expected) {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn a_figure_that_the_output_does_not_have_is_reported() {
        check(
            "RPS rose from 100.00 to 119.50 (+19%)",
            &["RPS rose is said to be 119.5, the output at page:16 has 120"],
        );
        check(
            "99% latency went from 12ms to 12ms",
            &["is said to be 12ms, the output at page:2 has 5ms"],
        );
        check("p99 latency went from 5 ms to 12 ms", &[]);
    }

    #[test]
    fn what_is_of_other_runs_or_rounded_is_left_alone() {
        check("RPS rose from 100 to 120 (+20%)", &[]);
        check("RPS rose from 900 to 950", &[]);
        check("99% latency went from 7ms to 9ms", &[]);
        check("CPU went from 100 to 119", &[]);
    }
}
