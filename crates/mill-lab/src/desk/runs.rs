//! `lab runs`: what the store holds.

use super::sheet::{row, sheet};
use super::{DONE, Desk, FAILED, Problem, complain};
use crate::store::{DateTime, RunSummary, StoreError};
use std::io::Write;

/// Lists runs, the newest first; only those of `recipe`, if it is named.
pub fn runs(
    desk: Desk<'_>,
    recipe: Option<&str>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Problem> {
    let store = desk.open(err)?;
    let (mut runs, damage) = store.runs_and_damage()?;
    for error in &damage {
        complain(error, err);
    }
    let any = !runs.is_empty();
    runs.retain(|summary| recipe.is_none_or(|recipe| summary.run.recipe == recipe));
    match recipe {
        Some(recipe) if any && runs.is_empty() => {
            // The store lists the existing ones instead.
            store.find(&format!("latest:{recipe}"))?;
        }
        _ if !any && damage.is_empty() => {
            return Err(Problem::Store(StoreError::Empty {
                folder: desk.store.to_path_buf(),
            }));
        }
        _ => {}
    }
    if !runs.is_empty() {
        let head = row([
            "run",
            "began (UTC)",
            "size",
            "host",
            "version",
            "trials",
            "state",
        ]);
        let rows: Vec<Vec<String>> = std::iter::once(head)
            .chain(runs.iter().map(cells))
            .collect();
        out.write_all(sheet(&rows, &[5]).as_bytes())?;
    }
    Ok(if damage.is_empty() { DONE } else { FAILED })
}

fn cells(summary: &RunSummary) -> Vec<String> {
    let run = &summary.run;
    let version = match &run.commit {
        Some(commit) => format!("{} ({})", run.millstream, short(commit)),
        None => run.millstream.clone(),
    };
    vec![
        run.id.clone(),
        DateTime::of_unix_ms(run.started_ms).text(),
        run.size.clone(),
        summary.host.clone(),
        version,
        format!("{}/{}", summary.measured, run.trials),
        state(summary),
    ]
}

fn state(summary: &RunSummary) -> String {
    let mut text = String::from(summary.state());
    let others = [
        (summary.disturbed, "disturbed"),
        (summary.absent, "absent"),
        (summary.failed, "failed"),
    ];
    for (count, word) in others {
        if count > 0 {
            text.push_str(&format!(", {count} {word}"));
        }
    }
    text
}

/// As git abbreviates; a commit may come with a mark behind it.
fn short(commit: &str) -> String {
    commit.chars().take(COMMIT_LETTERS).collect()
}

/// Letters of a commit that tell it from others in a list.
const COMMIT_LETTERS: usize = 9;
