//! The SQLite index: every figure of every run where `sqlite3 lab.sqlite 'select …'` reaches it.
//!
//! No write-ahead log: that needs shared memory, which network filesystems lack. Each run, trial and end is one transaction, and
//! a second lab on the same store waits for its turn.

use super::StoreError;
use super::folder::KeptTrial;
use crate::metric::{self, Better};
use crate::record::{Environment, Finish, RunRecord, Status, TrialRecord};
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior, params};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An open index.
#[derive(Debug)]
pub(super) struct Index {
    connection: Connection,
    path: PathBuf,
}

impl Index {
    /// Opens the index, and lays out an empty one.
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_or_make(path).map(|(index, _)| index)
    }

    /// The same, with a note if there was an unusable index, which was rebuilt.
    pub(super) fn open_or_make(path: &Path) -> Result<(Self, Option<String>), StoreError> {
        let fail = problem(path);
        match Self::attach(path) {
            Ok((index, note)) => Ok((index, note)),
            Err(error) if is_damaged(&error) => {
                let aside = path.with_extension("sqlite.damaged");
                std::fs::rename(path, &aside).map_err(super::at(path))?;
                let (index, _) = Self::attach(path).map_err(fail)?;
                let note = format!(
                    "the index was damaged ({error}); it is now {}, and a new one was made from the run folders",
                    aside.display()
                );
                Ok((index, Some(note)))
            }
            Err(error) => Err(fail(error)),
        }
    }

    fn attach(path: &Path) -> rusqlite::Result<(Self, Option<String>)> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY)?;
        let mut note = None;
        if schema_of(&connection)? != SCHEMA {
            // Two labs may come here at once: the second finds the work done.
            let change = connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
            let found = schema_of(&change)?;
            if found != SCHEMA {
                if !drop_everything(&change)? && found == 0 {
                    // A new file, with which most stores begin, needs no note.
                } else {
                    note = Some(format!(
                        "the index was laid out by another version of millstream ({found}, here {SCHEMA}); it was made again from the run folders"
                    ));
                }
                change.execute_batch(LAYOUT)?;
                change.pragma_update(None, "user_version", SCHEMA)?;
            }
            change.commit()?;
        }
        let index = Self {
            connection,
            path: path.to_path_buf(),
        };
        Ok((index, note))
    }

    /// Run to (attempts it has, whether it knows an end).
    pub(super) fn runs(&self) -> Result<BTreeMap<String, (usize, bool)>, StoreError> {
        let read = || {
            let mut query = self.connection.prepare(
                "SELECT id, ended_ms IS NOT NULL, \
                 (SELECT count(*) FROM trials WHERE run = id) FROM runs",
            )?;
            let rows = query.query_map([], |row| {
                let trials: i64 = row.get(2)?;
                let trials = usize::try_from(trials).unwrap_or(0);
                Ok((row.get(0)?, (trials, row.get(1)?)))
            })?;
            rows.collect::<rusqlite::Result<_>>()
        };
        read().map_err(problem(&self.path))
    }

    /// Takes everything out.
    pub(super) fn clear(&mut self) -> Result<(), StoreError> {
        self.change(|change| {
            change.execute_batch(
                "DELETE FROM figures; DELETE FROM trials; DELETE FROM runs; DELETE FROM metrics;",
            )
        })
    }

    pub(super) fn remove_run(&mut self, id: &str) -> Result<(), StoreError> {
        self.change(|change| remove(change, id))
    }

    /// A run with all its trials, in the place of what was there.
    pub(super) fn put_run(
        &mut self,
        run: &RunRecord,
        environment: &Environment,
        finish: Option<&Finish>,
        trials: &[KeptTrial],
    ) -> Result<(), StoreError> {
        self.change(|change| {
            remove(change, &run.id)?;
            insert_run(change, run, environment, finish)?;
            for kept in trials {
                insert_trial(change, &run.id, kept.attempt, &kept.record)?;
            }
            Ok(())
        })
    }

    pub(super) fn put_trial(
        &mut self,
        run: &str,
        attempt: u32,
        trial: &TrialRecord,
    ) -> Result<(), StoreError> {
        self.change(|change| insert_trial(change, run, attempt, trial))
    }

    /// The end of a run, or that it goes on.
    pub(super) fn put_finish(
        &mut self,
        run: &str,
        finish: Option<&Finish>,
    ) -> Result<(), StoreError> {
        self.change(|change| {
            change.execute(
                "UPDATE runs SET ended_ms = ?2, state = ?3 WHERE id = ?1",
                params![
                    run,
                    finish.map(|finish| signed(finish.ended_ms)),
                    state(finish)
                ],
            )?;
            Ok(())
        })
    }

    fn change(
        &mut self,
        make: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), StoreError> {
        let path = self.path.clone();
        let connection = &mut self.connection;
        let run = || {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            make(&change)?;
            change.commit()
        };
        run().map_err(problem(&path))
    }
}

/// One word for a run.
pub(super) fn state(finish: Option<&Finish>) -> &'static str {
    match finish {
        None => "unfinished",
        Some(finish) if finish.interrupted => "interrupted",
        Some(_) => "complete",
    }
}

/// One word for a trial, and why.
pub(super) fn status(status: &Status) -> (&'static str, Option<&str>) {
    match status {
        Status::Measured => ("measured", None),
        Status::Disturbed { reason } => ("disturbed", Some(reason)),
        Status::Absent { reason } => ("absent", Some(reason)),
        Status::Failed { reason } => ("failed", Some(reason)),
    }
}

fn insert_run(
    change: &Transaction<'_>,
    run: &RunRecord,
    environment: &Environment,
    finish: Option<&Finish>,
) -> rusqlite::Result<()> {
    change.execute(
        "INSERT INTO runs VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17)",
        params![
            run.id,
            run.recipe,
            run.title,
            run.size,
            text_list(&run.overrides),
            text_list(&run.command),
            signed(run.seed),
            signed(run.started_ms),
            finish.map(|finish| signed(finish.ended_ms)),
            state(finish),
            i64::try_from(run.trials).unwrap_or(i64::MAX),
            environment.host,
            environment.kernel,
            environment.cpu,
            environment.cores,
            run.millstream,
            run.commit,
        ],
    )?;
    Ok(())
}

fn insert_trial(
    change: &Transaction<'_>,
    run: &str,
    attempt: u32,
    trial: &TrialRecord,
) -> rusqlite::Result<()> {
    let number = i64::try_from(trial.number + 1).unwrap_or(i64::MAX);
    let (word, reason) = status(&trial.status);
    let point = serde_json::to_string(&trial.point).expect("a point has text for keys");
    change.execute(
        "INSERT OR REPLACE INTO trials VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13)",
        params![
            run,
            number,
            attempt,
            trial.block,
            trial.point.get("system"),
            point,
            trial.again,
            word,
            reason,
            trial.limit.as_ref().map(|limit| limit.side.word()),
            trial.limit.as_ref().map(|limit| limit.evidence.as_str()),
            signed(trial.started_ms),
            trial.seconds,
        ],
    )?;
    let mut figure =
        change.prepare_cached("INSERT OR REPLACE INTO figures VALUES (?1,?2,?3,?4,?5)")?;
    let mut meaning =
        change.prepare_cached("INSERT OR IGNORE INTO metrics VALUES (?1,?2,?3,?4)")?;
    for (name, value) in &trial.figures {
        figure.execute(params![run, number, attempt, name, value])?;
        let known = metric::describe(name);
        let better = match known.better {
            Better::Higher => "higher",
            Better::Lower => "lower",
            Better::Neither => "neither",
        };
        meaning.execute(params![name, known.title, unit_word(known.unit), better])?;
    }
    Ok(())
}

/// `per-second`, as `Unit` is written in JSON.
pub(super) fn unit_word(unit: metric::Unit) -> String {
    match serde_json::to_value(unit) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

fn remove(change: &Transaction<'_>, run: &str) -> rusqlite::Result<()> {
    for delete in [
        "DELETE FROM figures WHERE run = ?1",
        "DELETE FROM trials WHERE run = ?1",
        "DELETE FROM runs WHERE id = ?1",
    ] {
        change.execute(delete, [run])?;
    }
    Ok(())
}

/// Empties a file of another layout; whether there was anything.
fn drop_everything(change: &Transaction<'_>) -> rusqlite::Result<bool> {
    let mut query = change.prepare(
        "SELECT type, name FROM sqlite_schema \
         WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'",
    )?;
    let found: Vec<(String, String)> = query
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for (kind, name) in &found {
        change.execute_batch(&format!("DROP {kind} \"{}\"", name.replace('"', "\"\"")))?;
    }
    Ok(!found.is_empty())
}

fn schema_of(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn is_damaged(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt)
    )
}

fn problem(path: &Path) -> impl Fn(rusqlite::Error) -> StoreError + 'static {
    let path = path.to_path_buf();
    move |error| StoreError::Index {
        path: path.clone(),
        problem: error.to_string(),
    }
}

fn text_list(words: &[String]) -> String {
    serde_json::to_string(words).expect("a list of texts is JSON")
}

/// SQLite's integers are signed; a seed above 2⁶³ comes back as a negative one.
fn signed(number: u64) -> i64 {
    number.cast_signed()
}

const LAYOUT: &str = include_str!("schema.sql");

/// Counts changes of `schema.sql`: an index with another number is made again.
const SCHEMA: i64 = 2;

/// How long to wait for another lab: it holds the index for milliseconds; making one again from thousands of trials takes seconds.
const BUSY: Duration = Duration::from_secs(15);
