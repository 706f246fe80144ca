//! Records to findings.
//!
//! ```text
//! measured    the trials of a run that may be used, found by their point
//! comparison  one factor changed: pairs by block, a ratio, its interval
//! verdict     what is said of a ratio, in words
//! noise       what the first system differs from itself
//! table       the document's layout; each of its cells
//! target      limits that figures are to keep
//! published   the document's figures, as ratios only
//! chart       pictures as data
//! summary     the first thing read
//! limits      what limited the points, and where it changes
//! leftovers   what is not here, commands, tuning, printed blocks
//! compare     two runs: commits, machines
//! wording     figures as text
//! ```
//!
//! Invariants: only trials that were measured and not disturbed count; a second run of the first system counts for the noise
//! alone; a cell without a figure has the reason.

mod chart;
mod compare;
mod comparison;
mod leftovers;
mod limits;
mod measured;
mod noise;
mod published;
mod summary;
mod table;
mod target;
#[cfg(test)]
mod tests;
mod verdict;
mod wording;

pub use compare::{Between, compare};
pub use comparison::widest_half_width;
pub use target::undecided_points;

use crate::findings::{Findings, Picture};
use crate::recipe::Recipe;
use crate::record::{Environment, Finish, RunRecord, TrialRecord};
use measured::Measured;

/// What a run folder holds, in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    pub run: RunRecord,
    pub recipe: Recipe,
    pub environment: Environment,
    pub trials: Vec<TrialRecord>,
    pub finish: Option<Finish>,
    pub files: Vec<KeptFile>,
}

/// A file of a trial that a report shows: `client-0.out`, `monitor.csv`, `profile.folded`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptFile {
    /// `TrialRecord::number`.
    pub trial: usize,
    pub name: String,
    pub text: String,
}

/// Makes the whole content of a report.
pub fn findings(kept: &Kept) -> Findings {
    let measured = Measured::of(kept);
    let noise = noise::floor(&measured);
    let (comparisons, without_ratio) = comparison::all(&measured, noise.as_ref());
    let mut charts: Vec<Picture> = chart::all(&measured, &comparisons);
    charts.extend(chart::flames(&measured));
    let mut absences = leftovers::absences(&measured);
    absences.extend(without_ratio);
    let noise = noise.as_ref().map(noise::NoiseOfRun::told);
    let mut summary = summary::statements(&measured, &comparisons, noise.as_ref());
    let mut tables = table::all(&measured);
    let (targets, verdicts) = target::all(&measured);
    tables.extend(targets);
    summary.extend(verdicts);
    Findings {
        run: kept.run.clone(),
        question: kept.recipe.question.clone(),
        origin: leftovers::origin(&kept.recipe),
        environment: kept.environment.clone(),
        summary,
        noise,
        comparisons,
        tables,
        charts,
        blocks: leftovers::blocks(&measured),
        warnings: crate::lint::run(&kept.recipe, &kept.trials),
        absences,
        notes: leftovers::notes(&measured),
        topology: leftovers::topology(&measured),
        tuned: leftovers::tuned(&measured),
        commands: leftovers::commands(&measured),
        counts: leftovers::counts(&measured),
        interrupted: kept.finish.as_ref().is_none_or(|finish| finish.interrupted),
    }
}
