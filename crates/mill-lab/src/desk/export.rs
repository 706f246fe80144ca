//! `lab export`: a run for other programs.

use super::{DONE, Desk, Problem, STANDARD, write_file};
use crate::store::export;
use std::io::Write;
use std::path::Path;

/// Writes a run as JSON or else as CSV, to a file or to `out`.
pub fn export(
    desk: Desk<'_>,
    run: &str,
    json: bool,
    output: Option<&Path>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Problem> {
    let store = desk.open(err)?;
    let id = store.find(run)?;
    let text = if json {
        export::json(&store, &id)?
    } else {
        export::csv(&store, &id)?
    };
    match output {
        Some(path) if path != Path::new(STANDARD) => write_file(path, &text, out)?,
        _ => out.write_all(text.as_bytes())?,
    }
    Ok(DONE)
}
