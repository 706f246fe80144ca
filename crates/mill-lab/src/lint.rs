//! The mistakes that printed benchmarks make, found in our own runs and in other people's texts.

use crate::findings::Warning;
use crate::recipe::Recipe;
use crate::record::TrialRecord;

/// All lints on a run.
pub fn run(recipe: &Recipe, trials: &[TrialRecord]) -> Vec<Warning> {
    let _ = (recipe, trials);
    Vec::new()
}
