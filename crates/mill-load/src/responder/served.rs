//! What was served, and its delays.

use core::time::Duration;
use mill_metrics::Histogram;
use std::io::{self, Write};

/// The counts of a responder; those of several threads are added.
#[derive(Clone, Debug)]
pub struct Served {
    pub connections: u64,
    /// Requests that were answered, correctly or not.
    pub answered: u64,
    /// Requests that a fault left without any answer.
    pub unanswered: u64,
    /// Bytes of answers.
    pub bytes: u64,
    /// From when a request was read to when its answer was queued: the true values for a generator's figures.
    pub given: Histogram,
    /// From when an answer was due to when it was queued.
    pub late: Histogram,
}

impl Default for Served {
    fn default() -> Self {
        Self {
            connections: 0,
            answered: 0,
            unanswered: 0,
            bytes: 0,
            given: Histogram::new(),
            late: Histogram::new(),
        }
    }
}

impl Served {
    /// Adds the counts of another thread.
    pub fn add(&mut self, other: &Self) {
        self.connections += other.connections;
        self.answered += other.answered;
        self.unanswered += other.unanswered;
        self.bytes += other.bytes;
        self.given.add(&other.given);
        self.late.add(&other.late);
    }

    /// Writes two lines, and with delays a table.
    pub fn emit(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "answered {} requests on {} connections, {} bytes sent",
            self.answered, self.connections, self.bytes
        )?;
        if self.unanswered > 0 {
            writeln!(out, "left {} requests without an answer", self.unanswered)?;
        }
        if self.given.is_empty() {
            return Ok(());
        }
        write!(out, "{:12}", "")?;
        for (name, _) in COLUMNS {
            write!(out, " {name:>10}")?;
        }
        for (name, histogram) in [("delay given", &self.given), ("of it late", &self.late)] {
            write!(out, "\n{name:12}")?;
            for (_, percent) in COLUMNS {
                let text = millis(histogram.percentile(percent));
                write!(out, " {text:>10}")?;
            }
        }
        writeln!(out)
    }
}

/// `2.004 ms`: always with microseconds.
fn millis(duration: Duration) -> String {
    format!("{:.3} ms", duration.as_secs_f64() * 1e3)
}

/// Percentiles that are shown.
const COLUMNS: [(&str, f64); 6] = [
    ("50%", 50.0),
    ("90%", 90.0),
    ("99%", 99.0),
    ("99.9%", 99.9),
    ("99.99%", 99.99),
    ("max", 100.0),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn text(served: &Served) -> String {
        let mut out = Vec::new();
        served.emit(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn counts_of_served_requests_are_written() {
        let mut served = Served {
            connections: 2,
            answered: 40,
            bytes: 3600,
            ..Served::default()
        };
        served.add(&served.clone());
        let line = "answered 80 requests on 4 connections, 7200 bytes sent\n";
        assert_eq!(text(&served), line);
        served.unanswered = 3;
        assert_eq!(
            text(&served),
            format!("{line}left 3 requests without an answer\n")
        );
    }

    #[test]
    fn actual_delays_are_written() {
        let mut served = Served::default();
        served.given.record(Duration::from_millis(2));
        served.late.record(Duration::from_micros(7));
        let text = text(&served);
        // Histograms return the upper end of a range of equal values.
        let row = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(row("delay given").ends_with("2.001 ms"), "{text}");
        assert!(row("of it late").ends_with("0.007 ms"), "{text}");
    }
}
