//! All limits, in one table.

use super::check::Level;
use thiserror::Error;

/// The subject of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Silence,
    Lost,
    Answers,
    Duration,
    Errors,
    ErrorStatuses,
    Connections,
    LateSends,
    Rate,
    Sizes,
    Steal,
    OtherCpu,
    ClientCpu,
    Preemptions,
    Link,
    Retransmissions,
    ListenOverflows,
    RateSpread,
    RateDrift,
    ServerCpu,
}

/// On which side of a limit a figure is bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The figure must not exceed the limit.
    Above,
    Below,
}

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Percent,
    Seconds,
    PerSecond,
    Count,
}

/// Two limits of one figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    pub subject: Subject,
    /// On the command line and in JSON.
    pub name: &'static str,
    pub unit: Unit,
    pub side: Side,
    /// Passed: a warning.
    pub warn: f64,
    /// Reached or passed: the check fails.
    pub fail: f64,
}

/// The limits that a run is judged by.
#[derive(Clone, Debug, PartialEq)]
pub struct Thresholds([Threshold; COUNT]);

/// Why a limit could not be set.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ThresholdError {
    #[error("{0}: no such threshold; there are {names}", names = DEFAULTS.map(|it| it.name).join(" "))]
    UnknownName(String),
    /// Not two numbers with a colon between them.
    #[error("{0}: write a threshold as name=warn:fail, such as client_cpu=85:95")]
    NotLimits(String),
}

impl Threshold {
    pub(super) fn level(&self, figure: f64) -> Level {
        let (passed_fail, passed_warn) = match self.side {
            Side::Above => (figure >= self.fail, figure > self.warn),
            Side::Below => (figure < self.fail, figure < self.warn),
        };
        match (passed_fail, passed_warn) {
            (true, _) => Level::Fail,
            (false, true) => Level::Warn,
            (false, false) => Level::Ok,
        }
    }
}

impl Thresholds {
    pub fn of(&self, subject: Subject) -> &Threshold {
        self.0
            .iter()
            .find(|threshold| threshold.subject == subject)
            .expect("the table has a line for every subject, as its test asserts")
    }

    pub fn iter(&self) -> impl Iterator<Item = &Threshold> {
        self.0.iter()
    }

    /// Sets limits as the command line writes them: `client_cpu=85:95`, warning first, in the threshold's unit.
    pub fn set(&mut self, text: &str) -> Result<(), ThresholdError> {
        let not_limits = || ThresholdError::NotLimits(String::from(text));
        let (name, limits) = text.split_once('=').ok_or_else(not_limits)?;
        let (warn, fail) = limits.split_once(':').ok_or_else(not_limits)?;
        let number = |text: &str| {
            let text = text.trim().trim_end_matches('%');
            text.parse().ok().filter(|value: &f64| value.is_finite())
        };
        let (Some(warn), Some(fail)) = (number(warn), number(fail)) else {
            return Err(not_limits());
        };
        let threshold = self
            .0
            .iter_mut()
            .find(|threshold| threshold.name == name.trim())
            .ok_or_else(|| ThresholdError::UnknownName(String::from(name)))?;
        (threshold.warn, threshold.fail) = (warn, fail);
        Ok(())
    }
}

impl Default for Thresholds {
    fn default() -> Self {
        Self(DEFAULTS)
    }
}

const fn limit(
    subject: Subject,
    name: &'static str,
    unit: Unit,
    side: Side,
    warn: f64,
    fail: f64,
) -> Threshold {
    Threshold {
        subject,
        name,
        unit,
        side,
        warn,
        fail,
    }
}

/// How many subjects there are.
const COUNT: usize = 20;

/// The defaults. Where no source is named, the limit is a convention: small enough that a figure within it does not
/// change a reader's conclusion, large enough for a busy machine.
const DEFAULTS: [Threshold; COUNT] = {
    use Side::{Above, Below};
    use Subject as S;
    use Unit::{Count, PerSecond, Percent, Seconds};
    [
        // Of the run: if a server stood still for a tenth of it, the rest does not describe that, and the rate is a
        // tenth too low.
        limit(S::Silence, "silence", Percent, Above, 0.0, 10.0),
        // Of the connections' time, for the same reason; one connection of a hundred that hangs is reported.
        limit(S::Lost, "lost", Percent, Above, 0.1, 10.0),
        // Without an answer there is nothing to judge; of 1000 answers ten are above the 99th percentile.
        limit(S::Answers, "answers", Count, Below, 1000.0, 1.0),
        // Five windows of a second: what a steady state needs at least (SNIA SSS PTS, five rounds).
        limit(S::Duration, "duration", Seconds, Below, 5.0, 1.0),
        // RFC 9411 7.1.3.4 allows 0.001 % of the transactions to fail.
        limit(S::Errors, "errors", Percent, Above, 0.001, 1.0),
        // Half of the answers: the rate is mainly that of errors.
        limit(
            S::ErrorStatuses,
            "error_statuses",
            Percent,
            Above,
            0.0,
            50.0,
        ),
        limit(S::Connections, "connections", Percent, Below, 100.0, 99.0),
        // A send that is a millisecond late changes a latency by an amount that matters in tuning.
        limit(S::LateSends, "late_sends", Percent, Above, 0.1, 1.0),
        // Nighthawk's adaptive load also uses 99 % as proof that the client kept up.
        limit(S::Rate, "rate", Percent, Below, 99.0, 97.0),
        limit(S::Sizes, "sizes", Percent, Above, 0.0, 1.0),
        limit(S::Steal, "steal", Percent, Above, 2.0, 5.0),
        // Of all CPU time; kernel threads, which work for the run too, stay below the first limit.
        limit(S::OtherCpu, "other_cpu", Percent, Above, 5.0, 20.0),
        // A thread at 95 % has no reserve for bursts.
        limit(S::ClientCpu, "client_cpu", Percent, Above, 85.0, 95.0),
        // Involuntary context switches of a thread per second; they never fail a run alone.
        limit(
            S::Preemptions,
            "preemptions",
            PerSecond,
            Above,
            100.0,
            f64::INFINITY,
        ),
        limit(S::Link, "link", Percent, Above, 90.0, 95.0),
        // TCP's throughput falls with the root of its loss: at 1 % the path is the limit (RFC 5348 3.1).
        limit(
            S::Retransmissions,
            "retransmissions",
            Percent,
            Above,
            0.1,
            1.0,
        ),
        // Of the attempts to connect.
        limit(
            S::ListenOverflows,
            "listen_overflows",
            Percent,
            Above,
            0.0,
            1.0,
        ),
        // Coefficient of variation of the intervals' rates, beyond what chance explains.
        limit(S::RateSpread, "rate_spread", Percent, Above, 10.0, 20.0),
        // Excursion of the fitted line over the run: SNIA SSS PTS allows 10 % of the mean.
        limit(S::RateDrift, "rate_drift", Percent, Above, 5.0, 10.0),
        // Reported without a verdict: busy from 90 %, idle below 50 %.
        limit(S::ServerCpu, "server_cpu", Percent, Above, 50.0, 90.0),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_has_one_line_of_its_own_name() {
        let thresholds = Thresholds::default();
        for threshold in thresholds.iter() {
            assert_eq!(thresholds.of(threshold.subject), threshold);
            let same = |other: &&Threshold| other.name == threshold.name;
            assert_eq!(thresholds.iter().filter(same).count(), 1);
        }
        assert_eq!(
            DEFAULTS.map(|threshold| threshold.subject as usize),
            core::array::from_fn(|n| n)
        );
        assert_eq!(Subject::ServerCpu as usize + 1, COUNT);
    }

    #[test]
    fn a_limit_is_tested_on_both_sides() {
        let thresholds = Thresholds::default();
        let check = |subject, figure, level| {
            assert_eq!(
                thresholds.of(subject).level(figure),
                level,
                "{subject:?} {figure}"
            );
        };
        check(Subject::ClientCpu, 85.0, Level::Ok);
        check(Subject::ClientCpu, 85.1, Level::Warn);
        check(Subject::ClientCpu, 94.9, Level::Warn);
        check(Subject::ClientCpu, 95.0, Level::Fail);
        check(Subject::Connections, 100.0, Level::Ok);
        check(Subject::Connections, 99.9, Level::Warn);
        check(Subject::Connections, 99.0, Level::Warn);
        check(Subject::Connections, 98.9, Level::Fail);
        check(Subject::ErrorStatuses, 0.0, Level::Ok);
        check(Subject::ErrorStatuses, 0.1, Level::Warn);
    }

    #[test]
    fn limits_are_set_by_name() {
        let mut thresholds = Thresholds::default();
        thresholds.set("client_cpu=50:60.5").unwrap();
        let client = thresholds.of(Subject::ClientCpu);
        assert_eq!((client.warn, client.fail), (50.0, 60.5));
        thresholds.set("errors=0%:2%").unwrap();
        assert_eq!(thresholds.of(Subject::Errors).fail, 2.0);
    }

    #[test]
    fn malformed_limits_are_errors_with_their_reason() {
        let mut thresholds = Thresholds::default();
        let mut refusal = |text| thresholds.set(text).unwrap_err().to_string();
        assert!(refusal("speed=1:2").starts_with("speed: no such threshold; there are silence "));
        for text in ["errors", "errors=1", "errors=1:x", "errors=NaN:1", ""] {
            assert!(refusal(text).contains("name=warn:fail"), "{text}");
        }
    }
}
