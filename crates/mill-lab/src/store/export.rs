//! A run for other programs: every figure as a line of CSV, or everything as one JSON document.

use super::folder::{self, FINISHED_FILE, KeptTrial};
use super::{Store, StoreError, at, index, read_json, required};
use crate::metric;
use crate::record::{Environment, Finish, RunRecord, TrialRecord};
use crate::report::csv_field;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// One line a figure: run, trial (from 1), attempt, block, again, each axis, status, reason, metric, unit, value.
/// A trial without figures has one line, whose last three cells are empty.
pub fn csv(store: &Store, id: &str) -> Result<String, StoreError> {
    let kept = folder::kept(&store.run_path(id))?;
    let recipe = store.load_recipe(id)?;
    let axes = axes(recipe.axes.keys(), &kept);
    let mut head: Vec<String> = ["run", "trial", "attempt", "block", "again"]
        .map(String::from)
        .to_vec();
    head.extend(axes.iter().cloned());
    head.extend(["status", "reason", "metric", "unit", "value"].map(String::from));
    let mut text = String::new();
    line(&mut text, &head);
    for trial in &kept {
        let mut cells = place(id, trial, &axes);
        if trial.record.figures.is_empty() {
            cells.extend([String::new(), String::new(), String::new()]);
            line(&mut text, &cells);
            continue;
        }
        for (name, value) in &trial.record.figures {
            let unit = index::unit_word(metric::describe(name).unit);
            let figure = [name.clone(), unit, value.to_string()];
            line(&mut text, &[&cells[..], &figure[..]].concat());
        }
    }
    Ok(text)
}

/// The folder as one document; `schema` counts changes of its form.
pub fn json(store: &Store, id: &str) -> Result<String, StoreError> {
    let path = store.run_path(id);
    let mut trials = Vec::new();
    for kept in folder::kept(&path)? {
        let (files, omitted) = files_of(&kept.folder)?;
        trials.push(TrialDocument {
            attempt: kept.attempt,
            record: kept.record,
            files,
            omitted,
        });
    }
    let document = Document {
        schema: SCHEMA,
        run: required(&path.join(folder::RUN_FILE))?,
        recipe: store.recipe_text(id)?,
        environment: required(&path.join(folder::ENVIRONMENT_FILE))?,
        finish: read_json(&path.join(FINISHED_FILE))?,
        trials,
    };
    let bytes = super::json(&document);
    Ok(String::from_utf8(bytes).expect("serde_json writes UTF-8"))
}

#[derive(Serialize)]
struct Document {
    schema: u32,
    run: RunRecord,
    /// TOML.
    recipe: String,
    environment: Environment,
    finish: Option<Finish>,
    trials: Vec<TrialDocument>,
}

#[derive(Serialize)]
struct TrialDocument {
    /// From 1.
    attempt: u32,
    record: TrialRecord,
    /// Texts, whole.
    files: Vec<FileDocument>,
    /// What is no text (captures, perf's data) stays in the folder.
    omitted: Vec<OmittedDocument>,
}

#[derive(Serialize)]
struct FileDocument {
    name: String,
    text: String,
}

#[derive(Serialize)]
struct OmittedDocument {
    name: String,
    bytes: usize,
}

/// Everything in a trial's folder but its record.
fn files_of(folder: &Path) -> Result<(Vec<FileDocument>, Vec<OmittedDocument>), StoreError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let entry = entry.map_err(at(folder))?;
        if entry.file_type().map_err(at(folder))?.is_file()
            && let Ok(name) = entry.file_name().into_string()
            && name != folder::TRIAL_FILE
        {
            names.push(name);
        }
    }
    names.sort();
    let (mut files, mut omitted) = (Vec::new(), Vec::new());
    for name in names {
        let path = folder.join(&name);
        match String::from_utf8(fs::read(&path).map_err(at(&path))?) {
            Ok(text) => files.push(FileDocument { name, text }),
            Err(error) => omitted.push(OmittedDocument {
                name,
                bytes: error.as_bytes().len(),
            }),
        }
    }
    Ok((files, omitted))
}

/// The recipe's axes in its order, then what else points have.
fn axes<'a>(named: impl Iterator<Item = &'a String>, kept: &[KeptTrial]) -> Vec<String> {
    let mut rest: BTreeSet<&String> = kept
        .iter()
        .flat_map(|trial| trial.record.point.keys())
        .collect();
    let mut axes: Vec<String> = named.filter(|axis| rest.remove(axis)).cloned().collect();
    axes.extend(rest.into_iter().cloned());
    axes
}

/// The cells before the figure's own.
fn place(id: &str, trial: &KeptTrial, axes: &[String]) -> Vec<String> {
    let record = &trial.record;
    let (status, reason) = index::status(&record.status);
    let mut cells = vec![
        String::from(id),
        (record.number + 1).to_string(),
        trial.attempt.to_string(),
        record.block.to_string(),
        u8::from(record.again).to_string(),
    ];
    cells.extend(
        axes.iter()
            .map(|axis| record.point.get(axis).cloned().unwrap_or_default()),
    );
    cells.extend([String::from(status), String::from(reason.unwrap_or(""))]);
    cells
}

fn line(text: &mut String, cells: &[String]) {
    let cells: Vec<String> = cells.iter().map(|cell| csv_field(cell)).collect();
    text.push_str(&cells.join(","));
    text.push('\n');
}

/// Of the JSON document: readers refuse a number they don't know.
const SCHEMA: u32 = 1;

#[cfg(test)]
mod tests {
    use super::super::fixtures::{RECIPE, Scratch, environment, keep, run, trial};
    use super::*;
    use crate::record::Status;

    fn store(scratch: &Scratch) -> Store {
        let store = Store::open(&scratch.0).unwrap();
        let folder = store.begin(&run("a", 0), RECIPE, &environment()).unwrap();
        let mut first = trial(0, "glibc", 33_585.56);
        first
            .point
            .insert(String::from("a size"), String::from("1,0"));
        keep(&folder, &first);
        let mut second = trial(1, "jemalloc", 0.0);
        second.figures.clear();
        second.status = Status::Absent {
            reason: String::from("needs \"libjemalloc\""),
        };
        let place = folder.trial(1).unwrap();
        place.write("cut.pcap", b"\xd4\xc3\xb2\xa1").unwrap();
        folder.keep(&second).unwrap();
        store
    }

    #[test]
    fn a_figure_is_a_line() {
        let scratch = Scratch::new();
        let expected = "\
run,trial,attempt,block,again,system,a size,status,reason,metric,unit,value
a,1,1,0,0,glibc,\"1,0\",measured,,requests_per_s,per-second,33585.56
a,2,1,0,0,jemalloc,,absent,\"needs \"\"libjemalloc\"\"\",,,
";
        assert_eq!(csv(&store(&scratch), "a").unwrap(), expected);
    }

    #[test]
    fn a_run_is_one_document() {
        let scratch = Scratch::new();
        let text = json(&store(&scratch), "a").unwrap();
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        let cases = [
            ("/schema", "1"),
            ("/run/recipe", "\"nginx-jemalloc\""),
            ("/environment/host", "\"ada\""),
            ("/finish", "null"),
            ("/trials/0/record/figures/requests_per_s", "33585.56"),
            ("/trials/0/files/0/name", "\"client-0.out\""),
            ("/trials/0/files/0/text", "\"Running\\n\""),
            ("/trials/1/attempt", "1"),
            ("/trials/1/omitted/0", "{\"bytes\":4,\"name\":\"cut.pcap\"}"),
        ];
        for (place, expected) in cases {
            let found = document.pointer(place).map(ToString::to_string);
            assert_eq!(found.as_deref(), Some(expected), "{place}");
        }
        assert_eq!(document["recipe"], RECIPE);
    }
}
