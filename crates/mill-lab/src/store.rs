//! Run folders and the SQLite index over them. A folder is written once; the index can be made again from the folders.
//!
//! ```text
//! millstream-lab/
//!   lab.sqlite      runs, trials, figures: for questions, never the only place of anything
//!   runs/ID/        as in `record`
//! ```
//!
//! A trial exists from the moment its `trial.json` does, which is written last. An attempt that was disturbed or failed keeps its folder,
//! the next one is `trials/0001-2`; what a crash left unfinished is moved to `trials/0001.unfinished`. A run that is complete is
//! read-only (0444, 0555: root is not held by that, and `rm -rf` by its owner needs `chmod -R u+w` first).

/// A run for other programs.
pub mod export;

mod date_time;
mod find;
mod folder;
mod id;
mod index;
mod load;
mod publish;

/// What tests fill a store with.
#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(test)]
mod tests;

pub use date_time::DateTime;
pub use folder::{RunFolder, TrialFolder};
pub use id::run_id;
pub use publish::{replace, write_new};

use crate::analysis::Kept;
use crate::recipe::Recipe;
use crate::record::{Environment, Finish, RunRecord, Status};
use folder::{ENVIRONMENT_FILE, FINISHED_FILE, RECIPE_FILE, RUN_FILE, TRIALS};
use index::Index;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A folder with runs.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    notes: Vec<String>,
}

/// A run as a list shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunSummary {
    pub run: RunRecord,
    pub path: PathBuf,
    pub host: String,
    /// Latest attempts at trials of the plan, by what became of them.
    pub measured: usize,
    pub disturbed: usize,
    pub absent: usize,
    pub failed: usize,
    /// None while it runs, or after a crash.
    pub finish: Option<Finish>,
}

/// What is wrong with a store, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{path}: {problem}", path = path.display())]
    File { path: PathBuf, problem: String },
    #[error("{path}: not what was written there ({problem}); the run is damaged", path = path.display())]
    Damaged { path: PathBuf, problem: String },
    #[error("\"{0}\" can't name a run's folder")]
    BadName(String),
    #[error("{folder}: no runs yet; `millstream lab run RECIPE` makes the first", folder = folder.display())]
    Empty { folder: PathBuf },
    #[error("no run \"{word}\"{advice}")]
    Unknown { word: String, advice: String },
    #[error("\"{word}\" may be any of {}", candidates.join(", "))]
    Ambiguous {
        word: String,
        candidates: Vec<String>,
    },
    #[error("{run} is complete; nothing is left to resume")]
    Complete { run: String },
    #[error("trial {number} of {run} is measured already")]
    Kept { run: String, number: usize },
    #[error("trial {number} has no folder to be kept in: it was not begun, or kept before")]
    NotBegun { number: usize },
    #[error("{path}: {problem}", path = path.display())]
    Index { path: PathBuf, problem: String },
}

impl Store {
    /// Opens a store, makes it if there is none, and brings its index up to the folders.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let runs = folder.join(RUNS);
        fs::create_dir_all(&runs).map_err(at(&runs))?;
        let mut store = Self {
            folder: folder.to_path_buf(),
            notes: Vec::new(),
        };
        // The store of another user may be read-only; its runs can be read all the same.
        match store.refresh() {
            Ok(notes) => store.notes = notes,
            Err(error) => store
                .notes
                .push(format!("the index is not up to date: {error}")),
        }
        Ok(store)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What happened to the index while opening, in sentences.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Makes a run's folder; `run.id` is its name, from `run_id`.
    pub fn begin(
        &self,
        run: &RunRecord,
        recipe_toml: &str,
        environment: &Environment,
    ) -> Result<RunFolder, StoreError> {
        if !id::is_folder_name(&run.id) {
            return Err(StoreError::BadName(run.id.clone()));
        }
        let path = self.run_path(&run.id);
        fs::create_dir(&path).map_err(at(&path))?;
        let trials = path.join(TRIALS);
        fs::create_dir(&trials).map_err(at(&trials))?;
        let files = [
            (RECIPE_FILE, recipe_toml.as_bytes().to_vec()),
            (ENVIRONMENT_FILE, json(environment)),
            // Last: a folder without it is no run.
            (RUN_FILE, json(run)),
        ];
        for (name, bytes) in files {
            let file = path.join(name);
            write_new(&file, &bytes).map_err(at(&file))?;
        }
        // The index follows with the first trial, or when the store is opened next.
        let _ = Index::open(&self.index_path())
            .and_then(|mut index| index.put_run(run, environment, None, &[]));
        Ok(RunFolder::new(path, run.clone(), self.index_path()))
    }

    /// Takes up a run that was interrupted, or that a crash ended.
    pub fn resume(&self, id: &str) -> Result<RunFolder, StoreError> {
        let summary = self.summary(id)?;
        if summary
            .finish
            .as_ref()
            .is_some_and(|finish| !finish.interrupted)
        {
            return Err(StoreError::Complete {
                run: String::from(id),
            });
        }
        let folder = RunFolder::new(summary.path, summary.run, self.index_path());
        folder.reopen()?;
        let _ = Index::open(&self.index_path()).and_then(|mut index| index.put_finish(id, None));
        Ok(folder)
    }

    /// All runs that can be read, the newest first. Folders that are no runs are passed over.
    pub fn runs(&self) -> Result<Vec<RunSummary>, StoreError> {
        self.runs_and_damage().map(|(runs, _)| runs)
    }

    /// The same, and what is wrong with the others.
    pub fn runs_and_damage(&self) -> Result<(Vec<RunSummary>, Vec<StoreError>), StoreError> {
        let mut runs = Vec::new();
        let mut damage = Vec::new();
        for id in self.ids()? {
            match self.summary(&id) {
                Ok(summary) => runs.push(summary),
                Err(error) => damage.push(error),
            }
        }
        runs.sort_by(|a, b| {
            (b.run.started_ms, b.run.id.as_str()).cmp(&(a.run.started_ms, a.run.id.as_str()))
        });
        Ok((runs, damage))
    }

    /// The id of the run that `word` means: an id, its unique beginning or end, `latest`, `latest:RECIPE`, or the
    /// path of its folder.
    pub fn find(&self, word: &str) -> Result<String, StoreError> {
        find::find(self, word)
    }

    /// Everything that a report needs.
    pub fn load(&self, id: &str) -> Result<Kept, StoreError> {
        load::load(&self.run_path(id))
    }

    /// `recipe.toml` of a run: the recipe at its size with its overrides.
    pub fn recipe_text(&self, id: &str) -> Result<String, StoreError> {
        let path = self.run_path(id).join(RECIPE_FILE);
        fs::read_to_string(&path).map_err(at(&path))
    }

    /// The same, read.
    pub fn load_recipe(&self, id: &str) -> Result<Recipe, StoreError> {
        load::read_recipe(&self.run_path(id).join(RECIPE_FILE), id)
    }

    pub fn run_path(&self, id: &str) -> PathBuf {
        self.folder.join(RUNS).join(id)
    }

    /// The path of the index.
    pub fn index_path(&self) -> PathBuf {
        self.folder.join(INDEX_FILE)
    }

    /// What a list shows of one run.
    pub fn summary(&self, id: &str) -> Result<RunSummary, StoreError> {
        let path = self.run_path(id);
        let mut run: RunRecord = required(&path.join(RUN_FILE))?;
        let kept = folder::kept(&path)?;
        run.count_further(kept.iter().map(|trial| &trial.record));
        let environment: Environment = required(&path.join(ENVIRONMENT_FILE))?;
        let finish = read_json(&path.join(FINISHED_FILE))?;
        let mut summary = RunSummary {
            run,
            host: environment.host,
            measured: 0,
            disturbed: 0,
            absent: 0,
            failed: 0,
            finish,
            path,
        };
        let latest: std::collections::BTreeMap<usize, Status> = kept
            .into_iter()
            .map(|kept| (kept.record.number, kept.record.status))
            .collect();
        for status in latest.values() {
            match status {
                Status::Measured => summary.measured += 1,
                Status::Disturbed { .. } => summary.disturbed += 1,
                Status::Absent { .. } => summary.absent += 1,
                Status::Failed { .. } => summary.failed += 1,
            }
        }
        Ok(summary)
    }

    /// Makes the index again from the folders; how many runs it has.
    pub fn reindex(&self) -> Result<usize, StoreError> {
        let mut index = Index::open(&self.index_path())?;
        index.clear()?;
        let ids = self.ids()?;
        for id in &ids {
            self.index_run(&mut index, id)?;
        }
        Ok(ids.len())
    }

    /// Brings the index up to the folders: runs that were copied here or removed, trials that it missed.
    fn refresh(&self) -> Result<Vec<String>, StoreError> {
        let (mut index, note) = Index::open_or_make(&self.index_path())?;
        let mut notes: Vec<String> = note.into_iter().collect();
        let mut known = index.runs()?;
        for id in self.ids()? {
            let path = self.run_path(&id);
            let finished = path.join(FINISHED_FILE).exists();
            let mut trials = 0;
            for (.., folder) in folder::trial_folders(&path)? {
                trials += usize::from(folder.join(folder::TRIAL_FILE).exists());
            }
            if known.remove(&id) == Some((trials, finished)) {
                continue;
            }
            if let Err(error) = self.index_run(&mut index, &id) {
                notes.push(format!("{id} is not in the index: {error}"));
            }
        }
        for id in known.keys() {
            index.remove_run(id)?;
        }
        Ok(notes)
    }

    fn index_run(&self, index: &mut Index, id: &str) -> Result<(), StoreError> {
        let path = self.run_path(id);
        let mut run: RunRecord = required(&path.join(RUN_FILE))?;
        let environment: Environment = required(&path.join(ENVIRONMENT_FILE))?;
        let finish: Option<Finish> = read_json(&path.join(FINISHED_FILE))?;
        let trials = folder::kept(&path)?;
        run.count_further(trials.iter().map(|trial| &trial.record));
        index.put_run(&run, &environment, finish.as_ref(), &trials)
    }

    /// Names of folders with a `run.json`, sorted.
    fn ids(&self) -> Result<Vec<String>, StoreError> {
        let runs = self.folder.join(RUNS);
        let mut ids = Vec::new();
        for entry in fs::read_dir(&runs).map_err(at(&runs))? {
            let entry = entry.map_err(at(&runs))?;
            if let Ok(name) = entry.file_name().into_string()
                && id::is_folder_name(&name)
                && entry.path().join(RUN_FILE).exists()
            {
                ids.push(name);
            }
        }
        ids.sort();
        Ok(ids)
    }
}

impl RunSummary {
    /// One word.
    pub fn state(&self) -> &'static str {
        index::state(self.finish.as_ref())
    }
}

/// Adds the path of the file.
fn at(path: &Path) -> impl Fn(io::Error) -> StoreError + '_ {
    move |error| StoreError::File {
        path: path.to_path_buf(),
        problem: error.to_string(),
    }
}

/// Records are plain data: only a map with keys that are no text could fail, and none has one.
fn json<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value).expect("records have text for keys");
    bytes.push(b'\n');
    bytes
}

/// None if there is no such file.
fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, StoreError> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(at(path)(error)),
    };
    serde_json::from_slice(&text)
        .map(Some)
        .map_err(|error| StoreError::Damaged {
            path: path.to_path_buf(),
            problem: error.to_string(),
        })
}

fn required<T: DeserializeOwned>(path: &Path) -> Result<T, StoreError> {
    read_json(path)?.ok_or_else(|| StoreError::File {
        path: path.to_path_buf(),
        problem: String::from("missing"),
    })
}

const RUNS: &str = "runs";
const INDEX_FILE: &str = "lab.sqlite";
