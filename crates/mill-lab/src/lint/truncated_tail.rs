//! wrk forgets answers that took as long as its timeout or longer: its maximum is the timeout, not the longest wait.

use super::sample::Sample;
use super::warning;
use crate::findings::Warning;

pub(super) fn of(samples: &[Sample]) -> Vec<Warning> {
    let cut: Vec<(&Sample, f64)> = samples
        .iter()
        .filter_map(|sample| {
            // Only wrk samples each thread's rate.
            sample.figure("thread_requests_per_s.mean")?;
            let timeouts = sample
                .figure("errors.timeout")
                .filter(|count| *count > 0.0)?;
            let max = sample.figure("latency_s.max")?;
            (max <= TIMEOUT_S + ROUNDING_S).then_some((sample, timeouts))
        })
        .collect();
    let Some((worst, most)) = cut.iter().max_by(|one, other| one.1.total_cmp(&other.1)) else {
        return Vec::new();
    };
    let places: Vec<&str> = cut.iter().map(|(one, _)| one.place.as_str()).collect();
    let text = format!(
        "The longest latencies are missing in {} of {} results ({}): answers after 2 s and later are counted as timeouts, up to {most} of them ({}), and not in the maximum.",
        cut.len(),
        samples.len(),
        places.join(", "),
        worst.place,
    );
    vec![warning("truncated-tail", text, ADVICE)]
}

const ADVICE: &str = "Do not compare maxima; give --timeout 30s, or use a tool that counts every request to its end.";

/// wrk's --timeout where none is given, seconds.
const TIMEOUT_S: f64 = 2.0;

/// wrk prints two digits after the point.
const ROUNDING_S: f64 = 0.005;
