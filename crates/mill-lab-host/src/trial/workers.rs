//! Workers of a server that ended under load: a server starts others in their place, and its figures would look like
//! those of a sound one.

use super::Bench;
use crate::monitor::process::Ended;
use std::path::Path;

/// The text of a cell about them, with the first one's line in the server's log; none if all run.
pub(super) fn ended(ended: &[Ended], bench: &Bench<'_>) -> Option<String> {
    let first = ended.first()?;
    let more = match ended.len() {
        1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    let folders = [
        bench.folder.to_owned(),
        bench.prepared_testbed.place.folder().to_owned(),
    ];
    let said = folders
        .iter()
        .find_map(|folder| said_of(first.process, folder, DEPTH));
    let said = said.map(|line| format!(": {line}")).unwrap_or_default();
    Some(format!(
        "a worker of the server ended under load ({} {}{more}){said}",
        first.name, first.process
    ))
}

/// The last line of a log below the folder that names the process and how it ended.
fn said_of(process: u32, folder: &Path, depth: usize) -> Option<String> {
    let entries = std::fs::read_dir(folder).ok()?;
    entries.flatten().find_map(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return depth
                .checked_sub(1)
                .and_then(|depth| said_of(process, &path, depth));
        }
        let is_log = path
            .extension()
            .is_some_and(|ending| ending == "log" || ending == "err");
        let text = is_log.then(|| std::fs::read(&path).ok())??;
        last_word(&String::from_utf8_lossy(&text), process)
    })
}

fn last_word(log: &str, process: u32) -> Option<String> {
    let number = process.to_string();
    let names = |line: &&str| {
        let mut words = line.split(|letter: char| !letter.is_ascii_alphanumeric());
        let is_named = words.any(|word| word == number);
        is_named && ENDINGS.iter().any(|ending| line.contains(ending))
    };
    let line = log.lines().rev().find(names)?;
    Some(line.trim().chars().take(LETTERS_MAX).collect())
}

/// How servers log the end of a worker.
const ENDINGS: [&str; 4] = ["exited", "signal", "killed", "ended"];

/// Depth of the search: each system has a folder of its own.
const DEPTH: usize = 1;

/// Letters of a line that a cell's reason shows.
const LETTERS_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::last_word;

    #[test]
    fn the_line_about_the_worker_is_found() {
        let log = "2026/11/22 05:00:00 [notice] 70#70: start worker process 71\n\
                   2026/11/22 05:00:01 [alert] 70#70: worker process 71 exited on signal 9\n\
                   2026/11/22 05:00:01 [alert] 70#70: worker process 171 exited on signal 9\n";
        let found = last_word(log, 71).unwrap();
        assert!(
            found.ends_with("worker process 71 exited on signal 9"),
            "{found}"
        );
        assert_eq!(last_word(log, 7), None);
    }
}
