//! The undo of an entry. Each undo may be carried out twice.

use super::{Entry, ending, errand, setting};
use crate::host::{Host, quoted};
use crate::remote_shell::GuestTarget;
use mill_sys::{clock, descriptor};
use std::io;
use std::path::{Component, Path};
use std::time::Duration;

/// The result of an undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    /// Nothing more to do, but the message should be shown.
    Settled(String),
    /// A later restore tries again.
    Left(String),
}

/// What an undo needs to know of its journal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undoing {
    /// Process id of the lab.
    pub(super) session: u32,
    /// Whether the act, or an earlier undo of it, happened is unknown: a command that fails is ignored.
    pub(super) in_doubt: bool,
}

impl Undoing {
    pub(super) fn undo(self, entry: &Entry) -> Outcome {
        match entry {
            Entry::Began { .. } => Outcome::Done,
            Entry::Wrote {
                host,
                path,
                before,
                after,
            } => write_back(host, path, before, after),
            Entry::Ran { host, undo, .. } => self.run(host, undo),
            Entry::MadeNamespace { name } => delete_namespace(name),
            Entry::Started {
                process,
                process_start,
                what,
            } => {
                if ending::end_started(*process, *process_start, self.session) {
                    Outcome::Done
                } else {
                    Outcome::Left(format!("{what}, process {process}, does not end"))
                }
            }
            Entry::MadeFolder { path } => remove_folder(path),
            Entry::MadeControlGroup { path } => remove_control_group(Path::new(path)),
        }
    }

    fn run(self, host: &Host, undo: &[String]) -> Outcome {
        if undo.is_empty() || is_gone(host) {
            return Outcome::Done;
        }
        let argv: Vec<&str> = undo.iter().map(String::as_str).collect();
        match errand::run(host, &argv, None) {
            Ok(_) => Outcome::Done,
            Err(error) if self.in_doubt && !is_unreachable(&error) => Outcome::Done,
            Err(error) => Outcome::Left(error.to_string()),
        }
    }
}

/// Deleting a namespace removed all that was made inside, and the end of a guest all that was set there.
fn is_gone(host: &Host) -> bool {
    match host {
        Host::Local => false,
        Host::Namespace(name) => !setting::is_namespace(name),
        Host::Remote(target) => GuestTarget::of(target)
            .is_some_and(|guest| !setting::is_namespace(guest.namespace) || !guest.is_running()),
    }
}

/// ssh did not reach the host: the command was not run.
fn is_unreachable(error: &io::Error) -> bool {
    error.to_string().contains(errand::SSH_FAILED)
}

fn write_back(host: &Host, path: &str, before: &str, after: &str) -> Outcome {
    if is_gone(host) {
        return Outcome::Done;
    }
    let place = match host {
        Host::Local => String::from(path),
        Host::Namespace(name) => format!("{path} in {name}"),
        Host::Remote(target) => format!("{path} on {target}"),
    };
    let now = match setting::read(host, path) {
        Ok(now) => now,
        Err(error) if error.kind() == io::ErrorKind::NotFound && !is_unreachable(&error) => {
            return Outcome::Settled(format!("{place} is not there any more; it was {before}"));
        }
        Err(error) => return Outcome::Left(format!("{place}, which was {before}: {error}")),
    };
    if setting::is_same(path, &now, before) {
        return Outcome::Done;
    }
    if !setting::is_same(path, &now, after) {
        return Outcome::Settled(format!(
            "{place} is {now}, which another program has set since: left alone \
             (it was {before}, the lab made it {after})"
        ));
    }
    match setting::write(host, path, before) {
        Ok(()) => Outcome::Done,
        Err(error) => Outcome::Left(format!("{place}, which was {before}: {error}")),
    }
}

fn delete_namespace(name: &str) -> Outcome {
    if !setting::is_namespace(name) {
        return Outcome::Done;
    }
    let inside = || {
        // An error means that the namespace does not exist, so no process is in it.
        let pids = errand::run(&Host::Local, &["ip", "netns", "pids", name], None);
        let pids = pids.unwrap_or_default();
        pids.split_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .collect()
    };
    let ended = ending::end_all(inside);
    match errand::run(&Host::Local, &["ip", "netns", "del", name], None) {
        Ok(_) if ended => Outcome::Done,
        Ok(_) => Outcome::Settled(format!(
            "the namespace {name} was deleted, but a process in it does not end and keeps its interfaces"
        )),
        Err(_) if !setting::is_namespace(name) => Outcome::Done,
        Err(error) => Outcome::Left(error.to_string()),
    }
}

fn remove_folder(path: &str) -> Outcome {
    // A journal that was tampered with, or a bug, must not remove more than a folder of the lab's.
    let parts: Vec<Component<'_>> = Path::new(path).components().collect();
    let is_plain = |part: &Component<'_>| matches!(part, Component::Normal(_));
    let depth = parts.iter().filter(|part| is_plain(part)).count();
    if parts.first() != Some(&Component::RootDir) || depth + 1 != parts.len() || depth < DEPTH_MIN {
        return Outcome::Settled(format!(
            "{} is no folder of a lab: not removed",
            quoted(path)
        ));
    }
    removed(path, remove_all(path))
}

/// A lab that was killed may have started a process that it had not noted yet. That process makes files of its own here
/// while the folder is removed (a server its folders for temporary files), so that the folder is not empty in the end.
fn remove_all(path: &str) -> io::Result<()> {
    let deadline = clock::monotonic() + EMPTY_TIMEOUT;
    loop {
        match std::fs::remove_dir_all(path) {
            Err(error)
                if error.kind() == io::ErrorKind::DirectoryNotEmpty
                    && clock::monotonic() < deadline =>
            {
                // Without descriptors poll only sleeps; an error only makes the pause shorter.
                let _ = descriptor::wait_readable(&[], Some(EMPTY_INTERVAL));
            }
            result => return result,
        }
    }
}

fn remove_control_group(group: &Path) -> Outcome {
    const PROCESSES: &str = "cgroup.procs";
    // A group with processes cannot be removed; processes that have ended meanwhile are in no group.
    let left = std::fs::read_to_string(group.join(PROCESSES)).unwrap_or_default();
    for process in left.lines() {
        let _ended_already = std::fs::write(group.with_file_name(PROCESSES), process);
    }
    removed(&group.display().to_string(), std::fs::remove_dir(group))
}

fn removed(path: &str, result: io::Result<()>) -> Outcome {
    match result {
        Ok(()) => Outcome::Done,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Outcome::Done,
        Err(error) => Outcome::Left(format!("{path}: {error}")),
    }
}

/// `/tmp/x` has two names, `/home` has one.
const DEPTH_MIN: usize = 2;

/// A server that starts makes its folders within milliseconds, or some tenths of a second on a busy machine.
const EMPTY_TIMEOUT: Duration = Duration::from_secs(2);

const EMPTY_INTERVAL: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_removed_while_a_process_still_makes_files_in_it() {
        let name = format!("millstream-undo-test-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).unwrap();
        let place = folder.clone();
        let (begun, has_begun) = std::sync::mpsc::channel();
        let maker = std::thread::spawn(move || {
            let make = |number: u32| std::fs::write(place.join(number.to_string()), "x").is_ok();
            assert!((0..500).all(make));
            begun.send(()).unwrap();
            // Ends with the first file that has no folder any more.
            (500..5000).all(make)
        });
        has_begun.recv().unwrap();
        assert_eq!(remove_folder(&folder.display().to_string()), Outcome::Done);
        maker.join().unwrap();
        assert!(!folder.exists());
    }
}
