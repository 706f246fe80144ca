//! The figures of a client of our own, printed in wrk's format: the lab parses them as wrk's.

use std::time::Duration;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures {
    exchanges: usize,
    duration: Duration,
    /// Exchanges that were not answered in time.
    lost: u64,
    /// p50, p90, p99, p99.9 and the longest, in microseconds.
    latency_us: [f64; 5],
}

impl Figures {
    pub(super) fn of(mut latencies_ns: Vec<u32>, lost: u64, duration: Duration) -> Self {
        latencies_ns.sort_unstable();
        let at = |thousandths: usize| {
            let index = (latencies_ns.len() * thousandths).div_ceil(1000);
            let ns = latencies_ns.get(index.saturating_sub(1));
            ns.map_or(0.0, |ns| f64::from(*ns) / 1e3)
        };
        Self {
            exchanges: latencies_ns.len(),
            duration,
            lost,
            latency_us: [500, 900, 990, 999, 1000].map(at),
        }
    }

    /// Responses and their bytes, with the line that wrk's script prints. An exchange replaces so many responses, and has so
    /// many bytes.
    pub(super) fn emit(
        &self,
        what: &str,
        connections: usize,
        answers_each: f64,
        bytes_each: usize,
    ) -> String {
        let seconds = self.duration.as_secs_f64();
        let answers = self.exchanges as f64 * answers_each;
        let bytes = (self.exchanges * bytes_each) as f64;
        let [p50, p90, p99, p999, max] = self.latency_us;
        let lost = self.lost;
        let (rate, transfer) = (answers / seconds, bytes / seconds);
        format!(
            "Running {seconds:.2}s test @ {what}\n  1 threads and {connections} connections\n\
             \x20   Latency {p50:.2}us 0.00us {max:.2}us 0.00%\n    Req/Sec {rate:.2} 0.00 {rate:.2} 0.00%\n\
             \x20 {answers:.0} requests in {seconds:.2}s, {bytes:.0}B read\n\
             \x20 Socket errors: connect 0, read {lost}, write 0, timeout 0\n\
             Requests/sec: {rate:.2}\nTransfer/sec: {transfer:.2}B\n\
             FIGURES {answers} {} {bytes} {p50} {p90} {p99} {p999} {max}",
            seconds * 1e6
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use mill_lab::output::parse;
    use mill_lab::recipe::Tool;

    use super::Figures;

    #[test]
    fn the_lab_reads_it_as_wrks() {
        let ten = (1..=10).map(|us| us * 1000).collect();
        let figures = Figures::of(ten, 3, Duration::from_secs(2));
        let text = figures.emit("raw frames", 64, 1.0, 306);
        let printed = parse(Tool::Wrk, &text).unwrap();
        for (name, expected) in [
            ("requests_per_s", 5.0),
            ("latency_s.p50", 0.000_005),
            ("latency_s.p999", 0.000_01),
            ("errors.read", 3.0),
            ("bytes_per_response", 306.0),
        ] {
            assert!((printed.figures[name] - expected).abs() < 1e-9, "{name}");
        }
    }
}
