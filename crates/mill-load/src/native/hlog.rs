//! The latencies as an HdrHistogram log, version 1.3: one line an interval, read by HistogramLogAnalyzer, hdr-plot and others.

use crate::native::results::Results;
use core::fmt;
use core::time::Duration;
use mill_runtime::time::UnixTime;
use std::fmt::Write;

/// The whole log. StartTime is the beginning of the run; BaseTime, which the lines' times count from, is the end of the
/// warm-up, `warm_up` later. The longest latency is in milliseconds, the histograms themselves are in nanoseconds.
pub(super) fn emit(results: &Results, warm_up: Duration) -> String {
    let start = Calendar(results.began);
    let base = Calendar(after(results.began, warm_up));
    let mut text = format!(
        "#[Logged with millstream {}]\n\
         #[Histogram log format version 1.3]\n\
         #[Latencies in nanoseconds from the intended start; Interval_Max in milliseconds]\n\
         #[StartTime: {start} (seconds since epoch)]\n\
         #[BaseTime: {base} (seconds since epoch)]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
        env!("CARGO_PKG_VERSION"),
    );
    for period in &results.periods {
        let _ = writeln!(
            text,
            "{},{},{},{}",
            thousandths(period.begin),
            thousandths(period.length()),
            thousandths(period.max * 1000),
            period.histogram
        );
    }
    text
}

/// Seconds with three decimals; for a time multiplied by a thousand, milliseconds.
fn thousandths(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64())
}

/// `1700000000.250`: a wall-clock time in seconds since the epoch. Readers reject earlier ones.
pub(super) struct Calendar(pub(super) UnixTime);

impl fmt::Display for Calendar {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(time) = self;
        write!(formatter, "{}.{:03}", time.seconds.max(0), time.millis())
    }
}

/// The wall-clock time `later` than `time`.
pub(super) fn after(time: UnixTime, later: Duration) -> UnixTime {
    let nanos = u64::from(time.nanos) + u64::from(later.subsec_nanos());
    let seconds = later.as_secs().saturating_add(nanos / 1_000_000_000);
    UnixTime {
        seconds: time.seconds.saturating_add_unsigned(seconds),
        nanos: u32::try_from(nanos % 1_000_000_000).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::sample_results::results;
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    #[test]
    fn other_readers_find_every_interval_with_its_latencies() {
        let results = results(true);
        let text = emit(&results, Duration::from_secs(2));
        let mut counts = Vec::new();
        let mut times = Vec::new();
        for entry in IntervalLogIterator::new(text.as_bytes()) {
            match entry.expect("the log is in the form that its readers expect") {
                LogEntry::StartTime(time) | LogEntry::BaseTime(time) => {
                    times.push(time.as_millis());
                }
                LogEntry::Interval(interval) => {
                    let bytes = mill_metrics::base64::decode(interval.encoded_histogram()).unwrap();
                    let read: Histogram<u64> = Deserializer::new()
                        .deserialize(&mut bytes.as_slice())
                        .unwrap();
                    let max_ms = Duration::from_nanos(read.max()).as_secs_f64() * 1e3;
                    assert!((max_ms - interval.max()).abs() < 0.001, "{max_ms}");
                    counts.push((interval.start_timestamp().as_secs(), read.len()));
                }
            }
        }
        assert_eq!(times, [1_700_000_000_250, 1_700_000_002_250]);
        assert_eq!(counts, [(0, 600), (1, 400)]);
    }

    #[test]
    fn its_head_is_what_java_writes() {
        let text = emit(&results(false), Duration::from_millis(2750));
        let lines: Vec<&str> = text.lines().take(6).collect();
        assert_eq!(
            lines[1..],
            [
                "#[Histogram log format version 1.3]",
                "#[Latencies in nanoseconds from the intended start; Interval_Max in milliseconds]",
                "#[StartTime: 1700000000.250 (seconds since epoch)]",
                "#[BaseTime: 1700000003.000 (seconds since epoch)]",
                "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\
                 \"Interval_Compressed_Histogram\"",
            ]
        );
        let first = text.lines().nth(6).unwrap();
        assert!(first.starts_with("0.000,1.000,6.001,HISTFAAA"), "{first}");
    }

    #[track_caller]
    fn check_after(nanos: u32, later: Duration, expected: &str) {
        let time = UnixTime { seconds: 10, nanos };
        assert_eq!(Calendar(after(time, later)).to_string(), expected);
    }

    #[test]
    fn times_of_the_calendar_carry_over_and_never_wrap() {
        check_after(0, Duration::ZERO, "10.000");
        check_after(999_999_999, Duration::from_nanos(1), "11.000");
        check_after(700_000_000, Duration::from_millis(2500), "13.200");
        check_after(0, Duration::MAX, "9223372036854775807.999");
        assert_eq!(Calendar(UnixTime::from_seconds(-5)).to_string(), "0.000");
    }
}
