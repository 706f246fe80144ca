//! The commands of the lab that need no machine: what is known of recipes, and what is in the store.
//!
//! Each writes its result to `out`, notes to `err`, and returns the exit status: 0, 1 if the result has mistakes, 2 if
//! a file could not be read; `answer` makes it 1 if the result is not available, and prints why. Files are put into place whole, and their paths are printed.

mod compare;
mod export;
mod lint;
mod recipes;
mod report;
mod runs;
pub mod sheet;
#[cfg(test)]
mod tests;

pub use compare::compare;
pub use export::export;
pub use lint::lint;
pub use recipes::{Shown, check, list, show};
pub use report::{Forms, report, report_after};
pub use runs::runs;

use crate::recipe::RecipeError;
use crate::store::{Store, StoreError};
use std::fmt::Display;
use std::io::{self, Read, Write};
use std::path::Path;

/// Where the runs are.
#[derive(Clone, Copy, Debug)]
pub struct Desk<'a> {
    pub store: &'a Path,
}

impl Desk<'_> {
    /// Reading makes no store where there is none.
    fn open(self, err: &mut dyn Write) -> Result<Store, Problem> {
        if !self.store.is_dir() {
            return Err(Problem::Store(StoreError::Empty {
                folder: self.store.to_path_buf(),
            }));
        }
        let store = Store::open(self.store)?;
        for note in store.notes() {
            writeln!(err, "note: {note}")?;
        }
        Ok(store)
    }
}

/// Why a command came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    #[error("both are {0}; name two runs")]
    OneRun(String),
    #[error("{path}: {error}")]
    File { path: String, error: io::Error },
    #[error("{path}: {error}; --html, --markdown, --csv and -o write to a place of your choice")]
    Refused { path: String, error: io::Error },
    /// The reader of our output is gone, `| head` for one: no message, because it would not be read either.
    #[error("{0}")]
    Output(#[from] io::Error),
}

/// Prints the error, and turns it into a status.
pub fn answer(result: Result<u8, Problem>, err: &mut dyn Write) -> u8 {
    match result {
        Ok(status) => status,
        Err(Problem::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => FAILED,
        Err(problem) => {
            complain(&problem, err);
            FAILED
        }
    }
}

/// A failure is ignored: standard error is gone.
fn complain(problem: &dyn Display, err: &mut dyn Write) {
    let _ = writeln!(err, "millstream lab: {problem}");
}

/// The text of a file, or of standard input for `-`; bytes that are no text become U+FFFD.
fn read_text(path: &Path, input: &mut dyn Read) -> Result<String, Problem> {
    let bytes = if path == Path::new(STANDARD) {
        let mut bytes = Vec::new();
        input.read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    match bytes {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) => Err(Problem::File {
            path: path.display().to_string(),
            error,
        }),
    }
}

/// Puts a file into its place, after making its folders; prints its path on `out`.
fn write_file(path: &Path, text: &str, out: &mut dyn Write) -> Result<(), Problem> {
    put(path, text)?;
    writeln!(out, "{}", path.display())?;
    Ok(())
}

fn put(path: &Path, text: &str) -> Result<(), Problem> {
    let fail = |error: io::Error| {
        let path = path.display().to_string();
        match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Problem::Refused { path, error }
            }
            _ => Problem::File { path, error },
        }
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(&fail)?;
    }
    crate::store::replace(path, text.as_bytes()).map_err(fail)
}

const DONE: u8 = 0;
const FAILED: u8 = 1;
const UNREADABLE: u8 = 2;

/// Standard input or output in place of a file's name.
const STANDARD: &str = "-";
