//! Compares the parts of a result, and finds those that differ from the others.

use crate::native::results::Results;
use core::time::Duration;
use std::io::{self, Write};

/// The figures of one part.
#[derive(Clone, Debug, PartialEq)]
pub struct PartLine {
    pub name: String,
    /// Answered requests per second.
    pub rate: f64,
    pub p50: Duration,
    pub p99: Duration,
    pub max: Duration,
    pub failed: u64,
    /// Its rate or its p99 differs from that of the others.
    pub is_outlier: bool,
}

/// One line a part. With fewer than three parts no outlier can be identified.
pub fn part_lines(parts: &[(String, &Results)]) -> Vec<PartLine> {
    let rates: Vec<f64> = parts.iter().map(|(_, part)| part.rate()).collect();
    let tails: Vec<f64> = parts
        .iter()
        .map(|(_, part)| part.measures.latency.percentile(99.0).as_secs_f64())
        .collect();
    let odd_rates = outliers(&rates);
    let odd_tails = outliers(&tails);
    parts
        .iter()
        .zip(odd_rates.into_iter().zip(odd_tails))
        .map(|((name, part), (odd_rate, odd_tail))| {
            let latency = &part.measures.latency;
            PartLine {
                name: name.clone(),
                rate: part.rate(),
                p50: latency.percentile(50.0),
                p99: latency.percentile(99.0),
                max: latency.max(),
                failed: part.tally.failed(),
                is_outlier: odd_rate || odd_tail,
            }
        })
        .collect()
}

/// Writes the lines as a table, and a line for each outlier.
pub fn emit_parts(lines: &[PartLine], out: &mut dyn Write) -> io::Result<()> {
    let width = lines.iter().map(|line| line.name.chars().count()).max();
    let width = width.unwrap_or(0).max(4);
    writeln!(
        out,
        "{:width$} {:>12} {:>11} {:>11} {:>11} {:>8}",
        "part", "answers/s", "p50", "p99", "max", "failed"
    )?;
    for line in lines {
        let [p50, p99, max] = [line.p50, line.p99, line.max]
            .map(|duration| format!("{:.3}ms", duration.as_secs_f64() * 1e3));
        let mark = if line.is_outlier { "  <- outlier" } else { "" };
        writeln!(
            out,
            "{:width$} {:>12.1} {p50:>11} {p99:>11} {max:>11} {:>8}{mark}",
            line.name, line.rate, line.failed
        )?;
    }
    for line in lines.iter().filter(|line| line.is_outlier) {
        writeln!(
            out,
            "{} is not like the other parts and dominates the tail: look at its machine, or repeat the run.",
            line.name
        )?;
    }
    Ok(())
}

/// Values further from the median than [`Z_MAX`] robust deviations, and by more than [`DIFFERENCE_MIN`] of it.
fn outliers(values: &[f64]) -> Vec<bool> {
    if values.len() < 3 {
        return vec![false; values.len()];
    }
    let middle = median(values);
    let distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    let limit = (median(&distances) * TO_STDEV * Z_MAX).max(middle * DIFFERENCE_MIN);
    distances.iter().map(|distance| *distance > limit).collect()
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match (sorted.get(half), sorted.len() % 2) {
        (Some(upper), 0) => sorted
            .get(half - 1)
            .map_or(*upper, |lower| lower.midpoint(*upper)),
        (Some(middle), _) => *middle,
        (None, _) => 0.0,
    }
}

/// Modified z-score from which a value is an outlier (Iglewicz and Hoaglin, "How to detect and handle outliers", 1993).
const Z_MAX: f64 = 3.5;

/// From the median absolute deviation to a normal distribution's standard deviation.
const TO_STDEV: f64 = 1.4826;

/// Parts within a tenth of the median are no outliers, however close the others are to each other.
const DIFFERENCE_MIN: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outlier_is_far_from_the_median_in_deviations_and_in_share() {
        let check = |values: &[f64], expected: &[usize]| {
            let found = outliers(values);
            let odd: Vec<usize> = (0..values.len()).filter(|index| found[*index]).collect();
            assert_eq!(odd, expected, "{values:?}");
        };
        check(&[], &[]);
        check(&[1.0, 9.0], &[]);
        check(&[10.0, 10.0, 10.9], &[]);
        check(&[10.0, 10.0, 11.2], &[2]);
        check(&[10.0, 14.0, 7.0, 12.0], &[]);
        check(&[10.0, 10.1, 9.9, 30.0], &[3]);
        check(&[5.0, 5.1, 1.0, 5.2, 5.0], &[2]);
        check(&[0.0, 0.0, 0.0], &[]);
    }

    #[test]
    fn the_table_marks_the_outlier_and_gives_advice() {
        let line = |name: &str, p99, is_outlier| PartLine {
            name: String::from(name),
            rate: 1000.0,
            p50: Duration::from_millis(1),
            p99: Duration::from_millis(p99),
            max: Duration::from_millis(100),
            failed: 0,
            is_outlier,
        };
        let mut out = Vec::new();
        emit_parts(
            &[line("a.json", 2, false), line("b.json", 90, true)],
            &mut out,
        )
        .unwrap();
        let expected = "
part      answers/s         p50         p99         max   failed
a.json       1000.0     1.000ms     2.000ms   100.000ms        0
b.json       1000.0     1.000ms    90.000ms   100.000ms        0  <- outlier
b.json is not like the other parts and dominates the tail: look at its machine, or repeat the run.
";
        assert_eq!(String::from_utf8(out).unwrap(), expected[1..]);
    }
}
