//! A process that outlives this one by a moment, kills what was left running, removes the network
//! namespaces and the temporary folder: also after Ctrl-C, a panic or SIGKILL.
//!
//! It is this binary again, in a process group of its own. Its standard input is a pipe from the
//! measuring process: `+N` adopts the process group N, `-N` releases it, `@NAME` adopts a network
//! namespace, the end of the pipe is the end of the measuring process, however that came about.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};

use super::failure::{Failure, Result};

/// The word after `bench` that starts the caretaker, before the folder's path.
pub(super) const ARGUMENT: &str = "caretaker";

/// The measuring process's end of the pipe. Dropping it waits until everything is gone.
#[derive(Debug)]
pub(super) struct Caretaker {
    process: Child,
    pipe: RefCell<Option<ChildStdin>>,
}

impl Caretaker {
    /// Starts the caretaker of `folder`.
    pub(super) fn start(folder: &Path) -> Result<Self> {
        let failed = || Failure::during("cannot start the process that cleans up");
        let program = std::env::current_exe().map_err(failed())?;
        let mut process = Command::new(program)
            .args(["bench", ARGUMENT])
            .arg(folder)
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(failed())?;
        let pipe = RefCell::new(process.stdin.take());
        Ok(Self { process, pipe })
    }

    pub(super) fn adopt(&self, group: u32) -> Result<()> {
        self.tell(&format!("+{group}\n"))
    }

    pub(super) fn release(&self, group: u32) -> Result<()> {
        self.tell(&format!("-{group}\n"))
    }

    /// Tells it of a namespace before that is made.
    pub(super) fn adopt_namespace(&self, name: &str) -> Result<()> {
        self.tell(&format!("@{name}\n"))
    }

    fn tell(&self, line: &str) -> Result<()> {
        let mut pipe = self.pipe.borrow_mut();
        let written = pipe.as_mut().map(|pipe| pipe.write_all(line.as_bytes()));
        written
            .unwrap_or_else(|| Err(io::ErrorKind::BrokenPipe.into()))
            .map_err(Failure::during("the process that cleans up is gone"))
    }
}

impl Drop for Caretaker {
    fn drop(&mut self) {
        drop(self.pipe.borrow_mut().take());
        if let Err(error) = self.process.wait() {
            eprintln!("xtask bench: cannot wait for the process that cleans up: {error}");
        }
    }
}

/// What the caretaker's process does.
pub(super) fn run(folder: &Path) -> ExitCode {
    let orphans = orphans(io::stdin().lock());
    for group in orphans.groups {
        kill_group(group);
    }
    for name in orphans.namespaces {
        remove_namespace(&name);
    }
    match remove(folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask bench: cannot remove {}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}

/// Kills every process of a group. One that has ended is no error.
pub(super) fn kill_group(group: u32) {
    let mut command = Command::new("sh");
    command.args(["-c", "kill -s KILL -- \"-$1\"", "sh"]);
    command.arg(group.to_string());
    // What is said about groups that have ended already helps nobody.
    let _ended_already = command.stdin(Stdio::null()).stderr(Stdio::null()).status();
}

/// One that was never made is no error. The interfaces in it vanish with it.
fn remove_namespace(name: &str) {
    let mut command = Command::new("ip");
    command.args(["netns", "delete", name]);
    // What is said about namespaces that are not there helps nobody.
    let _gone_already = command.stdin(Stdio::null()).stderr(Stdio::null()).status();
}

/// A process that was just killed may still be writing its last file, hence a second attempt.
fn remove(folder: &Path) -> io::Result<()> {
    let folder: PathBuf = folder.into();
    std::fs::remove_dir_all(&folder).or_else(|_| {
        super::patience::pause(std::time::Duration::from_millis(100));
        std::fs::remove_dir_all(&folder)
    })
}

/// What has to be cleaned up.
#[derive(Debug, Default)]
struct Orphans {
    groups: BTreeSet<u32>,
    namespaces: Vec<String>,
}

/// What was adopted and not released when the pipe ended.
fn orphans(pipe: impl BufRead) -> Orphans {
    let mut orphans = Orphans::default();
    for line in pipe.lines().map_while(io::Result::ok) {
        if let Some(Ok(group)) = line.strip_prefix('+').map(str::parse) {
            orphans.groups.insert(group);
        } else if let Some(Ok(group)) = line.strip_prefix('-').map(str::parse) {
            orphans.groups.remove(&group);
        } else if let Some(name) = line.strip_prefix('@') {
            orphans.namespaces.push(name.to_owned());
        }
    }
    orphans
}

#[cfg(test)]
mod tests {
    use super::orphans;

    #[test]
    fn what_was_adopted_and_not_released_is_an_orphan() {
        let found = orphans(&b"+12\n+13\n@a-1\n-12\n+14\n-14\n-99\nnoise\n@b\n"[..]);
        assert_eq!(found.groups.into_iter().collect::<Vec<_>>(), [13]);
        assert_eq!(found.namespaces, ["a-1", "b"]);
        let none = orphans(&b""[..]);
        assert!(none.groups.is_empty() && none.namespaces.is_empty());
    }
}
