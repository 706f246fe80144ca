//! A run's folder while it is written, and one trial's folder in it.

use super::index::Index;
use super::publish::{set_writable, sync_folder, write_new};
use super::{StoreError, at, json};
use crate::record::{Finish, RunRecord, Status, TrialRecord};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A run that is being measured.
///
/// For each trial: `trial`, then files into its folder, then `keep`. At the end `finish`. A trial is stored from the
/// moment that `keep` returns; a folder without `trial.json`, left by a crash, is moved aside when the trial is
/// repeated.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    run: RunRecord,
    index_path: PathBuf,
}

/// Where one attempt at a trial leaves its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrialFolder {
    path: PathBuf,
    number: usize,
}

impl RunFolder {
    pub(super) fn new(path: PathBuf, run: RunRecord, index_path: PathBuf) -> Self {
        Self {
            path,
            run,
            index_path,
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn id(&self) -> &str {
        &self.run.id
    }

    pub fn run(&self) -> &RunRecord {
        &self.run
    }

    /// A new, empty folder for an attempt at the trial `number` (from 0): `trials/0001`, and `trials/0001-2` where a kept
    /// attempt was disturbed or failed. One that was measured is not tried again: that is an error.
    pub fn trial(&self, number: usize) -> Result<TrialFolder, StoreError> {
        let trials = self.path.join(TRIALS);
        let mut path = trials.join(attempt_name(number, 1));
        for attempt in 2.. {
            if !path.try_exists().map_err(at(&path))? {
                break;
            }
            match read_record(&path)? {
                None => move_aside(&path)?,
                Some(record) if record.status == Status::Measured => {
                    return Err(StoreError::Kept {
                        run: self.run.id.clone(),
                        number: number + 1,
                    });
                }
                Some(_) => path = trials.join(attempt_name(number, attempt)),
            }
        }
        fs::create_dir(&path).map_err(at(&path))?;
        sync_folder(&trials).map_err(at(&trials))?;
        Ok(TrialFolder { path, number })
    }

    /// Writes the record of the attempt that `trial` began last; from then on the trial is stored. Returns a note if
    /// the index could not be updated: it can be rebuilt, the trial could not.
    pub fn keep(&self, record: &TrialRecord) -> Result<Option<String>, StoreError> {
        let folder = self
            .attempts(record.number)?
            .pop()
            .filter(|folder| !folder.join(TRIAL_FILE).exists())
            .ok_or_else(|| StoreError::NotBegun {
                number: record.number + 1,
            })?;
        let path = folder.join(TRIAL_FILE);
        let record = finite(record);
        write_new(&path, &json(&record)).map_err(at(&path))?;
        let written = Index::open(&self.index_path)
            .and_then(|mut index| index.put_trial(&self.run.id, attempt_of(&folder), &record));
        Ok(written.err().map(|error| {
            format!("the index does not have this trial yet, the folder does: {error}")
        }))
    }

    /// Records of every stored attempt, in the order of the plan.
    pub fn kept_trials(&self) -> Result<Vec<TrialRecord>, StoreError> {
        Ok(kept(&self.path)?
            .into_iter()
            .map(|kept| kept.record)
            .collect())
    }

    /// Writes `finished.json`. A run that was not interrupted is complete: its files become read-only.
    pub fn finish(self, finish: &Finish) -> Result<Option<String>, StoreError> {
        let path = self.path.join(FINISHED_FILE);
        write_new(&path, &json(finish)).map_err(at(&path))?;
        if !finish.interrupted {
            set_writable(&self.path, false).map_err(at(&self.path))?;
        }
        let written = Index::open(&self.index_path)
            .and_then(|mut index| index.put_finish(&self.run.id, Some(finish)));
        Ok(written
            .err()
            .map(|error| format!("the index does not know that the run is over: {error}")))
    }

    /// Resumes an interrupted run: its `finished.json` is stored under another name.
    pub(super) fn reopen(&self) -> Result<(), StoreError> {
        let finished = self.path.join(FINISHED_FILE);
        if !finished.try_exists().map_err(at(&finished))? {
            return Ok(());
        }
        let mut number = 1;
        let mut aside = self.path.join(format!("interrupted-{number}.json"));
        while aside.exists() {
            number += 1;
            aside = self.path.join(format!("interrupted-{number}.json"));
        }
        fs::rename(&finished, &aside).map_err(at(&aside))?;
        sync_folder(&self.path).map_err(at(&self.path))
    }

    /// Folders of one trial, the first attempt first.
    fn attempts(&self, number: usize) -> Result<Vec<PathBuf>, StoreError> {
        let mut found: Vec<PathBuf> = trial_folders(&self.path)?
            .into_iter()
            .filter(|(of, ..)| *of == number)
            .map(|(.., path)| path)
            .collect();
        found.sort_by_key(|path| attempt_of(path));
        Ok(found)
    }
}

impl TrialFolder {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The trial's place in the plan, from 0.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Writes a file that is not there yet; how far it is on disk is the system's business until `keep`.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)?;
        io::Write::write_all(&mut file, bytes.as_ref())?;
        Ok(path)
    }
}

/// One stored attempt.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KeptTrial {
    pub(super) attempt: u32,
    pub(super) folder: PathBuf,
    pub(super) record: TrialRecord,
}

/// Every attempt with a `trial.json`, by number and attempt.
pub(super) fn kept(run: &Path) -> Result<Vec<KeptTrial>, StoreError> {
    let mut kept = Vec::new();
    for (_, attempt, folder) in trial_folders(run)? {
        if let Some(record) = read_record(&folder)? {
            kept.push(KeptTrial {
                attempt,
                folder,
                record,
            });
        }
    }
    Ok(kept)
}

/// JSON cannot represent a division by zero: such a figure is absent, with the reason.
fn finite(record: &TrialRecord) -> TrialRecord {
    let mut record = record.clone();
    let absent = &mut record.absent;
    record.figures.retain(|name, value| {
        if !value.is_finite() {
            absent.insert(name.clone(), format!("the figure came out as {value}"));
        }
        value.is_finite()
    });
    record
        .percentiles
        .retain(|(percent, seconds)| percent.is_finite() && seconds.is_finite());
    if !record.seconds.is_finite() {
        record.seconds = 0.0;
    }
    record
}

/// (number from 0, attempt from 1, path), sorted.
pub(super) fn trial_folders(run: &Path) -> Result<Vec<(usize, u32, PathBuf)>, StoreError> {
    let trials = run.join(TRIALS);
    let mut found = Vec::new();
    let entries = match fs::read_dir(&trials) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(at(&trials)(error)),
    };
    for entry in entries {
        let path = entry.map_err(at(&trials))?.path();
        if let Some((number, attempt)) = parse_name(&path) {
            found.push((number, attempt, path));
        }
    }
    found.sort();
    Ok(found)
}

fn read_record(folder: &Path) -> Result<Option<TrialRecord>, StoreError> {
    super::read_json(&folder.join(TRIAL_FILE))
}

fn attempt_name(number: usize, attempt: u32) -> String {
    match attempt {
        1 => format!("{:04}", number + 1),
        more => format!("{:04}-{more}", number + 1),
    }
}

fn parse_name(path: &Path) -> Option<(usize, u32)> {
    let name = path.file_name()?.to_str()?;
    let (number, attempt) = name.split_once('-').unwrap_or((name, "1"));
    let number: usize = number.parse().ok()?;
    Some((number.checked_sub(1)?, attempt.parse().ok()?))
}

fn attempt_of(path: &Path) -> u32 {
    parse_name(path).map_or(1, |(_, attempt)| attempt)
}

/// What a crash left: stored for finding its cause, and no trial.
fn move_aside(folder: &Path) -> Result<(), StoreError> {
    let name = folder.file_name().and_then(|name| name.to_str());
    let name = name.unwrap_or("trial");
    let mut number = 1;
    let mut aside = folder.with_file_name(format!("{name}.unfinished"));
    while aside.exists() {
        number += 1;
        aside = folder.with_file_name(format!("{name}.unfinished-{number}"));
    }
    fs::rename(folder, &aside).map_err(at(folder))
}

pub(super) const TRIALS: &str = "trials";
pub(super) const TRIAL_FILE: &str = "trial.json";
pub(super) const RUN_FILE: &str = "run.json";
pub(super) const RECIPE_FILE: &str = "recipe.toml";
pub(super) const ENVIRONMENT_FILE: &str = "environment.json";
pub(super) const FINISHED_FILE: &str = "finished.json";
