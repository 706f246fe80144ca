//! The lints on the blocks that documents printed, and on runs that are made up.

use super::*;
use std::collections::BTreeSet;

mod documents;
mod published;
mod runs;
mod texts;

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

#[test]
fn one_mistake_at_many_places_is_one_warning() {
    let one = |text: &str, advice: &str| warning("client-bound", String::from(text), advice);
    let found = grouped(vec![
        one("a", "more CPUs"),
        one("b", "more CPUs"),
        one("b", "more CPUs"),
        one("a", "more CPUs"),
        one("c", "another link"),
    ]);
    let texts: Vec<(&str, &[String])> = found
        .iter()
        .map(|it| (it.text.as_str(), it.more.as_slice()))
        .collect();
    assert_eq!(texts, [("a", &[String::from("b")][..]), ("c", &[])]);
}
