//! The highest rate at which a server keeps an objective.
//!
//! A value that says what to try next: double the rate until the objective is missed, halve the distance until it is
//! known precisely enough, then try the result once more for long. Short trials first and a long last one, and a miss that
//! counts only when it is repeated, are taken from RFC 9971 (multiple loss ratio search); a rate counts as kept only if
//! the requests were really sent at it, as Nighthawk's adaptive load demands.

/// The trials as a table.
mod curve;
/// What has to be kept.
mod objective;
/// Each trial as a run.
mod trials;

pub use curve::{Point, emit_curve};
pub use objective::{Figure, Goal, Missed, Objective, ObjectiveError};
pub use trials::{Searched, search};

use core::time::Duration;

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Requests per second of the first trial.
    pub start: f64,
    /// The lowest rate that is tried: below it a trial has too few answers to tell whether the objective was kept.
    pub rate_min: f64,
    /// The highest rate that is tried.
    pub rate_max: f64,
    /// The result and the lowest rate that missed differ by no more than this share.
    pub precision: f64,
    /// Of the trials that look for the place.
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

/// How a trial went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    Kept,
    /// The objective was missed, so many times over.
    Missed {
        excess: f64,
    },
    /// The requests could not be sent at this rate: less than [`SEND_RATE_MIN`] of them were.
    NotSent,
    /// Nothing was answered at all.
    NoAnswer,
}

/// The search. Call [`Search::next`] and, after that trial, [`Search::on_result`], until there is no next.
#[derive(Clone, Debug)]
pub struct Search {
    settings: Settings,
    /// The highest rate that was kept, and whether in a long trial.
    lower: Option<(f64, bool)>,
    /// The lowest rate that was not kept, and why.
    upper: Option<(f64, Limit)>,
    /// Short trials have promised too much.
    only_long: bool,
    /// How far to go back when a long trial misses.
    step: f64,
    /// Misses of the present rate in a row.
    misses: u32,
    trials: u32,
    /// Nobody answers any more.
    has_ended: bool,
}

/// What a search has found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// Requests per second that were kept in a long trial; `None`: no rate was.
    pub rate: Option<f64>,
    /// What is in the way of more.
    pub limit: Limit,
    /// Whether the precision asked for was reached.
    pub is_precise: bool,
    pub trials: u32,
}

/// What is in the way of a higher rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Objective,
    /// The requests could not be sent in time, for want of CPU or of connections.
    Sending,
    /// It was not to be tried.
    RateMax,
    /// Nobody answers any more, at whatever rate.
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

    /// Takes the outcome of the trial that [`Search::next`] gave.
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

    /// What was found, as far as it is known now.
    pub fn found(&self) -> Found {
        let confirmed = self.lower.filter(|(_, is_long)| *is_long);
        Found {
            rate: confirmed.map(|(rate, _)| rate),
            limit: self.upper.map_or(Limit::RateMax, |(_, limit)| limit),
            is_precise: confirmed.is_some() && self.candidate().is_none(),
            trials: self.trials,
        }
    }

    /// The rate that has to be tried next, and whether for long.
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

    /// A long trial has missed what a short one kept: goes on below it, in growing steps and long trials.
    fn step_back(&mut self, missed: f64) {
        let below = missed * (1.0 - self.step);
        self.only_long = true;
        self.step = (self.step * 2.0).min(0.5);
        self.lower = (below >= self.settings.rate_min).then_some((below, false));
    }
}

/// Share of the requests that must have been sent for a trial to say something about its rate (Nighthawk's default).
pub const SEND_RATE_MIN: f64 = 0.99;

/// Trials after which a search gives up. A server that answers the same way each time needs less than forty: at most
/// 24 doublings, six halvings that miss twice each, and the confirmation.
pub const TRIALS_MAX: u32 = 100;

/// Requests per second below which nothing is searched.
const RATE_MIN: f64 = 0.1;

/// The finest precision: runs differ by more.
const PRECISION_MIN: f64 = 0.001;

/// Trials that must miss before a rate counts as missed: noise seldom strikes twice.
const TRIES: u32 = 2;

/// The same when the limit was passed by less than [`NEAR_MISS`].
const TRIES_NEAR: u32 = 3;

/// Up to this many times the limit, a miss may well be noise.
const NEAR_MISS: f64 = 1.5;

/// What a floating-point product may be off.
const ROUNDING: f64 = 1e-9;

#[cfg(test)]
mod tests;
