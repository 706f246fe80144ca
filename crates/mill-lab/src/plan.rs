//! A recipe's trials in the order in which they are run.
//!
//! The unit of repetition is a fresh server process. Each block has every point once (and the first system twice, if
//! the noise floor is wanted), in an order drawn from the seed, so that what drifts on the machine hits all
//! systems alike.

use crate::recipe::Setup;
use crate::record::Point;
use serde::{Deserialize, Serialize};

/// All trials, first to last.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub trials: Vec<Trial>,
}

/// One run of a fresh server under load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// From 0, in the order of the plan; the place in the store.
    pub number: usize,
    pub block: u32,
    pub point: Point,
    pub again: bool,
    pub setup: Setup,
    /// Systems of `[system]` that run behind the one under test, nearest first.
    pub upstreams: Vec<crate::recipe::System>,
}

use crate::recipe::{RecipeError, Resolved};

impl Plan {
    /// Orders all points of all blocks.
    pub fn of(recipe: &Resolved) -> Result<Self, RecipeError> {
        let _ = recipe;
        Ok(Self { trials: Vec::new() })
    }
}
