//! Runs with a known truth.

use crate::analysis::Kept;
use crate::limit::{Limit, Side};
use crate::record::{Environment, Figures, Finish, RunRecord, TrialRecord};
use crate::statistics::{Generator, normal_quantile, number};

/// Two systems on one core, at one concurrency or more.
pub(super) const ALLOCATORS: &str = r#"
id = "allocators"
title = "nginx with another allocator"
seed = "004"
rows = ["N1", "N2"]
question = "How much does the allocator cost?"

[for]
concurrency = [100]
system = ["glibc", "jemalloc"]

[system.glibc]
title = "nginx, glibc"
[system.jemalloc]
title = "nginx, jemalloc"
[system.own]
title = "own stack"

[load]
tool = "ab"
args = "-n ${requests} -c ${concurrency} ${url}"

[vars]
requests = 1000

[[compare]]
from = "glibc"
to = "jemalloc"
factor = "allocator"
"#;

/// A run being made.
pub(super) struct Run {
    pub(super) kept: Kept,
    generator: Generator,
}

impl Run {
    pub(super) fn new(recipe: &str) -> Self {
        let run = RunRecord {
            id: String::from("made-up"),
            recipe: String::from("allocators"),
            title: String::from("nginx with another allocator"),
            size: String::from("smoke"),
            seed: 1,
            millstream: String::from("0.1.0"),
            ..RunRecord::default()
        };
        Self {
            kept: Kept {
                run,
                recipe: toml::from_str(recipe).expect("the recipe of a test is one"),
                environment: Environment::default(),
                trials: Vec::new(),
                finish: Some(Finish::default()),
                files: Vec::new(),
            },
            generator: Generator::new(42),
        }
    }

    /// One more trial, at a point written as `system=glibc workers=2`.
    pub(super) fn trial(
        &mut self,
        block: u32,
        point: &str,
        figures: &[(&str, f64)],
    ) -> &mut TrialRecord {
        let point = point
            .split_whitespace()
            .filter_map(|part| part.split_once('='));
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let number = self.kept.trials.len();
        self.kept.trials.push(TrialRecord {
            number,
            block,
            point: point.map(owned).collect(),
            seconds: 2.0,
            figures: figures
                .iter()
                .map(|(name, value)| ((*name).to_owned(), *value))
                .collect::<Figures>(),
            limit: limit(Side::Server),
            ..TrialRecord::default()
        });
        self.kept.run.trials = self.kept.trials.len();
        self.kept.trials.last_mut().expect("one was pushed")
    }

    /// Both allocators in each block, the first one twice; `gain` is the truth, `noise` one deviation of a trial.
    pub(super) fn blocks(mut self, blocks: u32, gain: f64, noise: f64) -> Self {
        for block in 0..blocks {
            for (system, truth, again) in [
                ("glibc", 1.0, false),
                ("jemalloc", 1.0 + gain, false),
                ("glibc", 1.0, true),
            ] {
                let rate = 30_000.0 * truth * (noise * self.deviate()).exp();
                let point = format!("system={system} concurrency=100");
                self.trial(block, &point, &[("requests_per_s", rate)]).again = again;
            }
        }
        self
    }

    /// A value of the standard normal distribution.
    fn deviate(&mut self) -> f64 {
        normal_quantile((number(self.generator.index_below(1_000_000)) + 0.5) / 1e6)
    }
}

pub(super) fn limit(side: Side) -> Option<Limit> {
    Some(Limit {
        side,
        evidence: String::from("made up"),
    })
}
