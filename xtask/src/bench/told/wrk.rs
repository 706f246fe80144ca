//! wrk's figures, unrounded, through its `done` hook: its own report has three digits.

use std::time::Duration;

use super::{Latency, Told};

/// A script that only has `done` leaves wrk's fast path as it is.
pub(in crate::bench) const SCRIPT: &str = r#"
function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format("FIGURES %d %d %d %d %d %d %d %d %d\n",
    summary.requests, summary.duration, summary.bytes,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout,
    latency:percentile(50), latency:percentile(90), latency:percentile(99),
    latency:percentile(99.9), latency.max))
end
"#;

pub(in crate::bench) fn parse(text: &str) -> Option<Told> {
    let figures = text
        .lines()
        .find_map(|line| line.strip_prefix("FIGURES "))?;
    let figures: Vec<u64> = figures
        .split(' ')
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    let &[
        requests,
        duration_us,
        bytes,
        errors,
        p50,
        p90,
        p99,
        p999,
        max,
    ] = figures.as_slice()
    else {
        return None;
    };
    let ms = |us: u64| Some(us as f64 / 1000.0);
    Some(Told {
        requests,
        duration: Duration::from_micros(duration_us),
        bytes,
        errors,
        latency: Latency {
            p50: ms(p50),
            p90: ms(p90),
            p99: ms(p99),
            p999: ms(p999),
            max: ms(max),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::{Duration, Latency, Told, parse};

    #[test]
    fn the_figures_are_found_behind_wrks_own_text() {
        let text =
            "Running 2s test\n  Requests/sec: 1\nFIGURES 10 2000000 850 6 50 90 99 999 1000\n";
        let expected = Told {
            requests: 10,
            duration: Duration::from_secs(2),
            bytes: 850,
            errors: 6,
            latency: Latency {
                p50: Some(0.05),
                p90: Some(0.09),
                p99: Some(0.099),
                p999: Some(0.999),
                max: Some(1.0),
            },
        };
        assert_eq!(parse(text), Some(expected));
    }

    #[test]
    fn text_without_all_figures_is_refused() {
        for text in ["", "FIGURES 1 2 3", "FIGURES 1 2 3 4 5 6 7 8 -1"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
