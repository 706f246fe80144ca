//! The comparison of one figure with its threshold.

use super::VerdictKind;
use super::thresholds::{Threshold, Unit};

/// One check.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The threshold's name.
    pub name: &'static str,
    /// In the unit of the threshold.
    pub figure: f64,
    pub unit: Unit,
    /// The limit that was exceeded; if none was, the one that would be exceeded first.
    pub threshold: f64,
    pub level: Level,
    /// The observation; after a failure also what to do next.
    pub advice: String,
    /// The verdict if this check fails.
    pub means: Option<VerdictKind>,
}

/// The result of a check.
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
    /// Compares `figure`; `seen` is always part of the message, `advice` only if a limit was exceeded.
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

    /// Limits `level` to a warning.
    pub(super) fn at_most_warn(mut self) -> Self {
        self.level = self.level.min(Level::Warn);
        self
    }
}
