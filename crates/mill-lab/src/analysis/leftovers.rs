//! What a report has besides figures: what is missing, commands, tuning, printed blocks, the topology.

use super::KeptFile;
use super::comparison::{disturbed_pairs, exists};
use super::measured::{Filter, Measured, is_disturbed, named};
use super::wording::{counted, span_of_shares};
use crate::findings::{Block, Counts};
use crate::recipe::{AxisValue, Recipe, Topology, diagram, value_name};
use crate::record::{CommandLine, Point, Status, TrialRecord, TunedKey};
use std::collections::{BTreeMap, BTreeSet};

/// "Seed 004, rows N1 and N2".
pub(super) fn origin(recipe: &Recipe) -> Option<String> {
    let seed = recipe.seed.as_ref()?;
    Some(match recipe.rows.as_slice() {
        [] => format!("Seed {seed}"),
        [row] => format!("Seed {seed}, row {row}"),
        [rows @ .., last] => format!("Seed {seed}, rows {} and {last}", rows.join(", ")),
    })
}

/// What became of the plan's trials; those that have no record are missing.
pub(super) fn counts(measured: &Measured<'_>) -> Counts {
    let mut counts = Counts::default();
    let used = in_use(measured);
    for trial in &measured.trials {
        let count = match trial.status {
            Status::Measured => &mut counts.measured,
            Status::Disturbed { .. } => {
                counts.disturbed_used += usize::from(used.contains(&trial.number));
                &mut counts.disturbed
            }
            Status::Absent { .. } => &mut counts.absent,
            Status::Failed { .. } => &mut counts.failed,
        };
        *count += 1;
    }
    counts.missing = measured
        .kept
        .run
        .trials
        .saturating_sub(measured.trials.len());
    counts
}

/// Numbers of disturbed trials that cells or comparisons rest on.
fn in_use(measured: &Measured<'_>) -> BTreeSet<usize> {
    let all = measured.trials.iter().copied();
    let mut used: BTreeSet<usize> = all
        .filter(|trial| is_disturbed(trial) && measured.counts(trial))
        .map(|trial| trial.number)
        .collect();
    used.extend(disturbed_pairs(measured));
    used
}

/// The recipe's own sentences, then reasons of trials with the points they hold for, then comparisons that have no point.
pub(super) fn absences(measured: &Measured<'_>) -> Vec<String> {
    let mut sentences: Vec<String> = measured
        .recipe
        .absent
        .iter()
        .map(|absence| {
            format!(
                "{}: {}. In its place: {}.",
                absence.what, absence.why, absence.instead
            )
        })
        .collect();
    sentences.extend(reasons(measured));
    sentences.extend(figures(measured));
    for comparison in &measured.recipe.compare {
        for value in [&comparison.from, &comparison.to] {
            if !exists(measured, comparison, value) {
                sentences.push(format!(
                    "{}: no trial has {} = {value}, so it is compared with nothing.",
                    comparison.factor, comparison.axis
                ));
            }
        }
    }
    let mut seen = BTreeSet::new();
    sentences.retain(|sentence| seen.insert(sentence.clone()));
    sentences
}

/// Absent, disturbed and failed trials by system and reason. Each disturbed one has a share of its own: those are one sentence.
fn reasons(measured: &Measured<'_>) -> Vec<String> {
    let mut found: Vec<((String, String), usize)> = Vec::new();
    let used = in_use(measured);
    for trial in &measured.trials {
        let system = trial.point.get("system").map_or("", String::as_str);
        let reason = match &trial.status {
            Status::Measured => continue,
            Status::Absent { reason } => reason.clone(),
            Status::Disturbed { .. } => {
                let is_used = used.contains(&trial.number);
                let alike = measured.trials.iter().copied().filter(|other| {
                    is_disturbed(other)
                        && used.contains(&other.number) == is_used
                        && other.point.get("system") == trial.point.get("system")
                });
                let word = if is_used {
                    "used for want of others"
                } else {
                    "not used"
                };
                let shares = span_of_shares(&alike.collect::<Vec<_>>());
                format!("disturbed, {word}: others took {shares} of the machine's CPU time")
            }
            Status::Failed { reason } => format!("failed: {reason}"),
        };
        let key = (measured.title("system", system), reason);
        match found.iter_mut().find(|(known, _)| *known == key) {
            Some((_, count)) => *count += 1,
            None => found.push((key, 1)),
        }
    }
    found
        .into_iter()
        .map(|((system, reason), count)| {
            format!("{system}: {reason} ({}).", counted(count, "trial"))
        })
        .collect()
}

/// Figures that could not be had, by reason.
fn figures(measured: &Measured<'_>) -> Vec<String> {
    let mut by_reason: BTreeMap<&String, BTreeSet<String>> = BTreeMap::new();
    for trial in measured.usable(&Filter::new()) {
        for (metric, reason) in &trial.absent {
            by_reason
                .entry(reason)
                .or_default()
                .insert(crate::metric::describe(metric).title);
        }
    }
    by_reason
        .into_iter()
        .map(|(reason, titles)| {
            let titles: Vec<String> = titles.into_iter().collect();
            format!("{}: {reason}.", titles.join(", "))
        })
        .collect()
}

/// The recipe's notes and those of trials, each once, with what published figures are known to have wrong.
pub(super) fn notes(measured: &Measured<'_>) -> Vec<String> {
    let mut notes = measured.recipe.notes.clone();
    let trials = measured
        .trials
        .iter()
        .flat_map(|trial| trial.notes.iter().cloned());
    let defects = measured.recipe.published.iter().filter_map(|published| {
        let defect = published.defect.as_ref()?;
        Some(format!("The document's {}: {defect}.", published.place))
    });
    for note in trials.chain(defects) {
        if !notes.contains(&note) && notes.len() < NOTES_MAX {
            notes.push(note);
        }
    }
    notes
}

/// The topology drawn as the first point has it, or, where it can't be read so, as the recipe writes it.
pub(super) fn topology(measured: &Measured<'_>) -> String {
    let recipe = measured.recipe;
    let mut variables = recipe.vars.clone();
    for axis in &measured.axes {
        variables.extend(
            axis.values
                .first()
                .map(|value| value.vars.clone())
                .unwrap_or_default(),
        );
    }
    let mut table = toml::Value::Table(recipe.topology.clone());
    // Variables may contain variables; recipes nest no deeper than this.
    for _ in 0..VARIABLES_DEPTH {
        fill(&mut table, &variables);
    }
    match table.try_into::<Topology>() {
        Ok(topology) => diagram(&topology),
        Err(_) => toml::to_string(&recipe.topology).unwrap_or_default(),
    }
}

/// Replaces strings that are nothing but `${name}`.
fn fill(value: &mut toml::Value, variables: &toml::Table) {
    match value {
        toml::Value::Table(table) => table
            .iter_mut()
            .for_each(|(_, value)| fill(value, variables)),
        toml::Value::String(text) => {
            let name = text
                .strip_prefix("${")
                .and_then(|rest| rest.strip_suffix('}'));
            if let Some(known) = name.and_then(|name| variables.get(name)) {
                *value = known.clone();
            }
        }
        _ => {}
    }
}

/// Keys of all trials that count, each with what it was, first seen first.
pub(super) fn tuned(measured: &Measured<'_>) -> Vec<TunedKey> {
    let mut keys: Vec<TunedKey> = Vec::new();
    for trial in measured.usable(&Filter::new()) {
        for key in &trial.tuned {
            let known = |other: &&TunedKey| {
                (&other.key, &other.wanted, &other.problem) == (&key.key, &key.wanted, &key.problem)
            };
            if !keys.iter().any(|other| known(&other)) {
                keys.push(key.clone());
            }
        }
    }
    keys
}

/// Of each system the middle trial of its first point.
pub(super) fn commands(measured: &Measured<'_>) -> Vec<(String, Vec<CommandLine>)> {
    let systems = measured.names_at("system", &Filter::new());
    let commands = systems.into_iter().filter_map(|name| {
        let at = Filter::from([(String::from("system"), named(&name))]);
        let first = measured.usable(&at);
        let point: Filter = first
            .first()?
            .point
            .iter()
            .map(|(axis, value)| (axis.clone(), named(value)))
            .collect();
        let trial = measured.middle(&point, "requests_per_s")?;
        let mut commands = trial.commands.clone();
        commands.insert(0, folder_is_gone(trial, &name));
        Some((measured.title("system", &name), commands))
    });
    commands.collect()
}

/// The commands name a folder that the lab has removed: a note on what of it is stored, and where.
fn folder_is_gone(trial: &TrialRecord, system: &str) -> CommandLine {
    CommandLine {
        role: format!(
            "These ran on what the lab had made and has removed since; the command above makes all of it again. Configurations, as they were, \
             are trials/{:04}/server-{system}-* of the run's folder.",
            trial.number + 1
        ),
        line: String::new(),
    }
}

/// What the first client printed and what probes left as text, of the middle trial: of each point if they are few, else of each system's last point.
pub(super) fn blocks(measured: &Measured<'_>) -> Vec<Block> {
    let filter = |point: &Point| -> Filter {
        point
            .iter()
            .map(|(axis, value)| (axis.clone(), named(value)))
            .collect()
    };
    let mut points: Vec<Filter> = measured
        .points
        .iter()
        .map(|point| filter(point))
        .filter(|point| !measured.usable(point).is_empty())
        .collect();
    if points.len() > BLOCKS_MAX {
        let mut last: Vec<(toml::Value, Filter)> = Vec::new();
        for point in points {
            let Some(system) = point.get("system").cloned() else {
                continue;
            };
            match last.iter_mut().find(|(known, _)| *known == system) {
                Some((_, known)) => *known = point,
                None => last.push((system, point)),
            }
        }
        points = last.into_iter().map(|(_, point)| point).collect();
    }
    let moving = measured.moving_names();
    let mut blocks: Vec<Block> = Vec::new();
    for point in points.into_iter().take(BLOCKS_MAX) {
        let Some(trial) = measured.middle(&point, "requests_per_s") else {
            continue;
        };
        let mut told = point.clone();
        told.retain(|axis, _| axis == "system" || moving.contains(axis));
        let told = measured.told(&told);
        let printed = |file: &KeptFile| match file.name.as_str() {
            "client-0.out" => Some(format!("{}, {told}", tool(measured, &trial.point))),
            // Figures over time and stacks are pictures already.
            name if name.ends_with(".txt") => Some(format!("{name}, {told}")),
            _ => None,
        };
        let files = measured.kept.files.iter();
        let of_trial = files.filter(|file| file.trial == trial.number && !file.text.is_empty());
        blocks.extend(of_trial.filter_map(|file| {
            Some(Block {
                title: printed(file)?,
                text: file.text.clone(),
            })
        }));
    }
    blocks
}

/// The client's name; where it varies, an axis brings it as a variable.
fn tool(measured: &Measured<'_>, point: &Point) -> String {
    let tool = measured.recipe.load.get("tool");
    let tool = tool.and_then(toml::Value::as_str).unwrap_or("client");
    let Some(name) = tool
        .strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'))
    else {
        return String::from(tool);
    };
    let value = measured.axes.iter().find_map(|axis| {
        let is_here = |value: &&AxisValue| point.get(&axis.name) == Some(&value.name);
        axis.values.iter().find(is_here)?.vars.get(name)
    });
    let value = value.or_else(|| measured.recipe.vars.get(name));
    value.map_or_else(|| String::from("client"), value_name)
}

/// Points with printed blocks in a report: what T1's three sizes of two servers need, and two more.
const BLOCKS_MAX: usize = 8;

/// Sentences of notes; a report with more is not read.
const NOTES_MAX: usize = 40;

/// The deepest nesting of `${name}` in another `${name}`.
const VARIABLES_DEPTH: usize = 3;
