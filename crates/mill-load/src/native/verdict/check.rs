//! The comparison of one figure with its threshold.

use super::VerdictKind;
use super::thresholds::{Threshold, Unit};

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The threshold's name.
    pub name: &'static str,
    /// In the unit of the threshold.
    pub figure: f64,
    pub unit: Unit,
    /// The limit that was passed; if none was, the one that would be passed first.
    pub threshold: f64,
    pub level: Level,
    /// What was seen; if it is not as it should be, what to do next.
    pub advice: String,
    /// What the run is if this check fails.
    pub means: Option<VerdictKind>,
}

/// How a check went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Ok,
    Warn,
    Fail,
}

impl Level {
    /// As reports and JSON have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

impl Check {
    /// Compares `figure`; `seen` is what is said in any case, `advice` what is added if a limit was passed.
    pub(super) fn compare(
        threshold: &Threshold,
        figure: f64,
        means: impl Into<Option<VerdictKind>>,
        seen: &str,
        advice: &str,
    ) -> Self {
        let level = threshold.level(figure);
        let advice = match level {
            Level::Ok => format!("{seen}."),
            Level::Warn | Level::Fail => format!("{seen}: {advice}."),
        };
        Self {
            name: threshold.name,
            figure,
            unit: threshold.unit,
            threshold: if level == Level::Fail {
                threshold.fail
            } else {
                threshold.warn
            },
            level,
            advice,
            means: means.into(),
        }
    }

    /// Does not hold `level` above a warning.
    pub(super) fn at_most_warn(mut self) -> Self {
        self.level = self.level.min(Level::Warn);
        self
    }
}
