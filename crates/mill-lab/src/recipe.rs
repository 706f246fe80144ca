//! An experiment as data: `recipes/*.toml`, or a file of one's own.
//!
//! A recipe is read in steps, and each is a file here:
//!
//! ```text
//! source      a text as a table, and the place of each key
//! attachment  `config = "@conf/nginx.conf"` becomes that text
//! inherit     `parent = "other"`: the recipe laid over its parents
//! size        `[size.smoke]` laid over it
//! overrides   `--set key=value` laid over that
//! family      `[system.X] parent = "Y"`
//! axes        `[for]`, with `system` in it, and the points of the cross product
//! substitute  `${…}` replaced for a point
//! typed       tables as `Recipe` and `Setup`; serde's errors in readable form
//! ```
//!
//! What comes out of the first six is one TOML table. It is looked at twice: as `Recipe`, which holds for the whole run, and,
//! after `${…}` was replaced for a point, as `Setup`, which is what one trial needs. So any value below
//! `[topology]`, `[tune]`, `[content]`, `[system]`, `[load]`, `[monitors]` and `[[probe]]` may depend on an axis or a variable.

mod attachment;
mod axes;
mod check;
mod diagram;
mod embedded;
mod family;
mod inherit;
mod model;
mod overrides;
mod point;
mod published;
mod setup;
mod show;
mod size;
mod source;
mod substitute;
mod typed;

pub use axes::{matches, value_name, value_names};
pub use check::{check, check_all};
pub use diagram::diagram;
pub use model::{
    Absence, Axis, AxisValue, Chart, ChartKind, Column, Comparison, Order, Published, Recipe,
    Repeat, Rows, Table, Target,
};
pub use published::{MatrixError, PublishedFigure};
pub use setup::{
    Affinity, Allocator, Content, Counter, Cpus, Interface, Limits, Load, Monitors, Probe,
    ProbeKind, Profile, Remote, Setup, Side, Start, System, SystemKind, Tool, Topology,
    TopologyKind, Tune, Where,
};
pub use show::{Listing, list, show};
pub use size::{DEFAULT_SIZE, SIZES};

use inherit::Document;
use mill_config::suggest::nearest;
use source::{Places, Source};
use std::collections::{BTreeMap, BTreeSet};

/// A recipe with everything in it: what `lab show` prints and a run folder keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    pub recipe: Recipe,
    /// All of it, before substitution.
    pub table: toml::Table,
    /// The name on the command line.
    pub(crate) asked: RecipeSelection,
    places: Places,
    /// The values of each axis at any size: tables and published figures name them all.
    known: BTreeMap<String, Vec<String>>,
}

/// The overrides of the command line, for resolving the other sizes of the same recipe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecipeSelection {
    pub(crate) name: String,
    pub(crate) size: String,
    pub(crate) sets: Vec<String>,
}

/// What is wrong with a recipe, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct RecipeError {
    /// `recipes/mine.toml:12:5`, or the command line's `--set`.
    pub place: String,
    /// With advice.
    pub problem: String,
}

/// Variables that are known on the machine only; substitution leaves them.
pub const MACHINE_VARIABLES: [&str; 14] = [
    // http://HOST:PORT and `load.path`.
    "url",
    // The server's address as clients see it.
    "host",
    "port",
    // HOST:PORT of the system behind it.
    "upstream",
    // The document root.
    "root",
    // A private folder of this trial.
    "run",
    // The server's interface towards its clients, and the clients' towards it.
    "interface",
    "client_interface",
    // Of the client process: its number, from 0, and the address of its host; for a server, of the first.
    "index",
    "client_host",
    // The server's CPUs, as taskset takes them; how many they are; nginx's worker_cpu_affinity masks for them.
    "cpus",
    "cores",
    "affinity_masks",
    // A script for wrk's `-s` that prints its figures unrounded, with p99.9.
    "wrk_script",
];

/// The keys that a recipe may have; `parent` and `size` are removed when it is resolved.
const TOP_LEVEL: [&str; 23] = [
    "id",
    "title",
    "seed",
    "rows",
    "question",
    "notes",
    "absent",
    "vars",
    "for",
    "skip",
    "repeat",
    "compare",
    "target",
    "table",
    "chart",
    "published",
    "topology",
    "tune",
    "content",
    "system",
    "load",
    "monitors",
    "probe",
];

/// Looks a recipe up (by id among those that come with Millstream, or by path), lays a size and `--set`s over it.
/// An empty size is the default one.
pub fn resolve(name: &str, size: &str, sets: &[String]) -> Result<Resolved, RecipeError> {
    first(resolve_all(name, size, sets))
}

/// The same with all that is wrong, as far as one mistake does not hide another.
fn resolve_all(name: &str, size: &str, sets: &[String]) -> Result<Resolved, Vec<RecipeError>> {
    let document = Document::named(name).map_err(|error| vec![error])?;
    let mut resolved = finish(&document, size, sets)?;
    resolved.asked.name = String::from(name);
    Ok(resolved)
}

/// The text of a recipe with everything it inherits and its sizes not laid over it yet: `parse` reads it again, at any size.
pub fn whole(name: &str, sets: &[String]) -> Result<String, RecipeError> {
    let document = Document::named(name)?;
    let mut source = inherit::read(&document)?;
    for set in sets {
        overrides::lay(&mut source, set)?;
    }
    let id = || toml::Value::String(document.id.clone());
    source.table.entry("id").or_insert_with(id);
    Ok(emit(&source.table))
}

fn first<T>(result: Result<T, Vec<RecipeError>>) -> Result<T, RecipeError> {
    result.map_err(|errors| {
        let first = errors.into_iter().next();
        first.expect("a failure has an error")
    })
}

fn finish(document: &Document, size: &str, sets: &[String]) -> Result<Resolved, Vec<RecipeError>> {
    let one = |error| vec![error];
    let mut source = inherit::read(document).map_err(one)?;
    let mut known = axes::known(&source);
    size::lay(&mut source, size).map_err(one)?;
    for set in sets {
        overrides::lay(&mut source, set).map_err(one)?;
    }
    let mut errors = unknown_keys(&source);
    family::lay(&mut source).map_err(one)?;
    axes::complete(&mut source).map_err(one)?;
    let id = || toml::Value::String(document.id.clone());
    source.table.entry("id").or_insert_with(id);
    axes::add_names(&source.table, &mut known);
    errors.extend(reserved_names(&source));
    let at = |path: &[String]| (path.to_vec(), source.places.of(path));
    let recipe = match typed::read::<Recipe>(source.table.clone(), &BTreeSet::new(), at) {
        Ok(recipe) if errors.is_empty() => recipe,
        Ok(_) => return Err(errors),
        Err(more) => {
            errors.extend(more);
            return Err(errors);
        }
    };
    Ok(Resolved {
        recipe,
        table: source.table,
        asked: RecipeSelection {
            name: String::new(),
            size: String::from(if size.is_empty() { DEFAULT_SIZE } else { size }),
            sets: sets.to_vec(),
        },
        places: source.places,
        known,
    })
}

fn unknown_keys(source: &Source) -> Vec<RecipeError> {
    let unknown = source
        .table
        .keys()
        .filter(|key| !TOP_LEVEL.contains(&key.as_str()));
    let errors = unknown.map(|key| {
        let known = TOP_LEVEL.into_iter().chain(["parent", "size"]);
        let advice = match nearest(key.as_bytes(), known) {
            Some(near) => format!("; did you mean `{near}`?"),
            None => String::from("; variables of your own belong into [vars]"),
        };
        source.error(&[key], format!("unknown key `{key}`{advice}"))
    });
    errors.collect()
}

/// Variables and axes that would have no effect, because the machine defines the name.
fn reserved_names(source: &Source) -> Vec<RecipeError> {
    let tables = ["vars", "for"].into_iter().filter_map(|table| {
        let keys = source.table.get(table)?.as_table()?.keys();
        Some(keys.map(move |key| (table, key)))
    });
    let reserved = tables
        .flatten()
        .filter(|(_, key)| MACHINE_VARIABLES.contains(&key.as_str()));
    let errors = reserved.map(|(table, key)| {
        let problem = format!("`{key}` is set by the machine; choose another name");
        source.error(&[table, key], problem)
    });
    errors.collect()
}

impl Resolved {
    /// Reads a recipe from its text, as a run folder keeps it. `label` is the file that messages name; a text without
    /// sizes was resolved at this one before.
    pub fn parse(label: &str, text: &str, size: &str) -> Result<Self, RecipeError> {
        let document = Document::text(label, text);
        if inherit::read(&document)?.table.contains_key("size") {
            return first(finish(&document, size, &[]));
        }
        let mut resolved = first(finish(&document, "", &[]))?;
        if !size.is_empty() {
            resolved.asked.size = String::from(size);
        }
        Ok(resolved)
    }

    /// Its text, which needs no other file: `parse` reads it again.
    pub fn emit(&self) -> String {
        emit(&self.table)
    }
}

fn emit(table: &toml::Table) -> String {
    let mut table = table.clone();
    let axes = table.remove("for");
    let mut text = table.to_string();
    // TOML writes values before tables, and the order of axes means something: each is written on a line of its own.
    text.push_str("\n[for]\n");
    for (axis, values) in axes
        .as_ref()
        .and_then(toml::Value::as_table)
        .into_iter()
        .flatten()
    {
        let line = toml::Table::from_iter([(axis.clone(), values.clone())]);
        let line = toml::Value::Table(line).to_string();
        let line = line
            .strip_prefix('{')
            .and_then(|line| line.strip_suffix('}'))
            .unwrap_or(&line);
        text.push_str(line.trim());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests;
