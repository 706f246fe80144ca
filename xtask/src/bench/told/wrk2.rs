//! wrk2's report: the recorded latency, from the time at which each request was due.

use std::time::Duration;

use super::{Latency, Told};

pub(in crate::bench) fn parse(text: &str) -> Option<Told> {
    let sum = text
        .lines()
        .find(|line| line.contains(" requests in ") && line.ends_with(" read"))?;
    let mut words = sum.split_whitespace();
    let requests = words.next()?.parse().ok()?;
    let duration_ms = millis(words.nth(2)?.trim_end_matches(','))?;
    let errors = text
        .lines()
        .filter_map(|line| line.trim_start().split_once(':'))
        .filter(|(name, _)| *name == "Socket errors" || name.starts_with("Non-2xx"))
        .flat_map(|(_, counts)| counts.split(|c: char| !c.is_ascii_digit()))
        .filter_map(|number| number.parse::<u64>().ok())
        .sum();
    let percentile = |name: &str| {
        let line = text
            .lines()
            .find_map(|line| line.trim_start().strip_prefix(name))?;
        millis(line.trim())
    };
    Some(Told {
        requests,
        duration: Duration::from_secs_f64(duration_ms / 1000.0),
        bytes: 0,
        errors,
        latency: Latency {
            p50: percentile("50.000%"),
            p90: percentile("90.000%"),
            p99: percentile("99.000%"),
            p999: percentile("99.900%"),
            max: percentile("100.000%"),
        },
    })
}

/// A time in wrk's units.
fn millis(text: &str) -> Option<f64> {
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(unit_at);
    let factor = match unit {
        "us" => 0.001,
        "ms" => 1.0,
        "s" => 1000.0,
        "m" => 60_000.0,
        "h" => 3_600_000.0,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::{Duration, parse};

    const REPORT: &str = "\
Running 4s test @ http://127.0.0.1:1/
  1 threads and 64 connections
  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%  850.00us
 75.000%    1.05ms
 90.000%    1.61s
 99.000%    0.85m
 99.900%    2.00s
 99.990%    2.00s
100.000%    3.00s

  Detailed Percentile spectrum:
       0.850     0.500000         4000         2.00
----------------------------------------------------------
  8003 requests in 4.01s, 1.51MB read
  Socket errors: connect 1, read 2, write 3, timeout 4
  Non-2xx or 3xx responses: 5
Requests/sec:   1995.76
";

    #[test]
    fn the_recorded_latency_is_taken_in_milliseconds() {
        let told = parse(REPORT).unwrap();
        assert_eq!(told.requests, 8003);
        assert_eq!(told.duration, Duration::from_millis(4010));
        assert_eq!(told.errors, 1 + 2 + 3 + 4 + 5);
        let expected = [0.85, 1610.0, 51_000.0, 2000.0, 3000.0].map(Some);
        assert_eq!(told.latency.all(), expected);
    }

    #[test]
    fn a_report_that_breaks_off_is_refused() {
        for text in ["", "Running 4s test", "  x requests in 4s, 1B read"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
