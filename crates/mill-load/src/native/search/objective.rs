//! The objective of a search, as on the command line: `p99<5ms,errors<0.1%`.

use core::time::Duration;
use mill_metrics::Histogram;
use std::fmt;
use thiserror::Error;

/// Goals that must all be met. Never empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    pub goals: Vec<Goal>,
}

/// One goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    pub figure: Figure,
    /// In nanoseconds, or for errors a share, 0 to 1.
    pub limit: f64,
    /// Whether the limit itself is allowed: `<=`.
    pub inclusive: bool,
}

/// The figure of a goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// A percentile of the latency.
    Percentile(f64),
    Mean,
    Max,
    /// Requests that failed or were answered with an error, of all.
    Errors,
}

/// A goal that was not met.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Missed {
    pub goal: Goal,
    pub figure: f64,
}

/// Why a text is no objective.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}: no goal; write for instance p99<5ms, p99.9<=20ms, mean<2ms, max<1s or errors<0.1%")]
pub struct ObjectiveError(String);

impl Objective {
    pub fn parse(text: &str) -> Result<Self, ObjectiveError> {
        let goals = text
            .split(',')
            .map(|goal| Goal::parse(goal).ok_or_else(|| ObjectiveError(String::from(goal))))
            .collect::<Result<_, _>>()?;
        Ok(Self { goals })
    }

    /// How many answers a trial needs to be meaningful: of a hundred one is above the 99th percentile.
    pub fn answers_min(&self) -> f64 {
        let needed = self.goals.iter().map(|goal| match goal.figure {
            Figure::Percentile(percent) if percent < 100.0 => 100.0 / (100.0 - percent),
            Figure::Percentile(_) | Figure::Mean | Figure::Max | Figure::Errors => ANSWERS_MIN,
        });
        needed.fold(ANSWERS_MIN, f64::max)
    }

    /// The goal that is missed most, if any is. `errors` is a share, 0 to 1.
    pub fn missed(&self, latency: &Histogram, errors: f64) -> Option<Missed> {
        self.goals
            .iter()
            .map(|&goal| Missed {
                goal,
                figure: goal.figure.of(latency, errors),
            })
            .filter(|missed| !missed.goal.holds(missed.figure))
            .max_by(|one, other| one.excess().total_cmp(&other.excess()))
    }
}

impl Goal {
    fn parse(text: &str) -> Option<Self> {
        let (name, rest) = text.split_once('<')?;
        let (inclusive, limit) = match rest.strip_prefix('=') {
            Some(limit) => (true, limit),
            None => (false, rest),
        };
        let figure = Figure::parse(name.trim())?;
        let limit = limit.trim();
        let limit = match figure {
            Figure::Errors => share(limit)?,
            _ => nanos(limit)?,
        };
        let possible = limit > 0.0 || (inclusive && limit == 0.0);
        possible.then_some(Self {
            figure,
            limit,
            inclusive,
        })
    }

    fn holds(&self, figure: f64) -> bool {
        figure < self.limit || (self.inclusive && figure <= self.limit)
    }
}

impl Figure {
    fn parse(name: &str) -> Option<Self> {
        match name {
            "mean" => Some(Self::Mean),
            "max" => Some(Self::Max),
            "errors" => Some(Self::Errors),
            _ => {
                let percent: f64 = name.strip_prefix('p')?.parse().ok()?;
                (percent > 0.0 && percent <= 100.0).then_some(Self::Percentile(percent))
            }
        }
    }

    fn of(self, latency: &Histogram, errors: f64) -> f64 {
        let duration = match self {
            Self::Errors => return errors,
            Self::Percentile(percent) => latency.percentile(percent),
            Self::Mean => latency.mean(),
            Self::Max => latency.max(),
        };
        duration.as_nanos() as f64
    }
}

impl Missed {
    /// The figure divided by the limit.
    pub fn excess(&self) -> f64 {
        if self.goal.limit > 0.0 {
            self.figure / self.goal.limit
        } else {
            f64::INFINITY
        }
    }
}

/// A duration as nanoseconds: `5ms`, `250us`, `1.5s`.
fn nanos(text: &str) -> Option<f64> {
    let units = [
        ("ns", 1.0),
        ("us", 1e3),
        ("µs", 1e3),
        ("ms", 1e6),
        ("s", 1e9),
    ];
    let (number, scale) = units
        .iter()
        .find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)))?;
    let value: f64 = number.trim().parse().ok()?;
    (value.is_finite() && value >= 0.0).then_some(value * scale)
}

/// A share: `0.1%` or `0.001`.
fn share(text: &str) -> Option<f64> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(number) => (number, 0.01),
        None => (text, 1.0),
    };
    let value: f64 = number.trim().parse::<f64>().ok()? * scale;
    (0.0..=1.0).contains(&value).then_some(value)
}

impl fmt::Display for Objective {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, goal) in self.goals.iter().enumerate() {
            if index > 0 {
                formatter.write_str(",")?;
            }
            write!(formatter, "{goal}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.inclusive { "<=" } else { "<" };
        let limit = Value(self.figure, self.limit);
        write!(formatter, "{}{sign}{limit}", self.figure)
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Percentile(percent) => write!(formatter, "p{percent}"),
            Self::Mean => formatter.write_str("mean"),
            Self::Max => formatter.write_str("max"),
            Self::Errors => formatter.write_str("errors"),
        }
    }
}

impl fmt::Display for Missed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figure = Value(self.goal.figure, self.figure);
        write!(
            formatter,
            "{} was {figure}, not {}",
            self.goal.figure, self.goal
        )
    }
}

/// Answers that any figure needs.
const ANSWERS_MIN: f64 = 10.0;

/// A number in the unit of its figure.
struct Value(Figure, f64);

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Figure::Errors => write!(formatter, "{}%", rounded(self.1 * 100.0)),
            _ => write!(
                formatter,
                "{:?}",
                Duration::from_secs_f64(rounded(self.1 / 1e9))
            ),
        }
    }
}

/// Six digits, so that a share read in percent is written as it was read.
fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_objective_is_written_as_it_is_read() {
        let check = |text: &str, expected: &str| {
            assert_eq!(Objective::parse(text).unwrap().to_string(), expected);
        };
        check("p99<5ms,errors<0.1%", "p99<5ms,errors<0.1%");
        check(" p99.9 <= 250us , max<1.5s", "p99.9<=250µs,max<1.5s");
        check("mean<2ms,errors<=0", "mean<2ms,errors<=0%");
        check("errors<1e-5", "errors<0.001%");
        check("p100<7s", "p100<7s");
    }

    #[test]
    fn a_percentile_needs_answers_beyond_it() {
        let check = |text: &str, expected: f64| {
            let needed = Objective::parse(text).unwrap().answers_min();
            assert!((needed - expected).abs() < 1e-6, "{text}: {needed}");
        };
        check("p50<5ms", 10.0);
        check("p99<5ms", 100.0);
        check("p99<5ms,p99.9<9ms,errors<1%", 1000.0);
        check("p100<5ms", 10.0);
        check("max<5ms", 10.0);
    }

    #[test]
    fn malformed_goals_are_errors_with_their_reason() {
        for text in [
            "",
            "p99",
            "p99>5ms",
            "p99<5",
            "p0<5ms",
            "p101<5ms",
            "q<1ms",
            "errors<0",
            "errors<200%",
            "p99<-1ms",
            "p99<5ms,",
            "max<infs",
        ] {
            let error = Objective::parse(text).unwrap_err();
            assert!(error.to_string().contains("no goal; write"), "{text}");
        }
    }

    #[test]
    fn the_goal_that_is_missed_most_is_named() {
        let mut latency = Histogram::new();
        for millis in 1..=100 {
            latency.record(Duration::from_millis(millis));
        }
        let check = |text: &str, errors: f64, expected: Option<&str>| {
            let missed = Objective::parse(text).unwrap().missed(&latency, errors);
            let missed = missed.map(|missed| missed.goal.to_string());
            assert_eq!(missed.as_deref(), expected, "{text}");
        };
        check("p50<51ms,p99<120ms", 0.0, None);
        check("p50<25ms,p99<90ms", 0.0, Some("p50<25ms"));
        check("max<101ms,errors<1%", 0.02, Some("errors<1%"));
        check("errors<=0", 0.0, None);
        check("errors<=0", 0.0001, Some("errors<=0%"));
    }
}
