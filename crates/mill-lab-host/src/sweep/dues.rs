//! The order of trials: those of the plan in its order, and disturbed ones once more while the machine may become
//! quiet.
//!
//! A disturbed trial goes behind the others of its block, because the disturbance may be over by then. After three in
//! a row the machine counts as busy: repeating each trial would make a run three times as long and its figures no
//! better, so the trials are kept as they are, and repeated only if the machine is quiet when all others are done.

use mill_lab::plan::Trial;
use mill_lab::recipe::Repeat;
use mill_lab::record::Status;
use std::collections::VecDeque;

/// A trial to run, and how often it was run before.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Due {
    pub(super) trial: Trial,
    pub(super) attempt: u32,
}

/// What is still to be run.
#[derive(Debug)]
pub(super) struct Dues {
    due: VecDeque<Due>,
    /// Disturbed on a busy machine.
    put_off: Vec<Due>,
    /// Disturbed trials since the last undisturbed one.
    disturbed_in_a_row: u32,
    retries: u32,
}

/// What happens with a trial that was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Done,
    /// It is repeated after the others of its block.
    Again,
    /// It counts as it is, unless the machine is quiet at the end.
    PutOff,
}

impl Dues {
    pub(super) fn new(due: VecDeque<Due>, repeat: &Repeat) -> Self {
        Self {
            due,
            put_off: Vec::new(),
            disturbed_in_a_row: 0,
            retries: repeat.retries,
        }
    }

    /// Those that are already known.
    pub(super) fn trials(&self) -> impl Iterator<Item = &Trial> {
        self.due.iter().map(|due| &due.trial)
    }

    /// Adds another block.
    pub(super) fn extend(&mut self, trials: &[Trial]) {
        let first = |trial: &Trial| Due {
            trial: trial.clone(),
            attempt: 0,
        };
        self.due.extend(trials.iter().map(first));
    }

    pub(super) fn next(&mut self) -> Option<Due> {
        if self.due.is_empty() && self.disturbed_in_a_row == 0 {
            self.due.extend(self.put_off.drain(..));
        }
        self.due.pop_front()
    }

    /// Must be called for each trial that `next` returned.
    pub(super) fn done(&mut self, was: Due, status: &Status) -> Fate {
        match status {
            Status::Measured => self.disturbed_in_a_row = 0,
            Status::Disturbed { .. } => self.disturbed_in_a_row += 1,
            // The machine's load was not measured.
            Status::Absent { .. } | Status::Failed { .. } => return Fate::Done,
        }
        if *status == Status::Measured || was.attempt >= self.retries {
            return Fate::Done;
        }
        let again = Due {
            trial: was.trial,
            attempt: was.attempt + 1,
        };
        if self.disturbed_in_a_row >= BUSY_AFTER {
            self.put_off.push(again);
            return Fate::PutOff;
        }
        let block = again.trial.block;
        let place = self.due.iter().position(|next| next.trial.block != block);
        self.due.insert(place.unwrap_or(self.due.len()), again);
        Fate::Again
    }
}

/// Disturbed trials in a row from which the machine counts as busy.
const BUSY_AFTER: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use mill_lab::plan::Plan;
    use mill_lab::recipe;

    /// Runs three blocks of the smallest recipe's trials; `is_disturbed` decides by the number of trials run before.
    /// Returns the numbers of the trials in the order in which they ran.
    fn check(is_disturbed: impl Fn(usize) -> bool, expected: &[usize]) {
        let sets = ["repeat.blocks=3", "repeat.again=false"].map(String::from);
        let resolved = recipe::resolve("smallest", "smoke", &sets).unwrap();
        let plan = Plan::of(&resolved, 2).unwrap();
        let mut dues = Dues::new(VecDeque::new(), &resolved.recipe.repeat);
        dues.extend(&plan.trials);
        assert_eq!(dues.trials().count(), plan.trials.len());
        let mut ran = Vec::new();
        while let Some(due) = dues.next() {
            let status = if is_disturbed(ran.len()) {
                Status::Disturbed {
                    reason: String::from("others took 30 %"),
                }
            } else {
                Status::Measured
            };
            ran.push(due.trial.number);
            dues.done(due, &status);
        }
        assert_eq!(ran, expected);
    }

    #[test]
    fn a_disturbed_trial_is_repeated_behind_its_block() {
        check(|_| false, &[0, 1, 2]);
        check(|ran| ran == 0, &[0, 0, 1, 2]);
        check(|ran| ran < 2, &[0, 0, 0, 1, 2]);
    }

    #[test]
    fn on_a_busy_machine_nothing_is_repeated_in_vain() {
        // Two retries of the first show that it is busy; from then on each trial runs once.
        check(|_| true, &[0, 0, 0, 1, 2]);
    }

    #[test]
    fn postponed_trials_are_repeated_once_the_machine_is_quiet() {
        check(|ran| ran < 4, &[0, 0, 0, 1, 2, 1]);
    }
}
