//! Many worlds, and the names of those that fail.

use crate::cached;
use crate::cached::plan::CachedPlan;
use crate::plan::Plan;
use crate::proxied;
use crate::proxied::plan::ProxiedPlan;
use crate::run::{Outcome, run};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What came of a world: it ended, or something in it panicked.
#[derive(Debug)]
pub enum World {
    Ended(Box<Outcome>),
    Panicked { seed: u64, message: String },
}

impl World {
    /// The world of a seed.
    pub fn of(seed: u64, traces: bool) -> Self {
        Self::running(seed, || run(&Plan::new(seed), traces))
    }

    /// The world with a proxy of a seed.
    pub fn proxied(seed: u64, traces: bool) -> Self {
        Self::running(seed, || proxied::run::run(&ProxiedPlan::new(seed), traces))
    }

    /// The world with a cache of a seed.
    pub fn cached(seed: u64, traces: bool) -> Self {
        Self::running(seed, || cached::run::run(&CachedPlan::new(seed), traces))
    }

    fn running(seed: u64, run: impl FnOnce() -> Outcome) -> Self {
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(outcome) => Self::Ended(Box::new(outcome)),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
                Self::Panicked {
                    seed,
                    message: text.unwrap_or_default(),
                }
            }
        }
    }

    pub fn is_well(&self) -> bool {
        match self {
            Self::Ended(outcome) => outcome.failures.is_empty(),
            Self::Panicked { .. } => false,
        }
    }

    pub const fn seed(&self) -> u64 {
        match self {
            Self::Ended(outcome) => outcome.seed,
            Self::Panicked { seed, .. } => *seed,
        }
    }
}

/// Runs the worlds of these seeds; returns those that failed.
pub fn failing(seeds: Range<u64>) -> Vec<World> {
    let worlds = seeds.map(|seed| World::of(seed, false));
    worlds.filter(|world| !world.is_well()).collect()
}
