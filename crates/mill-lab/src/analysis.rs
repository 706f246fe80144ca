//! Records to findings.

use crate::findings::Findings;
use crate::recipe::Recipe;
use crate::record::{Environment, Finish, RunRecord, TrialRecord};

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
    pub trial: usize,
    pub name: String,
    pub text: String,
}

/// Makes everything that a report says.
pub fn findings(kept: &Kept) -> Findings {
    Findings {
        run: kept.run.clone(),
        question: kept.recipe.question.clone(),
        origin: None,
        environment: kept.environment.clone(),
        summary: Vec::new(),
        noise: None,
        comparisons: Vec::new(),
        tables: Vec::new(),
        charts: Vec::new(),
        blocks: Vec::new(),
        warnings: crate::lint::run(&kept.recipe, &kept.trials),
        absences: Vec::new(),
        notes: kept.recipe.notes.clone(),
        topology: String::new(),
        tuned: Vec::new(),
        commands: Vec::new(),
        counts: crate::findings::Counts::default(),
        interrupted: kept.finish.as_ref().is_none_or(|finish| finish.interrupted),
    }
}
