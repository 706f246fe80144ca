//! An experiment as data: `recipes/*.toml`, or a file of one's own.
//!
//! A recipe is read in steps, and each is a file here: `source` (text, and where each key stands), `inherit` (`parent = `),
//! `size` (`[size.smoke]` laid over it), `overrides` (`--set key=value`). What comes out is one TOML table. It is looked at twice: as `Recipe`,
//! which is what holds for the whole run, and, after `${…}` was replaced for a point, as `Setup`, which is
//! what one trial needs. So any value below `[topology]`, `[tune]`, `[content]`, `[system]`, `[load]` and `[probe]` may depend on an axis or a variable.

mod model;
mod setup;

pub use model::{
    Absence, Axis, AxisValue, Chart, ChartKind, Column, Comparison, Published, Recipe, Repeat,
    Rows, Table,
};
pub use setup::{
    Affinity, Allocator, Content, Counter, Cpus, Interface, Limits, Load, Monitors, Probe,
    ProbeKind, Profile, Remote, Setup, Start, System, SystemKind, Tool, Topology, TopologyKind,
    Tune, Where,
};

use crate::record::Point;

/// A recipe with everything in it: what `lab show` prints and a run folder keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    pub recipe: Recipe,
    /// All of it, before substitution.
    pub table: toml::Table,
}

/// What is wrong with a recipe, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct RecipeError {
    /// `recipes/mine.toml:12:5`, or the command line's `--set`.
    pub place: String,
    /// With advice.
    pub problem: String,
}

/// Variables that only the machine knows; substitution leaves them as they are.
pub const MACHINE_VARIABLES: [&str; 9] = [
    // http://HOST:PORT and `load.path`.
    "url",
    // The server's address as clients see it.
    "host",
    "port",
    // The document root.
    "root",
    // A private folder of this trial.
    "run",
    // Of the client process, from 0.
    "index",
    // The server's CPUs, as taskset takes them; how many they are; nginx's worker_cpu_affinity masks for them.
    "cpus",
    "cores",
    "affinity_masks",
];

/// Looks a recipe up (by id among those that come with Millstream, or by path), lays a size and `--set`s over it.
pub fn resolve(name: &str, size: &str, sets: &[String]) -> Result<Resolved, RecipeError> {
    let _ = (size, sets);
    Err(RecipeError {
        place: String::from(name),
        problem: String::from("recipes are not read yet"),
    })
}

impl Resolved {
    /// The axes in order, `system` among them.
    pub fn axes(&self) -> Vec<Axis> {
        Vec::new()
    }

    /// What a trial at this point needs; with the systems that run behind the one under test.
    pub fn setup(&self, point: &Point) -> Result<(Setup, Vec<System>), RecipeError> {
        let _ = point;
        Err(RecipeError {
            place: self.recipe.id.clone(),
            problem: String::from("setups are not made yet"),
        })
    }
}
