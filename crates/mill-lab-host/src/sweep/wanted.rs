//! The points that need another block: `repeat.half_width`, as netperf decides it, and `repeat.until_decided`.

use mill_lab::analysis::{self, Kept};
use mill_lab::recipe::Recipe;
use mill_lab::record::{Environment, Point, RunRecord, TrialRecord};
use std::collections::BTreeSet;

/// What the next block has.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    All,
    Some(BTreeSet<Point>),
}

impl Wanted {
    pub(super) fn none() -> Self {
        Self::Some(BTreeSet::new())
    }

    /// What the trials so far leave undecided. A block is of all points if a comparison's interval is wider, at either
    /// side, than `half_width`, or one has none yet.
    pub(super) fn after(recipe: &Recipe, run: &RunRecord, trials: Vec<TrialRecord>) -> Self {
        let repeat = &recipe.repeat;
        if repeat.half_width.is_none() && !repeat.until_decided {
            return Self::none();
        }
        let kept = Kept {
            run: run.clone(),
            recipe: recipe.clone(),
            environment: Environment::default(),
            trials,
            finish: None,
            files: Vec::new(),
        };
        let is_wide = |half_width| {
            analysis::widest_half_width(&kept).is_none_or(|widest| widest > half_width)
        };
        if repeat.half_width.is_some_and(is_wide) {
            return Self::All;
        }
        match repeat.until_decided {
            true => Self::Some(analysis::undecided_points(&kept)),
            false => Self::none(),
        }
    }

    pub(super) fn has(&self, point: &Point) -> bool {
        match self {
            Self::All => true,
            Self::Some(points) => points.contains(point),
        }
    }
}
