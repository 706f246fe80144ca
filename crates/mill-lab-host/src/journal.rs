//! The journal of what was changed, made and started, written before it happens.
//!
//! One file per run, one JSON value per line, below /run: a reboot undoes the changes and removes the file with them.
//! Each line holds its undo; `restore` reads the file from the last line to the first.
//!
//! ```text
//! {"did":"began","run":"k3f9","process":4711,…}
//! {"did":"made-namespace","name":"ms4711-s"}
//! {"did":"wrote","host":"netns:ms4711-s","path":"/proc/sys/net/ipv4/tcp_sack","before":"1","after":"0"}
//! {"undoing":2}
//! {"undone":2}
//! ```
//!
//! Numbers count the lines that have `did`, from 0. A line is on disk before its act begins, and the begin and the
//! end of an undo are recorded too: after a crash at any point, at most one act or one undo is in doubt. Undoing
//! twice is harmless where it writes a value or removes an object; a command in doubt may fail.

use crate::host::Host;
use crate::process_stat::ProcessStat;
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Ending processes, first with SIGTERM.
mod ending;
/// A short command on a host.
pub(crate) mod errand;
/// The lock of the lab that may change the machine.
mod hold;
/// Journals of labs that have ended.
mod left;
/// `Host` as one word of text.
mod place;
/// The lines of a file.
mod reading;
/// A value in a file of the kernel, local or remote.
pub(crate) mod setting;
/// The undo of an entry.
mod undo;

#[cfg(test)]
mod tests;

pub use hold::{Hold, Refused, hold};
pub use left::{Left, Restored, left_behind, restore_all};
use reading::{Noted, Progress};
use undo::{Outcome, Undoing};

/// One line of the journal: the act that follows, and its undo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "did", rename_all = "kebab-case")]
pub enum Entry {
    /// The first line: the owner of the journal.
    Began {
        run: String,
        /// Process id of the lab.
        process: u32,
        /// Field 22 of /proc/PID/stat: a process id with its start time is unique within a boot.
        process_start: u64,
        /// /proc/sys/kernel/random/boot_id: no process outlives its boot.
        #[serde(default)]
        boot: String,
        /// The session of the lab, which its children share.
        #[serde(default)]
        session: u32,
    },
    /// A file below /proc/sys or /sys was written; undone by writing `before`.
    Wrote {
        #[serde(with = "place")]
        host: Host,
        path: String,
        before: String,
        after: String,
    },
    /// A command was run; undone by `undo`, if there is one.
    Ran {
        #[serde(with = "place")]
        host: Host,
        argv: Vec<String>,
        undo: Vec<String>,
    },
    /// A namespace of ip-netns(8) was made; undone by deleting it, and with it its interfaces.
    MadeNamespace { name: String },
    /// A process was started; undone by ending it.
    Started {
        process: u32,
        process_start: u64,
        what: String,
    },
    /// A private folder was made; undone by removing it.
    MadeFolder { path: String },
    /// A control group was made; undone by returning its processes to the group above, and removing it.
    MadeControlGroup { path: String },
}

impl Entry {
    fn wrote(host: &Host, path: &str, before: &str, after: &str) -> Self {
        Self::Wrote {
            host: host.clone(),
            path: String::from(path),
            before: String::from(before),
            after: String::from(after),
        }
    }
}

/// An open journal. If dropped without `restore`, it still undoes what it can.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    /// Locked as long as it is open: two restores of one journal exclude each other.
    file: File,
    noted: Vec<Noted>,
    /// The journal of another lab, which has ended: whether its last line was carried out is unknown.
    inherited: bool,
    allow_ssh_interface: bool,
    /// Undos between trials that finished with a message, which is reported at the end.
    settled: Vec<String>,
    closed: bool,
}

impl Journal {
    /// Creates the journal of a run in `folder` (see [`state_folder`]).
    pub fn begin(folder: &Path, run: &str) -> io::Result<Self> {
        make_folder(folder)?;
        let path = folder.join(format!("{}.{EXTENSION}", run.replace('/', "-")));
        let file = File::options()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => already_there(&path),
                _ => error,
            })?;
        lock(&file, &path)?;
        // The directory entry is synced as well: a crash could otherwise lose the whole file.
        File::open(folder)?.sync_all()?;
        let mut journal = Self {
            path,
            file,
            noted: Vec::new(),
            inherited: false,
            allow_ssh_interface: false,
            settled: Vec::new(),
            closed: false,
        };
        let process = std::process::id();
        let own = ProcessStat::of(process);
        journal.note(&Entry::Began {
            run: String::from(run),
            process,
            process_start: own.as_ref().map_or(0, |stat| stat.start),
            boot: left::boot(),
            session: own.map_or(0, |stat| stat.session),
        })?;
        Ok(journal)
    }

    /// Opens the journal of a lab that has ended, to undo what it left.
    fn inherit(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).append(true).open(path)?;
        lock(&file, path)?;
        let text = std::fs::read(path)?;
        let (noted, whole) = reading::parse(&text);
        // A torn last line is removed: what is appended must begin a line.
        file.set_len(u64::try_from(whole).unwrap_or(0))?;
        Ok(Self {
            path: path.to_owned(),
            file,
            noted,
            inherited: true,
            allow_ssh_interface: false,
            settled: Vec::new(),
            closed: false,
        })
    }

    /// Whether tuning may touch the interface that carries this machine's ssh session; false by default.
    pub fn allow_ssh_interface(&mut self, allow: bool) {
        self.allow_ssh_interface = allow;
    }

    pub(crate) fn ssh_interface_allowed(&self) -> bool {
        self.allow_ssh_interface
    }

    /// Records what is about to be done; it is on disk when this returns.
    pub fn note(&mut self, entry: &Entry) -> io::Result<()> {
        let text = serde_json::to_string(entry).map_err(io::Error::other)?;
        self.append(text)?;
        self.noted.push(Noted::prepared_testbed(entry.clone()));
        Ok(())
    }

    /// Records a command, then runs it and returns its output. A command that failed is not undone later.
    pub fn run(&mut self, host: &Host, argv: &[&str], undo: &[&str]) -> io::Result<String> {
        let owned = |words: &[&str]| words.iter().map(|word| String::from(*word)).collect();
        let entry = Entry::Ran {
            host: host.clone(),
            argv: owned(argv),
            undo: owned(undo),
        };
        self.act(&entry, || errand::run(host, argv, None))
    }

    /// Records an act, then does it. One that failed is not undone later.
    pub(crate) fn act<T>(
        &mut self,
        entry: &Entry,
        act: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        self.note(entry)?;
        let result = act();
        if result.is_err() {
            self.set_progress(self.noted.len() - 1, Progress::Undone)?;
        }
        result
    }

    /// Records a new value of a kernel's file, then writes it.
    pub(crate) fn write(
        &mut self,
        host: &Host,
        path: &str,
        before: &str,
        after: &str,
    ) -> io::Result<()> {
        let entry = Entry::wrote(host, path, before, after);
        self.act(&entry, || setting::write(host, path, after))
    }

    /// Records that the kernel turned the value just written into another one: `restore` then takes that one for the
    /// lab's change too.
    pub(crate) fn note_rounded(
        &mut self,
        host: &Host,
        path: &str,
        before: &str,
        now: &str,
    ) -> io::Result<()> {
        self.note(&Entry::wrote(host, path, before, now))
    }

    /// The current position, to which `undo_to` returns.
    pub fn mark(&self) -> usize {
        self.noted.len()
    }

    /// Undoes what was recorded after the mark, the last first; returns messages on what could not be undone.
    pub fn undo_to(&mut self, mark: usize) -> Vec<String> {
        let mut problems = Vec::new();
        let session = self.session();
        for number in (mark..self.noted.len()).rev() {
            let Some(noted) = self.noted.get(number) else {
                continue;
            };
            if noted.progress == Progress::Undone {
                continue;
            }
            let is_last = number + 1 == self.noted.len();
            let undoing = Undoing {
                session,
                in_doubt: noted.progress == Progress::Undoing || (self.inherited && is_last),
            };
            let entry = noted.entry.clone();
            // A failure to record the undo must not prevent it: the undo reports its own result.
            let begun = self.set_progress(number, Progress::Undoing);
            let outcome = match entry {
                Ok(entry) => undoing.undo(&entry),
                Err(line) => Outcome::Left(format!("a line that can't be read: {line}")),
            };
            let progress = match outcome {
                Outcome::Done => Progress::Undone,
                Outcome::Settled(words) => {
                    self.settled.push(words.clone());
                    problems.push(words);
                    Progress::Undone
                }
                Outcome::Left(words) => {
                    problems.push(words);
                    Progress::PreparedTestbed
                }
            };
            if let Err(error) = begun.and_then(|()| self.set_progress(number, progress)) {
                problems.push(format!("{}: {error}", self.path.display()));
            }
        }
        problems
    }

    /// Leaves all changes in place, and the journal for `lab restore`.
    pub fn leave(mut self) {
        self.closed = true;
    }

    /// Undoes everything and removes the file; if something is left that a later `lab restore` may undo, the file
    /// stays. The result includes the messages of every earlier `undo_to`.
    pub fn restore(mut self) -> Vec<String> {
        self.close()
    }

    fn close(&mut self) -> Vec<String> {
        self.closed = true;
        let mut problems = std::mem::take(&mut self.settled);
        problems.extend(self.undo_to(0));
        let is_over = |noted: &Noted| noted.progress == Progress::Undone;
        if self.noted.iter().all(is_over)
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            problems.push(format!("{}: {error}", self.path.display()));
        }
        problems
    }

    fn session(&self) -> u32 {
        match self.noted.first().map(|noted| &noted.entry) {
            Some(Ok(Entry::Began { session, .. })) => *session,
            _ => 0,
        }
    }

    fn set_progress(&mut self, number: usize, progress: Progress) -> io::Result<()> {
        if let Some(noted) = self.noted.get_mut(number) {
            noted.progress = progress;
        }
        self.append(progress.line(number))
    }

    fn append(&mut self, mut line: String) -> io::Result<()> {
        line.push('\n');
        self.file.write_all(line.as_bytes())?;
        self.file.sync_data()
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if !self.closed {
            // There is no caller to report to; what could not be undone stays in the file.
            let _ = self.close();
        }
    }
}

/// Ends the rest of a process group whose leader, a process of this lab, has ended.
pub(crate) fn end_group(process: u32, start: u64) {
    let own = ProcessStat::of(std::process::id());
    ending::end_started(process, start, own.map_or(0, |stat| stat.session));
}

/// Where journals are: `$MILLSTREAM_LAB_STATE`, else /run/millstream/lab for root, else below $XDG_RUNTIME_DIR.
pub fn state_folder() -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(folder) = set("MILLSTREAM_LAB_STATE") {
        return PathBuf::from(folder);
    }
    if mill_sys::account::is_super_user() {
        return PathBuf::from("/run/millstream/lab");
    }
    match set("XDG_RUNTIME_DIR") {
        Some(folder) => PathBuf::from(folder).join("millstream-lab"),
        None => std::env::temp_dir().join(format!("millstream-lab-{}", own_user())),
    }
}

/// What the names of journals end in.
const EXTENSION: &str = "journal";

/// Makes the folder, accessible to the user alone: a journal holds commands that `lab restore` runs.
fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let owner = std::fs::metadata(folder)?.uid();
    if owner == own_user() {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "{} belongs to user {owner}: set MILLSTREAM_LAB_STATE to a folder of your own",
            folder.display()
        ),
    ))
}

fn own_user() -> u32 {
    std::fs::metadata("/proc/self").map_or(0, |process| process.uid())
}

fn lock(file: &File, path: &Path) -> io::Result<()> {
    mill_sys::lock::lock_exclusive(file).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => io::Error::new(
            io::ErrorKind::ResourceBusy,
            format!("{}: another lab has it open", path.display()),
        ),
        _ => error,
    })
}

fn already_there(path: &Path) -> io::Error {
    io::Error::new(
        io::ErrorKind::AlreadyExists,
        format!(
            "{} exists: a lab of this name runs, or one ended without restoring; try millstream lab restore",
            path.display()
        ),
    )
}
