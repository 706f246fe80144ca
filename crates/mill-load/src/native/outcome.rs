//! The data of all reports: options, results and verdict.

use crate::native::options::Options;
use crate::native::preparation::Prepared;
use crate::native::requirements::{Outcome as Kept, Requirement};
use crate::native::results::Results;
use crate::native::verdict::{Evidence, Verdict, VerdictKind, judge};

/// One run, from its options to its verdict.
#[derive(Clone, Debug)]
pub struct Outcome<'a> {
    pub options: &'a Options,
    pub prepared: &'a Prepared,
    pub results: &'a Results,
    pub verdict: Verdict,
    /// The result of each requirement, in the order of the command line.
    pub requirements: Vec<Kept>,
}

impl<'a> Outcome<'a> {
    pub fn new(options: &'a Options, prepared: &'a Prepared, results: &'a Results) -> Self {
        let examine =
            |requirement: &Requirement| requirement.examine(results, prepared.plan.connections);
        Self {
            options,
            prepared,
            results,
            verdict: verdict(options, prepared, results),
            requirements: options.requirements.iter().map(examine).collect(),
        }
    }

    /// The exit status: a requirement that is not met comes before an invalid verdict.
    pub fn status(&self) -> u8 {
        if self.requirements.iter().any(|kept| !kept.held) {
            STATUS_MISSED
        } else if self.verdict.word == VerdictKind::Invalid {
            STATUS_INVALID
        } else {
            0
        }
    }

    /// Whether requests had due times of their own.
    pub fn is_open_loop(&self) -> bool {
        self.options.is_open_loop()
    }
}

fn verdict(options: &Options, prepared: &Prepared, results: &Results) -> Verdict {
    let interval = prepared.plan.interval;
    let whole = results.periods.iter().filter(|period| {
        // A period more than a tenth shorter is the rest at the end: its count says nothing about the rate.
        period.length() * 10 >= interval * 9
    });
    let answers: Vec<u64> = whole.map(|period| period.answered).collect();
    let raw = results.measures.raw();
    let first = results.answers.kinds().next();
    let first_count = first.map_or(0, |kind| kind.count);
    let all: u64 = results.answers.kinds().map(|kind| kind.count).sum();
    let silences = results.silences(prepared.plan.connections);
    let differing = all + results.answers.others() - first_count;
    judge(
        &Evidence {
            plan: &prepared.plan,
            tally: &results.tally,
            machine: &results.machine,
            measured: results.measured,
            interrupted: results.interrupted,
            answers: &answers,
            mean_time: (!raw.is_empty()).then(|| raw.mean()),
            silences: &silences,
            is_of_search: options.search.is_some(),
            differing_sizes: prepared.sending.is_one().then_some(differing),
        },
        &options.thresholds,
    )
}

/// A requirement of the command line was not met.
pub const STATUS_MISSED: u8 = 2;

/// The verdict is [`VerdictKind::Invalid`].
pub const STATUS_INVALID: u8 = 3;
