//! `lab list`, `lab show`, `lab check`: what there is to run.

use super::sheet::{row, sheet};
use super::{DONE, Desk, FAILED, Problem};
use crate::plan::Plan;
use crate::recipe;
use crate::store::RunSummary;
use std::io::Write;
use std::path::PathBuf;

/// The recipes that come with Millstream; with `runs` also how often each was run in the store, and when last.
pub fn list(
    desk: Desk<'_>,
    runs: bool,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Problem> {
    let known = if runs && desk.store.is_dir() {
        desk.open(err)?.runs()?
    } else {
        Vec::new()
    };
    let mut rows = vec![row(["recipe", "stands for", "title"])];
    if runs {
        rows[0].insert(2, String::from("runs"));
        rows[0].insert(3, String::from("latest"));
    }
    for listing in recipe::list() {
        let origin = match &listing.seed {
            Some(seed) => format!("seed {seed} {}", listing.rows.join(" ")),
            None => String::new(),
        };
        let mut cells = vec![listing.id.clone(), origin, listing.title];
        if runs {
            let own: Vec<&RunSummary> = known
                .iter()
                .filter(|summary| summary.run.recipe == listing.id)
                .collect();
            let latest = own.first().map_or("", |summary| &*summary.run.id);
            cells.insert(2, own.len().to_string());
            cells.insert(3, String::from(latest));
        }
        rows.push(cells);
    }
    let numbers: &[usize] = if runs { &[2] } else { &[] };
    out.write_all(sheet(&rows, numbers).as_bytes())?;
    Ok(DONE)
}

/// How a recipe is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// What would be run on a machine with so many cores.
    Plan { cores: u32 },
    /// Itself.
    Toml,
}

/// What a recipe will do; or the recipe itself as TOML, with everything it inherits.
pub fn show(
    name: &str,
    size: &str,
    sets: &[String],
    form: Shown,
    out: &mut dyn Write,
) -> Result<u8, Problem> {
    let resolved = recipe::resolve(name, size, sets)?;
    let text = match form {
        // Without a size all of them are shown; with one, what is run at it.
        Shown::Toml if size.is_empty() => recipe::whole(name, sets)?,
        Shown::Toml => resolved.emit(),
        Shown::Plan { cores } => recipe::show(&resolved, &Plan::of(&resolved, cores)?),
    };
    out.write_all(text.as_bytes())?;
    Ok(DONE)
}

/// Prints every mistake in the user's recipes, with line and column.
pub fn check(files: &[PathBuf], out: &mut dyn Write, err: &mut dyn Write) -> Result<u8, Problem> {
    let mut status = DONE;
    for file in files {
        let name = file.display().to_string();
        let errors = recipe::check_all(&name);
        if errors.is_empty() {
            writeln!(out, "{name}: no mistakes")?;
        } else {
            status = FAILED;
        }
        for error in errors {
            writeln!(err, "{error}")?;
        }
    }
    Ok(status)
}
