//! ab's report, and its table of percentages (`-e`), which has microseconds where the report has
//! milliseconds. Neither goes beyond the 99th percentile but for the longest time.

use std::time::Duration;

use super::{Latency, Told, number_after};

/// `percentages` is what ab wrote to the file of `-e`.
pub(in crate::bench) fn parse(text: &str, percentages: &str) -> Option<Told> {
    let number = |name: &str| number_after::<u64>(text, name);
    let seconds: f64 = number_after(text, "Time taken for tests:")?;
    let errors = ["Failed requests:", "Write errors:", "Non-2xx responses:"]
        .into_iter()
        .filter_map(number)
        .sum();
    let percentile = |percent: &str| {
        let mut rows = percentages.lines().filter_map(|line| line.split_once(','));
        rows.find(|(of, _)| *of == percent)?.1.trim().parse().ok()
    };
    Some(Told {
        requests: number("Complete requests:")?,
        duration: Duration::try_from_secs_f64(seconds).ok()?,
        bytes: number("Total transferred:")?,
        errors,
        latency: Latency {
            p50: percentile("50"),
            p90: percentile("90"),
            p99: percentile("99"),
            p999: None,
            max: percentile("100"),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::{Duration, Latency, Told, parse};

    const REPORT: &str = "\
Concurrency Level:      4
Time taken for tests:   1.250 seconds
Complete requests:      28144
Failed requests:        2
   (Connect: 0, Receive: 0, Length: 2, Exceptions: 0)
Non-2xx responses:      3
Keep-Alive requests:    28144
Total transferred:      1744928 bytes
";

    const PERCENTAGES: &str = "Percentage served,Time in ms\n\
        0,0.015\n5,0.016\n50,0.050\n90,0.108\n99,0.130\n100,0.759\n";

    #[test]
    fn report_and_percentages_make_the_figures() {
        let expected = Told {
            requests: 28_144,
            duration: Duration::from_millis(1250),
            bytes: 1_744_928,
            errors: 5,
            latency: Latency {
                p50: Some(0.05),
                p90: Some(0.108),
                p99: Some(0.13),
                p999: None,
                max: Some(0.759),
            },
        };
        assert_eq!(parse(REPORT, PERCENTAGES), Some(expected));
    }

    #[test]
    fn what_ab_does_not_tell_is_absent() {
        let told = parse(REPORT, "").unwrap();
        assert_eq!(told.latency, Latency::default());
        assert_eq!(parse("Benchmarking 127.0.0.1", PERCENTAGES), None);
    }
}
