//! The time series as comma-separated values, one line an interval.

use crate::native::results::Results;
use core::time::Duration;
use std::fmt::Write;

/// The whole table with its head. Units are in the names.
pub(super) fn emit(results: &Results) -> String {
    let mut text = String::from(
        "begin_s,end_s,started,answered,failed,answered_per_s,bytes_received,connected,open,\
         p50_ms,p90_ms,p99_ms,max_ms\n",
    );
    for period in &results.periods {
        let _ = writeln!(
            text,
            "{:.3},{:.3},{},{},{},{:.1},{},{},{},{},{},{},{}",
            period.begin.as_secs_f64(),
            period.end.as_secs_f64(),
            period.started,
            period.answered,
            period.failed,
            period.per_second(period.answered),
            period.bytes_received,
            period.connected,
            period.open,
            millis(period.p50),
            millis(period.p90),
            millis(period.p99),
            millis(period.max),
        );
    }
    text
}

/// Milliseconds to the microsecond.
fn millis(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::sample_results::results;

    #[test]
    fn every_interval_is_a_line() {
        assert_eq!(
            emit(&results(true)),
            "begin_s,end_s,started,answered,failed,answered_per_s,bytes_received,connected,open,\
             p50_ms,p90_ms,p99_ms,max_ms\n\
             0.000,1.000,603,600,2,600.0,60000,10,10,3.000,5.403,5.943,6.001\n\
             1.000,2.000,400,400,1,400.0,40000,0,10,2.001,3.600,3.961,4.002\n"
        );
    }
}
