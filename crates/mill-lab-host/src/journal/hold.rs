//! One lab at a time changes a machine: two would disturb each other's measurements, and the first to end would
//! restore values that the other still needs.

use super::left;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The right to change the machine. It is a lock of the kernel, and ends with its process.
#[derive(Debug)]
pub struct Hold {
    file: File,
}

/// Why the lock was not taken.
#[derive(Debug)]
pub enum Refused {
    /// Another lab has it.
    Busy {
        /// None if it has just begun and has not written its process id yet.
        process: Option<u32>,
        /// What it does: a run's id, `restore`, `tune`.
        what: String,
    },
    File(String),
}

/// Takes the lock for `what`; `folder` is that of the journals (see [`super::state_folder`]).
pub fn hold(folder: &Path, what: &str) -> Result<Hold, Refused> {
    take(folder, what)
        .unwrap_or_else(|error| Err(Refused::File(format!("{}: {error}", folder.display()))))
}

fn take(folder: &Path, what: &str) -> io::Result<Result<Hold, Refused>> {
    super::make_folder(folder)?;
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(folder.join(FILE))?;
    match mill_sys::lock::lock_exclusive(&file) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            let mut text = String::new();
            file.read_to_string(&mut text)?;
            let (process, what) = text.trim().split_once(' ').unwrap_or_default();
            return Ok(Err(Refused::Busy {
                process: process.parse().ok(),
                what: String::from(what),
            }));
        }
        Err(error) => return Err(error),
    }
    // A lab of a version without this lock is found by its journal.
    if let Some(living) = left::living(folder) {
        return Ok(Err(Refused::Busy {
            process: Some(living.process),
            what: living.run,
        }));
    }
    file.set_len(0)?;
    file.rewind()?;
    write!(file, "{} {what}", std::process::id())?;
    Ok(Ok(Hold { file }))
}

impl Drop for Hold {
    fn drop(&mut self) {
        // The content only informs users: a failure to remove it does no harm.
        let _ = self.file.set_len(0);
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(problem) => formatter.write_str(problem),
            Self::Busy { process: None, .. } => write!(
                formatter,
                "another lab has just begun on this machine: two would measure each other; try again when it is over"
            ),
            Self::Busy {
                process: Some(process),
                what,
            } => write!(
                formatter,
                "another lab is at work on this machine: process {process}, {what}. Two would measure each other, and put back each other's settings. \
                 Wait until it is over, or end it with `kill -INT {process}` (it puts everything back, and `millstream lab resume` goes on with it); \
                 then try again"
            ),
        }
    }
}

/// Beside the journals; the file is never removed.
const FILE: &str = "lock";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_lab_is_refused_with_the_name_of_the_first() {
        let scratch = crate::scratch::Scratch::new("hold");
        let folder = &scratch.0;
        let first = hold(folder, "2026-first-look-k3f9").unwrap();
        let refused = hold(folder, "restore").unwrap_err().to_string();
        let own = std::process::id();
        for words in [
            format!("process {own}, 2026-first-look-k3f9"),
            format!("kill -INT {own}"),
        ] {
            assert!(refused.contains(&words), "{refused}");
        }
        drop(first);
        assert!(hold(folder, "restore").is_ok());
    }
}
