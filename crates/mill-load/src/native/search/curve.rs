//! Latency against rate, as a table: where the curve bends is the server's capacity.

use super::Outcome;
use core::time::Duration;
use std::io::{self, Write};

/// One trial of a search, or one rate of a scan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Requests per second asked for.
    pub rate: f64,
    /// Requests per second answered.
    pub achieved: f64,
    pub p50: Duration,
    pub p90: Duration,
    pub p99: Duration,
    pub max: Duration,
    /// Share of the requests, 0 to 1.
    pub errors: f64,
    /// The share of the machine's CPU time that went to other programs, 0 to 1.
    pub other_cpu: Option<f64>,
    pub outcome: Outcome,
}

/// Writes the points by growing rate, trials of the same rate in their order.
pub fn emit_curve(points: &[Point], out: &mut dyn Write) -> io::Result<()> {
    let mut sorted: Vec<&Point> = points.iter().collect();
    sorted.sort_by(|one, other| one.rate.total_cmp(&other.rate));
    writeln!(
        out,
        "{:>12} {:>12} {:>10} {:>10} {:>10} {:>10} {:>8}  objective",
        "rate/s", "achieved/s", "p50", "p90", "p99", "max", "errors"
    )?;
    for point in sorted {
        let [p50, p90, p99, max] = [point.p50, point.p90, point.p99, point.max].map(millis);
        let outcome = match point.outcome {
            Outcome::Kept => "kept",
            Outcome::Missed { .. } => "missed",
            Outcome::NotSent => "not sent in time",
            Outcome::NoAnswer => "no answer",
        };
        writeln!(
            out,
            "{:>12.1} {:>12.1} {p50:>10} {p90:>10} {p99:>10} {max:>10} {:>7.3}%  {outcome}",
            point.rate,
            point.achieved,
            point.errors * 100.0,
        )?;
    }
    Ok(())
}

/// In one unit, so that values in a column can be compared.
fn millis(duration: Duration) -> String {
    format!("{:.3}ms", duration.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_sorted_by_rate() {
        let point = |rate, outcome| Point {
            rate,
            achieved: rate * 0.999,
            p50: Duration::from_micros(250),
            p90: Duration::from_micros(800),
            p99: Duration::from_millis(2),
            max: Duration::from_millis(1500),
            errors: 0.0005,
            other_cpu: None,
            outcome,
        };
        let points = [
            point(2000.0, Outcome::Missed { excess: 2.0 }),
            point(4000.0, Outcome::NotSent),
            point(1000.0, Outcome::Kept),
        ];
        let mut out = Vec::new();
        emit_curve(&points, &mut out).unwrap();
        let expected = "
      rate/s   achieved/s        p50        p90        p99        max   errors  objective
      1000.0        999.0    0.250ms    0.800ms    2.000ms 1500.000ms   0.050%  kept
      2000.0       1998.0    0.250ms    0.800ms    2.000ms 1500.000ms   0.050%  missed
      4000.0       3996.0    0.250ms    0.800ms    2.000ms 1500.000ms   0.050%  not sent in time
";
        assert_eq!(String::from_utf8(out).unwrap(), expected[1..]);
    }
}
