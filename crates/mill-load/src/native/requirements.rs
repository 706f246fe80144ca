//! Requirements on a run: `--max-p99 5ms`, `--max-errors 0`, `--min-rate 20k`.

use crate::native::options::values;
use crate::native::results::Results;
use crate::native::units;
use crate::silence::lost_share;
use core::time::Duration;

/// A requirement on a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Requirement {
    /// So many percent of the latencies are at most this.
    Latency { percent: f64, most: Duration },
    /// Failed requests and answers with a status above 399.
    Errors(MostErrors),
    /// Answers per second.
    Rate { least: f64 },
}

/// How many errors are allowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MostErrors {
    Count(u64),
    /// Of all finished requests, and of the connections' time: a server that is down fails few requests, because each
    /// connection waits before it tries again.
    Percent(f64),
}

/// A requirement and its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub requirement: Requirement,
    pub held: bool,
    /// What was measured, as text with its unit.
    pub measured: String,
}

impl Requirement {
    /// The option that asks for it.
    pub fn option(&self) -> &'static str {
        match self {
            Self::Latency { percent, .. } => LATENCIES
                .iter()
                .find(|(known, _, _)| known == percent)
                .map_or("--max-latency", |(_, option, _)| option),
            Self::Errors(_) => "--max-errors",
            Self::Rate { .. } => "--min-rate",
        }
    }

    /// Its limit, as written on the command line.
    pub fn limit(&self) -> String {
        match self {
            Self::Latency { most, .. } => units::duration(*most),
            Self::Errors(MostErrors::Count(count)) => units::count(*count),
            Self::Errors(MostErrors::Percent(percent)) => format!("{percent} %"),
            Self::Rate { least } => units::rate(*least),
        }
    }

    /// The figure that it is about.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Latency { percent, .. } => LATENCIES
                .iter()
                .find(|(known, _, _)| known == percent)
                .map_or("latency", |(_, _, name)| name),
            Self::Errors(_) => "errors",
            Self::Rate { .. } => "rate",
        }
    }

    /// Whether a run with so many connections met it. A run without an answer meets no latency and no rate.
    pub fn examine(&self, results: &Results, connections: u32) -> Outcome {
        let (held, measured) = match self {
            Self::Latency { percent, most } => {
                let latency = &results.measures.latency;
                let measured = latency.percentile(*percent);
                if latency.is_empty() {
                    (false, String::from("no answer"))
                } else {
                    (measured <= *most, units::duration(measured))
                }
            }
            Self::Errors(most) => most.examine(results, connections),
            Self::Rate { least } => (results.rate() >= *least, units::rate(results.rate())),
        };
        Outcome {
            requirement: *self,
            held,
            measured,
        }
    }
}

impl MostErrors {
    /// `3`, or `0.1%`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text.strip_suffix('%') {
            None => values::count(text, 0).map(Self::Count),
            Some(percent) => values::decimal(percent)
                .filter(|percent| *percent <= 100.0)
                .map(Self::Percent)
                .ok_or_else(|| format!("\"{text}\" is no share, such as 0.1%")),
        }
    }

    fn examine(self, results: &Results, connections: u32) -> (bool, String) {
        let errors = Errors::of(results, connections);
        match self {
            Self::Count(most) => (errors.count <= most, units::count(errors.count)),
            Self::Percent(most) => {
                let (share, of) = errors.worse();
                let percent = share * 100.0;
                (percent <= most, format!("{} %{of}", units::digits(percent)))
            }
        }
    }
}

/// The errors of a run, counted in both ways.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Errors {
    /// Failed requests, answers with a status above 399, and requests that hung when the run ended.
    count: u64,
    /// Of all that were finished or hung, 0 to 1.
    of_requests: f64,
    /// Of the connections' time, 0 to 1.
    of_time: f64,
}

impl Errors {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a share needs no more than 53 bits"
    )]
    pub(crate) fn of(results: &Results, connections: u32) -> Self {
        let tally = &results.tally;
        let count = tally.failed() + tally.statuses_bad + tally.hanging;
        let finished = tally.failed() + tally.answered + tally.hanging;
        Self {
            count,
            of_requests: count as f64 / finished.max(1) as f64,
            of_time: lost_share(tally, connections, results.measured),
        }
    }

    /// The larger share, and what it is a share of.
    pub(crate) fn worse(self) -> (f64, &'static str) {
        if self.of_time > self.of_requests {
            (self.of_time, " of the connections' time")
        } else {
            (self.of_requests, "")
        }
    }
}

/// Percentiles that have an option, with the names of both. The maximum is the hundredth percentile.
pub(crate) const LATENCIES: [(f64, &str, &str); 5] = [
    (50.0, "--max-p50", "p50"),
    (90.0, "--max-p90", "p90"),
    (99.0, "--max-p99", "p99"),
    (99.9, "--max-p999", "p99.9"),
    (100.0, "--max-latency", "longest latency"),
];

#[cfg(test)]
mod tests;
