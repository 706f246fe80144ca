//! Changes to the system, each in the journal before it is made.
//!
//! The order is fixed: first services that would undo changes are stopped, then keys of the kernel are set, then the
//! interface (whose rings can reset its interrupts), then the CPUs that handle interrupts. Every key is read,
//! recorded, written and read back.

use crate::host::Host;
use crate::journal::{Journal, setting};
use crate::topology::Testbed;
use mill_lab::recipe::Tune;
use mill_lab::record::TunedKey;
use std::io;
use std::path::Path;

/// Interrupts and packet steering.
mod affinity;
/// What ethtool(8) prints.
mod ethtool;
/// Files of /proc and /sys by path.
mod files;
/// The link between client and server.
mod interface;
/// The server's route to the clients.
mod route;
/// Services that may disturb.
mod service;
/// The host of each side.
mod sides;
/// Keys of sysctl(8).
mod sysctl;
/// A file system in memory.
mod tmpfs;
/// TOML's values as the kernel's files take them.
mod value;

#[cfg(test)]
mod tests;

pub use tmpfs::tmpfs;

/// Makes the changes, in a fixed order; what cannot be changed is part of the result and no error.
pub fn apply(tune: &Tune, testbed: &Testbed, journal: &mut Journal) -> Vec<TunedKey> {
    let is_root = mill_sys::account::is_super_user();
    apply_below(Path::new("/"), is_root, tune, testbed, journal)
}

/// The same with the local machine's files below another root, for tests.
fn apply_below(
    root: &Path,
    is_root: bool,
    tune: &Tune,
    testbed: &Testbed,
    journal: &mut Journal,
) -> Vec<TunedKey> {
    let mut tuner = Tuner {
        root,
        is_root,
        journal,
        keys: Vec::new(),
    };
    service::stop(&mut tuner, &tune.stop_services, testbed);
    sysctl::apply(&mut tuner, tune, testbed);
    files::apply(&mut tuner, &tune.files, testbed);
    interface::apply(&mut tuner, &tune.interface, testbed);
    if let Some(segments) = tune.interface.initcwnd {
        route::apply(&mut tuner, segments, testbed);
    }
    affinity::apply(&mut tuner, &tune.affinity, testbed);
    tuner.keys
}

/// What every kind of change needs.
struct Tuner<'a> {
    /// In front of the local machine's paths; `/` outside tests.
    root: &'a Path,
    is_root: bool,
    journal: &'a mut Journal,
    keys: Vec<TunedKey>,
}

/// The result of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fate {
    before: Option<String>,
    problem: Option<String>,
}

impl Tuner<'_> {
    /// Sets a kernel's file and returns the result.
    fn set(&mut self, key: String, host: &Host, path: &str, wanted: &str) {
        let fate = self.fate_of(host, path, wanted);
        self.say(key, wanted, fate);
    }

    fn say(&mut self, key: String, wanted: &str, fate: Fate) {
        self.keys.push(TunedKey {
            key,
            before: fate.before,
            wanted: String::from(wanted),
            problem: fate.problem,
        });
    }

    /// A change that was not tried.
    fn refuse(&mut self, key: String, wanted: &str, problem: impl Into<String>) {
        self.say(key, wanted, Fate::refused(None, problem));
    }

    /// Reads, notes, writes, reads back.
    fn fate_of(&mut self, host: &Host, path: &str, wanted: &str) -> Fate {
        let path = &self.path(host, path);
        let before = match setting::read(host, path) {
            Ok(before) => before,
            Err(error) => return Fate::refused(None, problem_of(&error)),
        };
        if setting::is_same(path, &before, wanted) {
            return Fate::done(before);
        }
        if !self.may(host) {
            return Fate::refused(Some(before), NEEDS_ROOT);
        }
        if let Err(error) = self.journal.write(host, path, &before, wanted) {
            return Fate::refused(Some(before), problem_of(&error));
        }
        match setting::read(host, path) {
            Ok(now) if setting::is_same(path, &now, wanted) => Fate::done(before),
            Ok(now) => {
                let problem = format!("the kernel made it {now}");
                let noted = self.journal.note_rounded(host, path, &before, &now);
                let problem = match noted {
                    Ok(()) => problem,
                    Err(error) => format!("{problem}; the journal: {error}"),
                };
                Fate::refused(Some(before), problem)
            }
            Err(error) => Fate::refused(Some(before), format!("can't be read back: {error}")),
        }
    }

    /// Runs a command with an undo; returns the error message, if there is one.
    fn run(&mut self, host: &Host, argv: &[&str], undo: &[&str]) -> Option<String> {
        if !self.may(host) {
            return Some(String::from(NEEDS_ROOT));
        }
        let result = self.journal.run(host, argv, undo);
        result.err().map(|error| problem_of(&error))
    }

    /// On a remote machine ssh's user may be root whatever the local user is.
    fn may(&self, host: &Host) -> bool {
        self.is_root || matches!(host, Host::Remote(_))
    }

    fn path(&self, host: &Host, path: &str) -> String {
        match host {
            Host::Local => self
                .root
                .join(path.trim_start_matches('/'))
                .display()
                .to_string(),
            Host::Namespace(_) | Host::Remote(_) => String::from(path),
        }
    }
}

impl Fate {
    fn done(before: String) -> Self {
        Self {
            before: Some(before),
            problem: None,
        }
    }

    fn refused(before: Option<String>, problem: impl Into<String>) -> Self {
        Self {
            before,
            problem: Some(problem.into()),
        }
    }

    /// Whether this host has the key, for any user.
    fn is_for_others(&self) -> bool {
        let absent = |problem: &String| problem == ABSENT || problem.starts_with(DENIED);
        self.problem.as_ref().is_some_and(absent)
    }
}

const NEEDS_ROOT: &str = "needs root";
const ABSENT: &str = "absent on this kernel";
const DENIED: &str = "refused: permission denied";

/// In the words of a report.
fn problem_of(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound if error.to_string().starts_with("needs ") => {
            format!("absent: {error}")
        }
        io::ErrorKind::NotFound => String::from(ABSENT),
        io::ErrorKind::PermissionDenied => String::from(DENIED),
        _ => {
            let text = error.to_string();
            // The number of a system error means nothing to the reader of a table.
            let text = text.split(" (os error").next().unwrap_or_default();
            format!("refused: {text}")
        }
    }
}
