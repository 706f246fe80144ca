//! The highest rate at which a server meets an objective.
//!
//! A value that gives the next rate to try: double the rate until the objective is missed, halve the distance until the
//! limit is known precisely enough, then confirm the result in a long trial. Short trials first and a long last one,
//! and a miss that counts only when it is repeated, are taken from RFC 9971 (multiple loss ratio search); a rate counts
//! as met only if the requests were really sent at it, as in Nighthawk's adaptive load.

/// The trials as a table.
mod curve;
/// The objective.
mod objective;
/// Each trial as a run.
mod trials;

pub use curve::{Point, emit_curve};
pub use objective::{Figure, Goal, Missed, Objective, ObjectiveError};
pub use trials::{Searched, search};

use core::time::Duration;

/// The parameters of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Requests per second of the first trial.
    pub start: f64,
    /// The lowest rate that is tried: below it a trial has too few answers to evaluate the objective.
    pub rate_min: f64,
    /// The highest rate that is tried.
    pub rate_max: f64,
    /// The result and the lowest rate that missed differ by no more than this share.
    pub precision: f64,
    /// Of the trials that approach the limit.
    pub short: Duration,
    /// Of the trial that confirms it.
    pub long: Duration,
}

/// One run of an open loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// Requests per second.
    pub rate: f64,
    pub duration: Duration,
}

/// The result of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    Kept,
    /// The objective was missed, by this factor.
    Missed {
        excess: f64,
    },
    /// The requests could not be sent at this rate: less than [`SEND_RATE_MIN`] of them were.
    NotSent,
    /// No request was answered.
    NoAnswer,
}

/// The search. Call [`Search::next`] and, after that trial, [`Search::on_result`], until there is no next.
#[derive(Clone, Debug)]
pub struct Search {
    settings: Settings,
    /// The highest rate that was met, and whether in a long trial.
    lower: Option<(f64, bool)>,
    /// The lowest rate that was not met, and why.
    upper: Option<(f64, Limit)>,
    /// A long trial has contradicted a short one.
    only_long: bool,
    /// The factor of the next step back when a long trial misses.
    step: f64,
    /// Consecutive misses of the current rate.
    misses: u32,
    trials: u32,
    /// The server does not answer any more.
    has_ended: bool,
}

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// Requests per second that were met in a long trial; `None`: no rate was.
    pub rate: Option<f64>,
    /// What prevents a higher rate.
    pub limit: Limit,
    /// Whether the precision asked for was reached.
    pub is_precise: bool,
    pub trials: u32,
}

/// What prevents a higher rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Objective,
    /// The requests could not be sent in time, for lack of CPU or of connections.
    Sending,
    /// It is beyond `rate_max`.
    RateMax,
    /// The server does not answer any more, at any rate.
    NoAnswer,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            start: 1000.0,
            rate_min: RATE_MIN,
            rate_max: 1e7,
            precision: 0.02,
            short: Duration::from_secs(2),
            long: Duration::from_secs(10),
        }
    }
}

impl Search {
    pub fn new(settings: Settings) -> Self {
        let mut settings = settings;
        settings.precision = settings.precision.clamp(PRECISION_MIN, 0.5);
        settings.rate_max = settings.rate_max.max(RATE_MIN);
        settings.rate_min = settings.rate_min.clamp(RATE_MIN, settings.rate_max);
        settings.start = settings.start.clamp(settings.rate_min, settings.rate_max);
        Self {
            settings,
            lower: None,
            upper: None,
            only_long: false,
            step: settings.precision,
            misses: 0,
            trials: 0,
            has_ended: false,
        }
    }

    /// The next trial; `None` when the search has ended.
    pub fn next(&self) -> Option<Trial> {
        if self.has_ended || self.trials >= TRIALS_MAX {
            return None;
        }
        let (rate, is_long) = self.candidate()?;
        Some(Trial {
            rate,
            duration: if is_long {
                self.settings.long
            } else {
                self.settings.short
            },
        })
    }

    /// Takes the result of the trial that [`Search::next`] gave.
    pub fn on_result(&mut self, outcome: Outcome) {
        let Some((rate, is_long)) = self.candidate() else {
            return;
        };
        self.trials += 1;
        let (limit, tries) = match outcome {
            Outcome::Kept => {
                self.misses = 0;
                self.lower = Some((rate, is_long));
                return;
            }
            Outcome::Missed { excess } if excess < NEAR_MISS => (Limit::Objective, TRIES_NEAR),
            Outcome::Missed { .. } => (Limit::Objective, TRIES),
            Outcome::NotSent => (Limit::Sending, TRIES),
            Outcome::NoAnswer => (Limit::NoAnswer, TRIES),
        };
        self.misses += 1;
        if self.misses < tries {
            return;
        }
        self.misses = 0;
        self.upper = Some((rate, limit));
        if limit == Limit::NoAnswer {
            // A lower rate would not be answered either.
            self.has_ended = true;
            return;
        }
        if self.lower.is_some_and(|(lower, _)| lower >= rate) {
            self.step_back(rate);
        }
    }

    /// The result as far as it is known now.
    pub fn found(&self) -> Found {
        let confirmed = self.lower.filter(|(_, is_long)| *is_long);
        Found {
            rate: confirmed.map(|(rate, _)| rate),
            limit: self.upper.map_or(Limit::RateMax, |(_, limit)| limit),
            is_precise: confirmed.is_some() && self.candidate().is_none(),
            trials: self.trials,
        }
    }

    /// The next rate to be tried, and whether in a long trial.
    fn candidate(&self) -> Option<(f64, bool)> {
        let Settings {
            start,
            rate_min,
            rate_max,
            precision,
            ..
        } = self.settings;
        match (self.lower, self.upper) {
            (None, None) => Some((start, false)),
            (None, Some((upper, _))) => {
                let lower = upper / 2.0;
                (lower >= rate_min).then_some((lower, self.only_long))
            }
            (Some((lower, is_long)), None) => {
                let is_highest = lower >= rate_max;
                match (is_highest, is_long) {
                    (true, true) => None,
                    (true, false) => Some((lower, true)),
                    (false, _) => Some(((lower * 2.0).min(rate_max), false)),
                }
            }
            (Some((lower, is_long)), Some((upper, _))) => {
                let is_close = upper - lower <= precision * upper * (1.0 + ROUNDING);
                if !is_long && (is_close || self.only_long) {
                    Some((lower, true))
                } else if is_close {
                    None
                } else {
                    Some((lower.midpoint(upper), self.only_long))
                }
            }
        }
    }

    /// A long trial has missed a rate that a short one met: continues below it, in growing steps and long trials.
    fn step_back(&mut self, missed: f64) {
        let below = missed * (1.0 - self.step);
        self.only_long = true;
        self.step = (self.step * 2.0).min(0.5);
        self.lower = (below >= self.settings.rate_min).then_some((below, false));
    }
}

/// Share of the requests that must have been sent for a trial to be valid (Nighthawk's default).
pub const SEND_RATE_MIN: f64 = 0.99;

/// Trials after which a search gives up. A server that behaves the same each time needs less than forty: at most 24
/// doublings, six halvings that miss twice each, and the confirmation.
pub const TRIALS_MAX: u32 = 100;

/// The lowest rate of a search, in requests per second.
const RATE_MIN: f64 = 0.1;

/// The finest precision: runs differ by more.
const PRECISION_MIN: f64 = 0.001;

/// Trials that must miss before a rate counts as missed: noise rarely occurs twice in a row.
const TRIES: u32 = 2;

/// The same when the limit was exceeded by less than [`NEAR_MISS`].
const TRIES_NEAR: u32 = 3;

/// Up to this many times the limit, a miss may well be noise.
const NEAR_MISS: f64 = 1.5;

/// The error of a floating-point product.
const ROUNDING: f64 = 1e-9;

#[cfg(test)]
mod tests;
