//! A run folder in memory, for analysis and report.

use super::folder::{self, ENVIRONMENT_FILE, FINISHED_FILE, KeptTrial, RECIPE_FILE, RUN_FILE};
use super::{StoreError, at, read_json, required};
use crate::analysis::{Kept, KeptFile};
use crate::recipe::Recipe;
use crate::record::RunRecord;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Reads the run below `folder`: every attempt's record, and of the last attempt of each trial the texts that a report shows.
pub(super) fn load(folder: &Path) -> Result<Kept, StoreError> {
    let mut run: RunRecord = required(&folder.join(RUN_FILE))?;
    let kept = folder::kept(folder)?;
    run.count_further(kept.iter().map(|trial| &trial.record));
    let latest: BTreeMap<usize, &KeptTrial> = kept
        .iter()
        .map(|trial| (trial.record.number, trial))
        .collect();
    let mut files = Vec::new();
    for trial in latest.values() {
        read_texts(trial, &mut files)?;
    }
    Ok(Kept {
        recipe: read_recipe(&folder.join(RECIPE_FILE), &run.recipe)?,
        environment: required(&folder.join(ENVIRONMENT_FILE))?,
        finish: read_json(&folder.join(FINISHED_FILE))?,
        trials: kept.into_iter().map(|trial| trial.record).collect(),
        files,
        run,
    })
}

pub(super) fn read_recipe(path: &Path, name: &str) -> Result<Recipe, StoreError> {
    let text = fs::read_to_string(path).map_err(at(path))?;
    let mut recipe: Recipe = toml::from_str(&text).map_err(|error| StoreError::Damaged {
        path: path.to_path_buf(),
        problem: String::from(error.message()),
    })?;
    if recipe.id.is_empty() {
        recipe.id = String::from(name);
    }
    Ok(recipe)
}

fn read_texts(trial: &KeptTrial, files: &mut Vec<KeptFile>) -> Result<(), StoreError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(&trial.folder).map_err(at(&trial.folder))? {
        let entry = entry.map_err(at(&trial.folder))?;
        let is_file = entry.file_type().map_err(at(&trial.folder))?.is_file();
        if let Ok(name) = entry.file_name().into_string()
            && is_file
        {
            names.push(name);
        }
    }
    names.sort();
    for name in names {
        if let Some(limit) = text_limit(&name, &trial.record.artefacts) {
            let path = trial.folder.join(&name);
            files.push(KeptFile {
                trial: trial.record.number,
                text: read_bounded(&path, limit).map_err(at(&path))?,
                name,
            });
        }
    }
    Ok(())
}

/// How much of a file a report can use, if it can use it at all.
fn text_limit(name: &str, artefacts: &[String]) -> Option<u64> {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    match (name, ending) {
        ("client-0.out", _) => Some(PRINTED_BYTES_MAX),
        ("monitor.csv", _) => Some(SERIES_BYTES_MAX),
        (_, "folded") => Some(STACKS_BYTES_MAX),
        (_, "txt" | "csv" | "out") if artefacts.iter().any(|artefact| artefact == name) => {
            Some(PRINTED_BYTES_MAX)
        }
        _ => None,
    }
}

/// The first `limit` bytes, up to a whole line; bytes that are no text become U+FFFD.
fn read_bounded(path: &Path, limit: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    let whole = file.metadata()?.len();
    file.take(limit).read_to_end(&mut bytes)?;
    if whole > limit
        && let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n')
    {
        bytes.truncate(end + 1);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Bytes of what a tool printed: wrk's block has 700, ab's with percentiles 1,500; the rest is error messages.
const PRINTED_BYTES_MAX: u64 = 64 << 10;

/// Bytes of a monitor's series: 100 columns of 8 letters each 250 ms for ten minutes are 2 MB.
const SERIES_BYTES_MAX: u64 = 4 << 20;

/// Bytes of folded stacks: 20,000 different ones of 200 bytes.
const STACKS_BYTES_MAX: u64 = 4 << 20;
