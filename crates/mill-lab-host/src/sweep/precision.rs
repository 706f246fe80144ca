//! Whether the figures are precise enough: `repeat.half_width`, as netperf decides it.

use mill_lab::analysis::{self, Kept};
use mill_lab::recipe::Recipe;
use mill_lab::record::{Environment, RunRecord, TrialRecord};

/// Whether a comparison's interval is wider, at either side, than this share, or one has none yet.
pub(super) fn is_wide(
    recipe: &Recipe,
    run: &RunRecord,
    trials: Vec<TrialRecord>,
    half_width: f64,
) -> bool {
    let kept = Kept {
        run: run.clone(),
        recipe: recipe.clone(),
        environment: Environment::default(),
        trials,
        finish: None,
        files: Vec::new(),
    };
    analysis::widest_half_width(&kept).is_none_or(|widest| widest > half_width)
}
