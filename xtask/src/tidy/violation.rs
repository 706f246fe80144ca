//! A breach of a rule, with its file and line.

use std::fmt;

/// One breach: where, and what to do about it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) path: String,
    /// Counted from 1; none when the whole file is meant.
    pub(crate) line: Option<usize>,
    pub(crate) message: String,
}

impl Violation {
    pub(crate) fn of_file(path: &str, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line: None,
            message: message.into(),
        }
    }

    pub(crate) fn of_line(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line: Some(line),
            message: message.into(),
        }
    }
}

impl fmt::Display for Violation {
    /// In the format of compilers, so that editors can jump there.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.message),
            None => write!(f, "{}: {}", self.path, self.message),
        }
    }
}

/// Shared by the tests of the rules: a tree in, the violations as text out.
#[cfg(test)]
pub(crate) fn found(
    rule: fn(&super::Tree) -> Vec<Violation>,
    files: &[(&str, &str)],
) -> Vec<String> {
    rule(&super::Tree::of(files))
        .iter()
        .map(ToString::to_string)
        .collect()
}
