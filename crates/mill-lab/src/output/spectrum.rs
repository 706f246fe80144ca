//! Percentiles as wrk and wrk2 print them.
//!
//! ```text
//!   Latency Distribution                                          wrk --latency
//!      50%   17.98ms
//!   Latency Distribution (HdrHistogram - Recorded Latency)        wrk2 -L
//!  50.000%   17.98ms
//!   Detailed Percentile spectrum:
//!        Value   Percentile   TotalCount 1/(1-Percentile)
//!        0.030     0.000000            1         1.00             milliseconds
//! #[Mean    =        0.034, StdDeviation   =        0.010]
//!   Latency Distribution (HdrHistogram - Uncorrected Latency …)   wrk2 -U: the same once more
//! ```

use super::Printed;
use super::figures::percentile_name;
use super::quantity::Quantity;

/// Reads all that is there.
pub(super) fn read(text: &str, printed: &mut Printed) {
    let mut state = State::Outside;
    let mut fine = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if line.contains("Latency Distribution") {
            let raw = line.contains("Uncorrected");
            state = if raw { State::Raw } else { State::Coarse };
        } else if line.contains("Detailed Percentile spectrum") {
            state = match state {
                State::Raw | State::RawFine => State::RawFine,
                State::Outside | State::Coarse | State::Fine => State::Fine,
            };
        } else if line.contains(" requests in ") {
            state = State::Outside;
        }
        match state {
            State::Coarse | State::Raw => {
                if let Some((percent, seconds)) = coarse(&words) {
                    if state == State::Raw {
                        let name = percentile_name("latency_s.uncorrected", percent);
                        printed.set(&name, seconds);
                    } else {
                        printed.add_percentile(percent, seconds);
                    }
                }
            }
            State::Fine => fine.extend(fine_step(&words)),
            State::Outside | State::RawFine => {}
        }
    }
    if !fine.is_empty() {
        printed.percentiles = fine;
    }
    printed.sort_percentiles();
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Outside,
    Coarse,
    Fine,
    Raw,
    RawFine,
}

/// `50%   17.98ms`.
fn coarse(words: &[&str]) -> Option<(f64, f64)> {
    let [percent, time] = words else { return None };
    let percent = Quantity::plain(percent.strip_suffix('%')?)?.value;
    Some((percent, Quantity::time(time)?.value))
}

/// `0.030     0.000000            1         1.00`: milliseconds, a share, a count, and `inf` at last.
fn fine_step(words: &[&str]) -> Option<(f64, f64)> {
    let [value, share, _, _] = words else {
        return None;
    };
    let seconds = Quantity::plain(value)?.value / 1000.0;
    Some((Quantity::plain(share)?.value * 100.0, seconds))
}
