//! A recipe's trials in the order in which they are run.
//!
//! The unit of repetition is a fresh server process. Each block has every point once (and the first system twice, if
//! the noise floor is wanted), in an order drawn from the seed or there and back, so that what drifts on the machine hits
//! all systems alike.

mod estimate;
mod shuffle;

use crate::recipe::{Order, RecipeError, Resolved, Setup, System, Tool};
use crate::record::{Point, TrialRecord};
use serde::{Deserialize, Serialize};
use shuffle::Shuffle;

/// All trials, first to last.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub trials: Vec<Trial>,
    /// Of the machine that they are for.
    cores: u32,
}

/// One run of a fresh server under load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// From 0, in the order of the plan; the place in the store.
    pub number: usize,
    pub block: u32,
    pub point: Point,
    pub again: bool,
    pub setup: Setup,
    /// Known before anything is started: it needs what is not built, or more cores than there are.
    pub is_absent: bool,
    /// Systems of `[system]` that run behind the one under test, nearest first.
    pub upstreams: Vec<System>,
}

impl Plan {
    /// Orders all points of all blocks, for a machine with so many cores.
    pub fn of(recipe: &Resolved, cores: u32) -> Result<Self, RecipeError> {
        let points = prepared(recipe, cores)?;
        let mut plan = Self {
            trials: Vec::new(),
            cores,
        };
        let groups = match recipe.recipe.repeat.order {
            Order::Shuffled => vec![points.as_slice()],
            Order::Alternating => points
                .chunk_by(|one, next| is_beside(recipe, one, next))
                .collect(),
        };
        for group in groups {
            for block in 0..recipe.recipe.repeat.blocks {
                plan.append(recipe, group, block);
            }
        }
        Ok(plan)
    }

    /// Cores of the machine that it is for.
    pub fn cores(&self) -> u32 {
        self.cores
    }

    /// One block more, after the last, of the points that are wanted: what `repeat.half_width` and `until_decided` ask
    /// for. The order of a block depends on the seed, its number and its points alone.
    pub fn extend(
        &mut self,
        recipe: &Resolved,
        is_wanted: impl Fn(&Point) -> bool,
    ) -> Result<(), RecipeError> {
        let mut points = prepared(recipe, self.cores)?;
        points.retain(|prepared| is_wanted(&prepared.point));
        let block = self.trials.last().map_or(0, |trial| trial.block + 1);
        // Groups follow each other within the block.
        self.append(recipe, &points, block);
        Ok(())
    }

    fn append(&mut self, recipe: &Resolved, points: &[Prepared], block: u32) {
        let repeat = &recipe.recipe.repeat;
        let mut shuffle = Shuffle::of_block(repeat.seed, block);
        let mut order: Vec<(&Prepared, bool)> =
            points.iter().map(|prepared| (prepared, false)).collect();
        match repeat.order {
            Order::Shuffled => shuffle.apply(&mut order),
            Order::Alternating if block % 2 == 1 => order.reverse(),
            Order::Alternating => {}
        }
        if repeat.again
            && let Some(first) = first_of(recipe, &order)
        {
            let place = shuffle.below(order.len() + 1);
            order.insert(place, (first, true));
        }
        for (prepared, again) in order {
            self.push(prepared, block, again);
        }
    }

    fn push(&mut self, prepared: &Prepared, block: u32, again: bool) {
        let mut setup = prepared.setup.clone();
        // Probes cost time and their results repeat: one pass at each point is enough, unless the plan has probes
        // only.
        if (block > 0 || again) && setup.load.tool != Tool::None {
            setup.probe.clear();
        }
        self.trials.push(Trial {
            number: self.trials.len(),
            block,
            point: prepared.point.clone(),
            again,
            setup,
            is_absent: prepared.is_absent,
            upstreams: prepared.upstreams.clone(),
        });
    }

    /// Adds the trials of further blocks that an interrupted run of `until_decided` has kept: which points those blocks had
    /// depended on figures. What is missing of the last one is not made up for; the next block decides anew.
    pub fn adopt(&mut self, recipe: &Resolved, kept: &[TrialRecord]) -> Result<(), RecipeError> {
        let points = prepared(recipe, self.cores)?;
        let mut kept: Vec<&TrialRecord> = kept.iter().collect();
        kept.sort_by_key(|record| record.number);
        for record in kept {
            let of_record = |prepared: &&Prepared| prepared.point == record.point;
            if record.number == self.trials.len()
                && let Some(prepared) = points.iter().find(of_record)
            {
                self.push(prepared, record.block, record.again);
            }
        }
        Ok(())
    }
}

/// Whether two points have the same value on the first axis.
fn is_beside(recipe: &Resolved, one: &Prepared, next: &Prepared) -> bool {
    let axes = recipe.axes();
    let first = axes.first().map(|axis| &axis.name);
    first.is_none_or(|axis| one.point.get(axis) == next.point.get(axis))
}

struct Prepared {
    point: Point,
    setup: Setup,
    is_absent: bool,
    upstreams: Vec<System>,
}

fn prepared(recipe: &Resolved, cores: u32) -> Result<Vec<Prepared>, RecipeError> {
    let points = recipe.points().into_iter().map(|point| {
        let (setup, upstreams) = recipe.setup(&point)?;
        Ok(Prepared {
            is_absent: setup.is_surely_absent(cores),
            point,
            setup,
            upstreams,
        })
    });
    points.collect()
}

/// Which trial of a block is run again: the block's first of the first system that can be there. One is enough,
/// however many points there are: the noise floor is the machine's, and each block adds a pair at a point of its
/// own.
fn first_of<'a>(recipe: &Resolved, order: &[(&'a Prepared, bool)]) -> Option<&'a Prepared> {
    let axes = recipe.axes();
    let systems = axes.iter().find(|axis| axis.name == "system")?;
    let of_system = |name: &String, absent: bool| {
        let mut trials = order.iter().map(|(prepared, _)| *prepared);
        trials.find(|prepared| {
            prepared.point.get("system") == Some(name) && (absent || !prepared.is_absent)
        })
    };
    let names = || systems.values.iter().map(|value| &value.name);
    names()
        .find_map(|name| of_system(name, false))
        .or_else(|| names().find_map(|name| of_system(name, true)))
}

#[cfg(test)]
mod tests;
