//! The lines of a journal's file.

use super::Entry;
use serde::{Deserialize, Serialize};

/// An entry and the state of its undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Noted {
    /// Or the line that cannot be parsed.
    pub(super) entry: Result<Entry, String>,
    pub(super) progress: Progress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    PreparedTestbed,
    /// Begun: whether it was carried out is unknown.
    Undoing,
    Undone,
}

/// A line that is not an entry.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Remark {
    Undoing(usize),
    Undone(usize),
    /// The undo failed, and the entry is still in force.
    Failed(usize),
}

impl Noted {
    pub(super) fn prepared_testbed(entry: Entry) -> Self {
        Self {
            entry: Ok(entry),
            progress: Progress::PreparedTestbed,
        }
    }
}

impl Progress {
    /// The line that records this.
    pub(super) fn line(self, number: usize) -> String {
        let word = match self {
            Self::PreparedTestbed => "failed",
            Self::Undoing => "undoing",
            Self::Undone => "undone",
        };
        format!("{{\"{word}\":{number}}}")
    }
}

/// Parses a file; also returns the length of its whole lines. What follows the last line feed was torn by a crash,
/// before its act began.
pub(super) fn parse(text: &[u8]) -> (Vec<Noted>, usize) {
    let whole = text
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |last| last + 1);
    let mut noted: Vec<Noted> = Vec::new();
    let lines = text.get(..whole).unwrap_or_default();
    for line in lines.split(|&byte| byte == b'\n') {
        if line.is_empty() {
            continue;
        }
        if let Ok(remark) = serde_json::from_slice::<Remark>(line) {
            let (number, progress) = match remark {
                Remark::Undoing(number) => (number, Progress::Undoing),
                Remark::Undone(number) => (number, Progress::Undone),
                Remark::Failed(number) => (number, Progress::PreparedTestbed),
            };
            if let Some(noted) = noted.get_mut(number) {
                noted.progress = progress;
            }
            continue;
        }
        let unread = |_| String::from_utf8_lossy(line).into_owned();
        noted.push(Noted {
            entry: serde_json::from_slice(line).map_err(unread),
            progress: Progress::PreparedTestbed,
        });
    }
    (noted, whole)
}
