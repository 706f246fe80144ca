//! The latencies as an HdrHistogram log, version 1.3: one line an interval, read by HistogramLogAnalyzer, hdr-plot and others.

use crate::native::results::Results;
use core::time::Duration;
use std::fmt::Write;

/// The whole log. Times of lines count from the beginning of the measured period; the longest latency is in
/// milliseconds, the histograms themselves are in nanoseconds.
pub(super) fn emit(results: &Results) -> String {
    let began = &results.began;
    let moment = format!("{}.{:03}", began.seconds, began.millis());
    let mut text = format!(
        "#[Logged with millstream {}]\n\
         #[Histogram log format version 1.3]\n\
         #[StartTime: {moment} (seconds since epoch)]\n\
         #[BaseTime: {moment} (seconds since epoch)]\n\
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

/// Seconds with three digits; of a thousandfold time milliseconds.
fn thousandths(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64())
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
        let text = emit(&results);
        let mut counts = Vec::new();
        let mut times = 0;
        for entry in IntervalLogIterator::new(text.as_bytes()) {
            match entry.expect("the log is in the form that its readers expect") {
                LogEntry::StartTime(time) | LogEntry::BaseTime(time) => {
                    assert_eq!(time, Duration::from_millis(1_700_000_000_250));
                    times += 1;
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
        assert_eq!(times, 2);
        assert_eq!(counts, [(0, 600), (1, 400)]);
    }

    #[test]
    fn its_head_is_what_java_writes() {
        let text = emit(&results(false));
        let lines: Vec<&str> = text.lines().take(5).collect();
        assert_eq!(
            lines[1..],
            [
                "#[Histogram log format version 1.3]",
                "#[StartTime: 1700000000.250 (seconds since epoch)]",
                "#[BaseTime: 1700000000.250 (seconds since epoch)]",
                "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\
                 \"Interval_Compressed_Histogram\"",
            ]
        );
        let first = text.lines().nth(5).unwrap();
        assert!(first.starts_with("0.000,1.000,6.001,HISTFAAA"), "{first}");
    }
}
