//! The lints on the blocks that documents printed, and on runs that are made up.

use super::*;
use std::collections::BTreeSet;

mod documents;
mod published;
mod runs;

fn names(warnings: &[Warning]) -> BTreeSet<&str> {
    warnings.iter().map(|one| one.lint.as_str()).collect()
}

/// Texts of the warnings of one lint.
fn of_lint<'a>(warnings: &'a [Warning], lint: &str) -> Vec<&'a str> {
    warnings
        .iter()
        .filter(|one| one.lint == lint)
        .map(|one| one.text.as_str())
        .collect()
}
