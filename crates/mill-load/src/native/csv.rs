//! The time series as comma-separated values, one line an interval.

use crate::native::hlog::{Calendar, after};
use crate::native::results::Results;
use crate::native::series::Period;
use core::time::Duration;
use std::fmt::Write;

/// The whole table with its head. Units are in the names; `unix_s` is an interval's beginning by the wall clock, so
/// that the lines can be compared with those of a monitor. The warm-up ended after `warm_up`.
pub(super) fn emit(results: &Results, warm_up: Duration) -> String {
    let mut text = String::from(HEAD);
    let base = after(results.began, warm_up);
    for period in &results.periods {
        let _ = writeln!(
            text,
            "{},{:.3},{:.3},{},{},{},{:.1},{},{},{}{}",
            Calendar(after(base, period.begin)),
            period.begin.as_secs_f64(),
            period.end.as_secs_f64(),
            period.started,
            period.answered,
            period.failed,
            period.per_second(period.answered),
            period.bytes_received,
            period.connected,
            period.open,
            latencies(period),
        );
    }
    text
}

/// Microseconds with three decimals. Without an answer there is no latency: an empty field is not drawn as a zero.
fn latencies(period: &Period) -> String {
    let mut fields = String::new();
    for latency in [period.p50, period.p90, period.p99, period.max] {
        fields.push(',');
        if period.answered > 0 {
            let _ = write!(fields, "{:.3}", latency.as_secs_f64() * 1e6);
        }
    }
    fields
}

/// Counts are of the interval alone; `open` are the connections at its end. Latencies are from the intended start.
const HEAD: &str = "unix_s,begin_s,end_s,started,answered,failed,answered_per_s,bytes_received,connected,open,\
p50_us,p90_us,p99_us,max_us\n";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::sample_results::results;

    #[test]
    fn every_interval_is_a_line() {
        assert_eq!(
            emit(&results(true), Duration::from_secs(3)),
            "unix_s,begin_s,end_s,started,answered,failed,answered_per_s,bytes_received,connected,\
             open,p50_us,p90_us,p99_us,max_us\n\
             1700000003.250,0.000,1.000,603,600,2,600.0,60000,10,10,\
             3000.319,5402.623,5943.295,6000.639\n\
             1700000004.250,1.000,2.000,400,400,1,400.0,40000,0,10,\
             2000.895,3600.383,3960.831,4001.791\n"
        );
    }

    #[test]
    fn an_interval_without_answers_has_no_latencies() {
        let mut results = results(true);
        results.periods.truncate(1);
        let quiet = &mut results.periods[0];
        quiet.answered = 0;
        quiet.failed = 603;
        let text = emit(&results, Duration::ZERO);
        let line = text.lines().last().unwrap();
        assert_eq!(
            line,
            "1700000000.250,0.000,1.000,603,0,603,0.0,60000,10,10,,,,"
        );
        assert_eq!(line.matches(',').count(), HEAD.matches(',').count());
    }
}
