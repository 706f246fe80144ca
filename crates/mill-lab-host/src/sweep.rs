//! The sweep: runs a plan, trial after trial, each stored as soon as it is done; changes are undone at the end in
//! every case.

mod dues;
mod wanted;

use crate::interrupt::Interrupt;
use crate::journal::Journal;
use crate::prepared_testbed::PreparedTestbed;
use crate::progress::Progress;
use crate::system::Trouble;
use crate::trial::{self, Bench};
pub(crate) use dues::Fate;
use dues::{Due, Dues};
use mill_lab::plan::{Plan, Trial};
use mill_lab::recipe::{Repeat, Resolved};
use mill_lab::record::{Finish, Status, TrialRecord};
use mill_lab::store::RunFolder;
use mill_sys::clock;
use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;
use wanted::Wanted;

/// What a sweep works with.
#[derive(Debug)]
pub struct Sweep<'a> {
    pub resolved: &'a Resolved,
    pub folder: &'a RunFolder,
    pub journal: &'a mut Journal,
    pub interrupt: &'a Interrupt,
    /// A private folder for content and servers' files; the journal removes it.
    pub scratch: PathBuf,
}

impl Sweep<'_> {
    /// Runs what is not stored yet, and returns how it ended; the system is as it was before. An error is a message
    /// on the store or the recipe: a trial that fails is a record.
    pub fn run(mut self, progress: &mut Progress<'_>) -> Result<Finish, String> {
        let swept = self.sweep(progress);
        let not_restored = self.journal.undo_to(0);
        swept?;
        Ok(Finish {
            ended_ms: u64::try_from(clock::realtime().as_millis()).unwrap_or(u64::MAX),
            interrupted: self.interrupt.is_asked(),
            not_restored,
        })
    }

    fn sweep(&mut self, progress: &mut Progress<'_>) -> Result<(), String> {
        let mut plan = self.plan()?;
        let mut due = Dues::new(self.due(&plan)?, self.repeat());
        progress.begin(plan.trials.len(), due.trials());
        let mut prepared_testbed = None;
        loop {
            while let Some(next) = due.next() {
                if self.interrupt.is_asked() {
                    return Ok(());
                }
                progress.trial(&next.trial, next.attempt);
                let Some(record) = self.carry_out(&next, &mut prepared_testbed)? else {
                    return Ok(());
                };
                let trial = next.trial.clone();
                let fate = due.done(next, &record.status);
                progress.kept(&trial, &record, fate);
            }
            let wanted = self.wanted(&plan)?;
            let before = plan.trials.len();
            plan.extend(self.resolved, |point| wanted.has(point))
                .map_err(said)?;
            if plan.trials.len() == before {
                return Ok(());
            }
            progress.more(&plan.trials[before..]);
            due.extend(&plan.trials[before..]);
        }
    }

    fn repeat(&self) -> &Repeat {
        &self.resolved.recipe.repeat
    }

    /// The recipe's plan, with the further blocks that a resumed run already had.
    fn plan(&self) -> Result<Plan, String> {
        let mut plan = Plan::of(self.resolved, crate::environment::cores()).map_err(said)?;
        let kept = self.folder.kept_trials().map_err(said)?;
        if self.repeat().until_decided {
            plan.adopt(self.resolved, &kept).map_err(said)?;
            return Ok(plan);
        }
        let reached = kept.iter().map(|record| record.number).max();
        while reached.is_some_and(|number| number >= plan.trials.len()) {
            plan.extend(self.resolved, |_| true).map_err(said)?;
        }
        Ok(plan)
    }

    /// The trials of the plan without those that are done: a resumed run continues.
    fn due(&self, plan: &Plan) -> Result<VecDeque<Due>, String> {
        let kept = self.folder.kept_trials().map_err(said)?;
        let disturbed = |trial: &Trial| {
            let attempts = kept.iter().filter(|record| {
                record.number == trial.number && matches!(record.status, Status::Disturbed { .. })
            });
            u32::try_from(attempts.count()).unwrap_or(u32::MAX)
        };
        let done: BTreeSet<usize> = kept
            .iter()
            .filter(|record| matches!(record.status, Status::Measured | Status::Absent { .. }))
            .map(|record| record.number)
            .collect();
        let trials = plan.trials.iter();
        let due = trials.filter(|trial| !done.contains(&trial.number));
        let due = due.map(|trial| Due {
            attempt: disturbed(trial),
            trial: trial.clone(),
        });
        // A trial that was disturbed as often as allowed counts as it is.
        let retries = self.repeat().retries;
        Ok(due.filter(|due| due.attempt <= retries).collect())
    }

    /// One trial on the current testbed, or on a new one. None if interrupted.
    fn carry_out(
        &mut self,
        due: &Due,
        prepared_testbed: &mut Option<PreparedTestbed>,
    ) -> Result<Option<TrialRecord>, String> {
        let setup = &due.trial.setup;
        if prepared_testbed
            .as_ref()
            .is_some_and(|prepared_testbed| !prepared_testbed.fits(setup))
            && let Some(old) = prepared_testbed.take()
        {
            old.undo(self.journal);
        }
        let folder = self.folder.trial(due.trial.number).map_err(said)?;
        let made = match prepared_testbed.take() {
            Some(prepared_testbed) => Ok(prepared_testbed),
            None => match absent_before(&due.trial) {
                Some(reason) => Err(Trouble::Absent(reason)),
                None => PreparedTestbed::make(setup, &self.scratch, self.journal, self.interrupt),
            },
        };
        let record = match made {
            Ok(made) => {
                let bench = Bench {
                    prepared_testbed: prepared_testbed.insert(made),
                    journal: self.journal,
                    interrupt: self.interrupt,
                    repeat: &self.resolved.recipe.repeat,
                    folder: folder.path(),
                };
                trial::carry_out(&due.trial, due.attempt, bench)
            }
            Err(_) if self.interrupt.is_asked() => None,
            Err(trouble) => Some(without_ground(due, trouble)),
        };
        if let Some(record) = &record {
            self.folder.keep(record).map_err(said)?;
        }
        Ok(record)
    }

    /// The points of another block, if one is allowed.
    fn wanted(&self, plan: &Plan) -> Result<Wanted, String> {
        let blocks = plan.trials.last().map_or(0, |trial| trial.block + 1);
        if blocks >= self.repeat().blocks_max {
            return Ok(Wanted::none());
        }
        let kept = self.folder.kept_trials().map_err(said)?;
        Ok(Wanted::after(
            &self.resolved.recipe,
            self.folder.run(),
            kept,
        ))
    }
}

/// Requirements that are known to be missing are checked before namespaces are made.
fn absent_before(trial: &Trial) -> Option<String> {
    let upstreams = trial.upstreams.iter().flat_map(|system| &system.needs);
    let needs: Vec<String> = trial
        .setup
        .system
        .needs
        .iter()
        .chain(upstreams)
        .cloned()
        .collect();
    crate::needs::unmet(&needs)
}

fn without_ground(due: &Due, trouble: Trouble) -> TrialRecord {
    let mut record = trial::blank(&due.trial, due.attempt);
    record.status = match trouble {
        Trouble::Absent(reason) => Status::Absent { reason },
        Trouble::Failed(reason) => Status::Failed { reason },
    };
    record
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}
