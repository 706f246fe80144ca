//! Journals of labs that have ended without restoring.

use super::reading::{self, Progress};
use super::{EXTENSION, Entry, Journal};
use crate::process_stat::ProcessStat;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The journal of a lab that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    pub path: PathBuf,
    pub run: String,
    /// Process id of that lab.
    pub process: u32,
    /// How many changes are still to be undone.
    pub changes: usize,
}

/// What `lab restore` did, by run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    pub restored: Vec<String>,
    /// Messages on what is left.
    pub left: Vec<(String, Vec<String>)>,
    /// Labs that still run: their journals are not touched.
    pub living: Vec<String>,
}

/// The journals in `folder` whose labs have ended.
pub fn left_behind(folder: &Path) -> Vec<Left> {
    let known = journals(folder).unwrap_or_default();
    known
        .into_iter()
        .filter(|known| !known.is_living)
        .map(|known| known.left)
        .collect()
}

/// A lab that runs, other than this process.
pub(super) fn living(folder: &Path) -> Option<Left> {
    let known = journals(folder).unwrap_or_default().into_iter();
    known
        .filter(|known| known.is_living && known.left.process != std::process::id())
        .map(|known| known.left)
        .next()
}

/// Undoes what ended labs left, and reports on `out`, one line per run and one per remaining change.
pub fn restore_all(folder: &Path, out: &mut impl Write) -> io::Result<Restored> {
    let mut answer = Restored::default();
    let known = journals(folder)?;
    if known.is_empty() {
        writeln!(out, "nothing to restore in {}", folder.display())?;
    }
    for Known { left, is_living } in known {
        if is_living {
            writeln!(
                out,
                "{}: its lab is running as process {}; end that with Ctrl-C, and it restores itself",
                left.run, left.process
            )?;
            answer.living.push(left.run);
            continue;
        }
        let (problems, is_over) = match Journal::inherit(&left.path) {
            Ok(journal) => {
                let problems = journal.restore();
                (problems, !left.path.exists())
            }
            Err(error) => (vec![format!("{}: {error}", left.path.display())], false),
        };
        for problem in &problems {
            writeln!(out, "{}: {problem}", left.run)?;
        }
        if is_over {
            writeln!(
                out,
                "{}: restored, {} changes undone",
                left.run, left.changes
            )?;
            answer.restored.push(left.run);
        } else {
            writeln!(
                out,
                "{}: not all could be undone; {} keeps the rest",
                left.run,
                left.path.display()
            )?;
            answer.left.push((left.run, problems));
        }
    }
    Ok(answer)
}

/// The id of this boot of the machine; empty where the kernel gives none.
pub(super) fn boot() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    String::from(id.trim())
}

struct Known {
    left: Left,
    is_living: bool,
}

fn journals(folder: &Path) -> io::Result<Vec<Known>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == EXTENSION))
        .collect();
    paths.sort();
    // A journal that vanishes meanwhile has been restored by its lab.
    Ok(paths.iter().filter_map(|path| known(path).ok()).collect())
}

fn known(path: &Path) -> io::Result<Known> {
    let (noted, _) = reading::parse(&std::fs::read(path)?);
    let stands = |noted: &&reading::Noted| {
        noted.progress != Progress::Undone && !matches!(noted.entry, Ok(Entry::Began { .. }))
    };
    let mut left = Left {
        path: path.to_owned(),
        run: path
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
            .unwrap_or_default(),
        process: 0,
        changes: noted.iter().filter(stands).count(),
    };
    // Without a first line the lab ended, or is, before its first act.
    let mut is_living = false;
    if let Some(Ok(Entry::Began {
        run,
        process,
        process_start,
        boot: its_boot,
        ..
    })) = noted.first().map(|noted| &noted.entry)
    {
        left.run.clone_from(run);
        left.process = *process;
        let living = ProcessStat::of(*process).filter(ProcessStat::is_living);
        let start = living.map(|stat| stat.start);
        is_living = start == Some(*process_start) && (its_boot.is_empty() || *its_boot == boot());
    }
    Ok(Known { left, is_living })
}
