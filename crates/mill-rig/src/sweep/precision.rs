//! Whether what was measured is precise enough: `repeat.half_width`, netperf's way of stopping.

use mill_lab::analysis::{self, Kept};
use mill_lab::recipe::Recipe;
use mill_lab::record::{Environment, RunRecord, TrialRecord};

/// Whether a comparison's interval is wider, at either side, than this share. One without an interval has too few pairs yet; one
/// without any pair will never have one and is not waited for.
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
    let comparisons = analysis::findings(&kept).comparisons;
    comparisons
        .iter()
        .filter(|compared| compared.pairs > 0)
        .any(|compared| {
            compared
                .interval
                .is_none_or(|(low, high)| (high - low) / 2.0 > half_width * compared.ratio)
        })
}
