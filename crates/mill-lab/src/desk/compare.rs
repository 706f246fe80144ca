//! `lab compare`: two runs beside each other.

use super::{DONE, Desk, Problem};
use crate::analysis;
use std::io::Write;

/// Prints the differences between two runs, in their environments and in their figures.
pub fn compare(
    desk: Desk<'_>,
    from: &str,
    to: &str,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Problem> {
    let store = desk.open(err)?;
    let from = store.find(from)?;
    let to = store.find(to)?;
    if from == to {
        return Err(Problem::OneRun(from));
    }
    let between = analysis::compare(&store.load(&from)?, &store.load(&to)?);
    out.write_all(between.text().as_bytes())?;
    Ok(DONE)
}
