//! A run that is split over several processes of this machine.
//!
//! The process that the user started conducts: it starts one process a part, each with the same command line and
//! `--part n/N`, waits until all are ready, and announces a common beginning on the monotonic clock that they share.
//! The parts report each interval and in the end all their results, and the conductor adds them up. Lines of JSON both
//! ways:
//!
//! ```text
//! conductor                        part
//!                     <- hello     its version: another one's figures would not be comparable
//!                     <- ready     names are resolved, requests rendered
//! start (an instant)  ->
//!                     <- interval  one each
//! stop                ->           if the user interrupts
//!                     <- result
//! ```
//!
//! A lost part invalidates the run: the load was lower than requested, from an unknown time on.

/// The conductor: starts the parts.
mod conduct;
/// The messages of both sides.
mod message;
/// A part.
mod perform;
/// Results as JSON and back.
pub mod wire;

pub use conduct::conduct;
pub use perform::perform;

use crate::plan::{Opening, Pace, Plan, cut};
use core::time::Duration;
use std::fmt;
use thiserror::Error;

/// The number of a part, as in the hidden option `--part`: `2/4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartIndex {
    /// From 0.
    pub index: u32,
    pub count: u32,
}

/// Why a run in several processes failed: a message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct PartError(pub String);

impl PartIndex {
    /// Parses `2/4`, counted from 1.
    pub fn parse(text: &str) -> Option<Self> {
        let (number, count) = text.split_once('/')?;
        let (number, count): (u32, u32) = (number.parse().ok()?, count.parse().ok()?);
        let index = number.checked_sub(1).filter(|index| *index < count)?;
        Some(Self { index, count })
    }

    /// Reduces a plan to this part's share. Remainders are distributed one each to the first parts; each part needs at
    /// least a thread and a connection, which the reader of the command line checks.
    pub fn share(self, plan: &mut Plan) {
        let whole = plan.connections;
        plan.connections = self.cut(whole);
        plan.threads = self.cut(plan.threads).clamp(1, plan.connections.max(1));
        plan.stop.requests = plan.stop.requests.map(|requests| {
            let part = cut(requests, self.count, self.index);
            part.end - part.start
        });
        let count = f64::from(self.count.max(1));
        match &mut plan.pace {
            Pace::Closed { .. } => {}
            Pace::Open { rate, .. } => *rate /= count,
            // Each connection keeps the schedule that it would have in one process.
            Pace::Each { rate } => {
                *rate *= f64::from(plan.connections) / f64::from(whole.max(1));
            }
        }
        if let Opening::Rate(rate) = &mut plan.opening {
            *rate /= count;
        }
        plan.seed = plan
            .seed
            .wrapping_add(u64::from(self.index).wrapping_mul(SEED_STEP));
        self.share_sources(plan);
    }

    /// How much later than the others this part begins, so that even arrivals of all parts together are even.
    pub fn offset(self, plan: &Plan) -> Duration {
        match plan.pace {
            Pace::Open { rate, .. } if rate > 0.0 => {
                let gap = Duration::try_from_secs_f64(1.0 / rate).unwrap_or_default();
                gap.mul_f64(f64::from(self.index) / f64::from(self.count.max(1)))
            }
            _ => Duration::ZERO,
        }
    }

    /// Two parts must not choose the same port.
    fn share_sources(self, plan: &mut Plan) {
        let Some(ports) = &plan.sources.ports else {
            return;
        };
        let count = u64::from(*ports.end()) + 1 - u64::from((*ports.start()).min(*ports.end()));
        let own = cut(count, self.count, self.index);
        let first = u64::from(*ports.start());
        let port = |nth: u64| u16::try_from(first + nth).unwrap_or(u16::MAX);
        if own.end > own.start {
            plan.sources.ports = Some(port(own.start)..=port(own.end - 1));
        }
    }

    fn cut(self, total: u32) -> u32 {
        let part = cut(u64::from(total), self.count, self.index);
        u32::try_from(part.end - part.start).unwrap_or(u32::MAX)
    }
}

impl fmt::Display for PartIndex {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.index + 1, self.count)
    }
}

/// The difference between the seeds of two parts: odd and irregular, so that no two parts draw the same numbers (the
/// golden ratio's bits, as splitmix64 steps).
const SEED_STEP: u64 = 0x9E37_79B9_7F4A_7C15 ^ 0x5555;

#[cfg(test)]
pub(crate) mod answering;
#[cfg(test)]
mod tests;
