//! The mistakes of published benchmarks, found in the lab's own runs and in any text.
//!
//! Blocks of a text and trials of a run become samples (`sample`); a lint is a file with a function from samples, a recipe or
//! published figures to warnings. A lint that is not sure is silent: a false alarm costs more than a mistake that the
//! reader has to find.

mod blocks;
mod changes;
mod client_bound;
mod gain_arithmetic;
mod hidden_errors;
mod interrupted;
mod matrix;
mod quoted_figures;
mod sample;
mod single_run;
mod swapped_labels;
mod tables;
mod truncated_tail;
mod two_factors;
mod unit_slip;
mod varying_size;
mod wrong_allocator;

use crate::findings::Warning;
use crate::recipe::Recipe;
use crate::record::TrialRecord;
use sample::Sample;

/// All lints on a run, and on the published figures of its recipe.
pub fn run(recipe: &Recipe, trials: &[TrialRecord]) -> Vec<Warning> {
    let samples: Vec<Sample> = trials.iter().filter_map(Sample::of).collect();
    let mut warnings = of_samples(&samples);
    warnings.extend(two_factors::of_run(recipe, trials));
    warnings.extend(client_bound::of_run(recipe, trials));
    warnings.extend(wrong_allocator::of_run(recipe, trials));
    warnings.extend(single_run::of_run(recipe, trials));
    warnings.extend(published(recipe));
    grouped(warnings)
}

/// Each lint once for each advice: forty points with one mistake are one thing to mend.
fn grouped(warnings: Vec<Warning>) -> Vec<Warning> {
    let mut groups: Vec<Warning> = Vec::new();
    for warning in warnings {
        let known = groups
            .iter_mut()
            .find(|group| group.lint == warning.lint && group.advice == warning.advice);
        match known {
            Some(group) if group.text == warning.text || group.more.contains(&warning.text) => {}
            Some(group) => group.more.push(warning.text),
            None => groups.push(warning),
        }
    }
    groups
}

/// All lints on a text that quotes what wrk or ab printed, or has tables of figures; `name` is the file, for the places.
pub fn text(name: &str, text: &str) -> Vec<Warning> {
    let (samples, problems) = blocks::of(name, text);
    let mut warnings: Vec<Warning> = problems
        .into_iter()
        .map(|(place, problem)| {
            warning(
                "unreadable-block",
                format!("{place}: {problem}"),
                "Quote the whole block, to the tool's last line.",
            )
        })
        .collect();
    warnings.extend(of_samples(&samples));
    warnings.extend(two_factors::of_text(&samples));
    warnings.extend(client_bound::of_text(&samples));
    warnings.extend(wrong_allocator::of_text(name, text));
    let tables = tables::of(name, text);
    warnings.extend(unit_slip::of_text(text, &tables));
    warnings.extend(gain_arithmetic::of_text(name, text, &tables));
    warnings.extend(quoted_figures::of_text(name, text, &samples));
    warnings.extend(single_run::of_text(&samples));
    grouped(warnings)
}

/// How many results of wrk and ab a text quotes, including unreadable ones, and how many tables of figures it has: no
/// results at all are reported differently from results without mistakes.
pub fn results(text: &str) -> (usize, usize) {
    let (samples, problems) = blocks::of("", text);
    (samples.len() + problems.len(), tables::of("", text).len())
}

/// Lints on figures that a document published, which the recipe holds.
pub fn published(recipe: &Recipe) -> Vec<Warning> {
    let mut warnings = unit_slip::of_published(recipe);
    warnings.extend(gain_arithmetic::of_published(recipe));
    warnings.extend(client_bound::of_published(recipe));
    warnings
}

/// Mistakes that any sample shows, of any origin.
fn of_samples(samples: &[Sample]) -> Vec<Warning> {
    let mut warnings = swapped_labels::of(samples);
    warnings.extend(varying_size::of(samples));
    warnings.extend(interrupted::of(samples));
    warnings.extend(hidden_errors::of(samples));
    warnings.extend(truncated_tail::of(samples));
    warnings
}

fn warning(lint: &str, text: String, advice: &str) -> Warning {
    Warning {
        lint: String::from(lint),
        text,
        more: Vec::new(),
        advice: String::from(advice),
    }
}

#[cfg(test)]
mod tests;
