//! Families of samples in the text format of Prometheus.

use mill_metrics::LatencyCounts;
use std::fmt::{self, Write};

/// Appends families whose names begin alike.
pub(super) struct Families<'o> {
    pub(super) prefix: &'static str,
    pub(super) out: &'o mut String,
}

impl Families<'_> {
    pub(super) fn head(&mut self, name: &str, kind: &str, help: &str) {
        let prefix = self.prefix;
        // Writing to a string does not fail.
        let _ = writeln!(
            self.out,
            "# HELP {prefix}{name} {help}\n# TYPE {prefix}{name} {kind}"
        );
    }

    /// A sample: its name, labels and value.
    pub(super) fn line(&mut self, sample: fmt::Arguments<'_>) {
        let _ = writeln!(self.out, "{}{sample}", self.prefix);
    }

    /// Answers by the class of their status.
    pub(super) fn classes(&mut self, labels: &str, classes: [u64; 5]) {
        for (class, count) in (1..).zip(classes) {
            self.line(format_args!(
                "responses_total{{{labels},class=\"{class}xx\"}} {count}"
            ));
        }
    }

    /// Times of answers; nothing before the first one.
    pub(super) fn histogram(&mut self, name: &str, labels: &str, counts: &LatencyCounts) {
        let total = counts.total();
        if total == 0 {
            return;
        }
        for (below, count) in counts.cumulative() {
            let le = below.as_secs_f64();
            self.line(format_args!(
                "{name}_bucket{{{labels},le=\"{le}\"}} {count}"
            ));
        }
        self.line(format_args!(
            "{name}_bucket{{{labels},le=\"+Inf\"}} {total}"
        ));
        let sum = counts.sum().as_secs_f64();
        self.line(format_args!("{name}_sum{{{labels}}} {sum}"));
        self.line(format_args!("{name}_count{{{labels}}} {total}"));
    }
}

/// A label's value, as the format wants it.
pub(super) fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    text.replace('\n', "\\n")
}
