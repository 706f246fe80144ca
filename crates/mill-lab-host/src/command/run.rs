//! `lab run` and `lab resume`: from recipe to store to sweep to report.

mod alone;

use super::{FAILED, Terminal};
use crate::environment;
use crate::interrupt::Interrupt;
use crate::journal::{self, Journal};
use crate::options::{Choice, Manner};
use crate::progress::Progress;
use crate::sweep::Sweep;
use alone::alone;
use mill_lab::desk::{self, Desk};
use mill_lab::plan::Plan;
use mill_lab::recipe::{self, Resolved};
use mill_lab::record::{Finish, RunRecord, Status};
use mill_lab::store::{RunFolder, Store, StoreError, run_id};
use mill_sys::{clock, random};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What a run uses besides its recipe: the output, the terminal and the interruption.
type Person<'a> = (Terminal, &'a Interrupt);

/// Starts a new run.
pub(super) fn begin(
    store: &Path,
    choice: &Choice,
    manner: &Manner,
    command: Vec<String>,
    person: Person<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, String> {
    let resolved = recipe::resolve(&choice.recipe, &choice.size, &choice.sets).map_err(said)?;
    let problems = recipe::check(&resolved);
    if !problems.is_empty() {
        for problem in &problems {
            let _ = writeln!(err, "{problem}");
        }
        let mistakes = match problems.len() {
            1 => String::from("a mistake"),
            count => format!("{count} mistakes"),
        };
        return Err(format!("{} has {mistakes}; nothing was run", choice.recipe));
    }
    let plan = Plan::of(&resolved, environment::cores()).map_err(said)?;
    let started_ms = milliseconds();
    let id = run_id(
        started_ms,
        &resolved.recipe.id,
        random::seed().unwrap_or(started_ms),
    );
    let _hold = hold(&id)?;
    warn_of_left(err);
    let place = Store::open(store).map_err(|error| unwritable(&error))?;
    let run = RunRecord {
        id,
        recipe: resolved.recipe.id.clone(),
        title: resolved.recipe.title.clone(),
        size: choice.size.clone(),
        overrides: choice.sets.clone(),
        command,
        seed: resolved.recipe.repeat.seed,
        started_ms,
        millstream: String::from(env!("CARGO_PKG_VERSION")),
        commit: commit(),
        trials: plan.trials.len(),
    };
    let environment = environment::gather();
    for warning in environment.warnings.iter().filter(|_| !manner.quiet) {
        let _ = writeln!(err, "note: {warning}");
    }
    let folder = place
        .begin(&run, &resolved.emit(), &environment)
        .map_err(|error| unwritable(&error))?;
    let _alone = alone(folder.path())?;
    carry_out(store, folder, &resolved, manner, person, out, err)
}

/// Continues a run.
pub(super) fn resume(
    store: &Path,
    word: &str,
    manner: &Manner,
    person: Person<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, String> {
    let place = Store::open(store).map_err(said)?;
    let id = place.find(word).map_err(said)?;
    let text = place.recipe_text(&id).map_err(said)?;
    let _hold = hold(&id)?;
    let _alone = alone(&place.run_path(&id))?;
    let folder = place.resume(&id).map_err(said)?;
    let resolved = Resolved::parse("recipe.toml", &text, &folder.run().size).map_err(said)?;
    warn_of_left(err);
    carry_out(store, folder, &resolved, manner, person, out, err)
}

fn carry_out(
    store: &Path,
    folder: RunFolder,
    resolved: &Resolved,
    manner: &Manner,
    (terminal, interrupt): Person<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, String> {
    let id = String::from(folder.id());
    let state = journal::state_folder();
    let mut journal =
        Journal::begin(&state, &id).map_err(|error| format!("{}: {error}", state.display()))?;
    journal.allow_ssh_interface(manner.yes);
    let mut nowhere = io::sink();
    let told: &mut dyn Write = if manner.quiet { &mut nowhere } else { err };
    let mut progress = Progress::new(told, terminal.columns.filter(|_| !manner.quiet));
    let sweep = Sweep {
        resolved,
        folder: &folder,
        journal: &mut journal,
        interrupt,
        scratch: scratch(&id),
    };
    let finish = sweep.run(&mut progress);
    let problems = journal.restore();
    for problem in &problems {
        progress.line(&format!("not restored: {problem}"));
    }
    let mut finish = finish.map_err(said)?;
    // The journal has tried once more what the sweep could not undo.
    finish.not_restored = problems;
    let failed = failures(&folder)?;
    let note = folder.finish(&finish).map_err(said)?;
    if let Some(note) = note {
        progress.line(&note);
    }
    progress.end();
    let desk = Desk { store };
    let reported = desk::report_after(desk, &id, manner.report.as_deref(), out, err);
    let reported = desk::answer(reported, err);
    say_how_to_go_on(&finish, &id, err);
    Ok(status(&finish, failed, reported))
}

/// The right to change the machine for this run.
fn hold(id: &str) -> Result<journal::Hold, String> {
    let state = journal::state_folder();
    journal::hold(&state, &format!("run {id}")).map_err(|refused| refused.to_string())
}

/// The exit status: 130 after Ctrl-C, 1 if anything failed.
fn status(finish: &Finish, failed: usize, reported: u8) -> u8 {
    if finish.interrupted {
        INTERRUPTED
    } else if failed > 0 || !finish.not_restored.is_empty() {
        FAILED
    } else {
        reported
    }
}

fn failures(folder: &RunFolder) -> Result<usize, String> {
    let kept = folder.kept_trials().map_err(said)?;
    // Attempts are in order: the last one counts.
    let latest: BTreeMap<usize, Status> = kept
        .into_iter()
        .map(|record| (record.number, record.status))
        .collect();
    let count =
        |wanted: fn(&Status) -> bool| latest.values().filter(|status| wanted(status)).count();
    // Disturbed trials have a result; the report warns of them.
    Ok(count(|status| matches!(status, Status::Failed { .. })))
}

fn say_how_to_go_on(finish: &Finish, id: &str, err: &mut dyn Write) {
    if finish.interrupted {
        let _ = writeln!(
            err,
            "interrupted: the system is as it was, what was measured is kept; go on with: millstream lab resume {id}"
        );
    }
    if !finish.not_restored.is_empty() {
        let _ = writeln!(
            err,
            "try `millstream lab restore` for what could not be put back"
        );
    }
}

/// Changes of a lab that crashed, or of `lab tune`, are part of what is measured: they are reported, not undone.
fn warn_of_left(err: &mut dyn Write) {
    for left in journal::left_behind(&journal::state_folder()) {
        let _ = writeln!(
            err,
            "note: {} changes of {} still stand; `millstream lab restore` undoes them",
            left.changes, left.run
        );
    }
}

/// Servers change their user, so all parents of the folder have to be open to every user, as /tmp is.
fn scratch(id: &str) -> PathBuf {
    std::env::temp_dir().join(format!("millstream-lab-{id}"))
}

/// The commit of the checkout that the lab runs in, if there is one: for comparing commits.
fn commit() -> Option<String> {
    let output = std::process::Command::new("git")
        .args(["describe", "--always", "--dirty", "--abbrev=12"])
        .stdin(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| String::from(text))
}

fn milliseconds() -> u64 {
    u64::try_from(clock::realtime().as_millis()).unwrap_or(u64::MAX)
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Why nothing can be stored here, and where it could be.
fn unwritable(error: &StoreError) -> String {
    match error {
        StoreError::File { .. } => {
            format!("{error}; `--store DIR` keeps runs in a folder that you may write to")
        }
        _ => error.to_string(),
    }
}

/// 128 and SIGINT's number, as shells have it.
const INTERRUPTED: u8 = 130;
