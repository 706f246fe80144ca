//! Errors, warnings and notices: nginx's line, then advice.

use std::fmt::Write;

use crate::Text;
use crate::config::LogLevel;

/// One message about a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// `Emerg` refuses the configuration; `Warn` and `Notice` do not.
    pub level: LogLevel,
    /// nginx's message, without the place.
    pub message: String,
    /// The place that nginx's message names.
    pub place: SourcePosition,
    /// The line of text and the word in it.
    pub snippet: Option<Snippet>,
    /// Text under the caret.
    pub label: Option<String>,
    /// Details, a line each.
    pub details: Vec<String>,
    /// Advice.
    pub help: Option<String>,
}

/// The place of a value whose error is only found outside the configuration: a user that does not exist, an address in
/// use.
#[derive(Debug, Clone)]
pub struct Spot {
    pub place: SourcePosition,
    pub(crate) snippet: Snippet,
}

/// The place, as nginx writes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SourcePosition {
    /// Nowhere in particular.
    #[default]
    None,
    /// `in command line`: the text of `-g`.
    CommandLine,
    /// `in FILE:LINE`; nginx counts the line in which the directive ends.
    File {
        /// Path of the file.
        path: Text,
        /// From 1.
        line: u32,
    },
}

/// A source line and the relevant word in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippet {
    /// Number of the line, from 1.
    pub line: u32,
    /// The line without its end.
    pub text: Text,
    /// Byte offset of the word in the line.
    pub column: usize,
    /// Bytes of the word in this line, 1 if none of it is shown.
    pub len: usize,
}

impl Diagnostic {
    /// A message without snippet and help.
    pub fn new(level: LogLevel, message: impl Into<String>, place: SourcePosition) -> Self {
        Self {
            level,
            message: message.into(),
            place,
            snippet: None,
            label: None,
            details: Vec::new(),
            help: None,
        }
    }

    /// nginx's line after `nginx: `: `[emerg] unknown directive "lisen" in FILE:12`.
    pub fn line(&self) -> String {
        let mut line = format!("[{}] {}", self.level.name(), self.message);
        match &self.place {
            SourcePosition::None => {}
            SourcePosition::CommandLine => line.push_str(" in command line"),
            place @ SourcePosition::File { .. } => {
                let _ = write!(line, " in {place}");
            }
        }
        line
    }

    /// The whole message for a terminal, lines ended: nginx's line after the program's name,
    /// the source line with a caret, the help.
    pub fn render(&self, program: &str) -> String {
        let mut out = format!("{program}: {}\n", self.line());
        if let Some(snippet) = &self.snippet {
            snippet.render(&mut out, self.label.as_deref());
        }
        for detail in &self.details {
            let _ = writeln!(out, "  {detail}");
        }
        if let Some(help) = &self.help {
            let _ = writeln!(out, "help: {help}");
        }
        out
    }
}

impl Spot {
    /// A message about this place.
    pub fn diagnostic(&self, level: LogLevel, message: impl Into<String>) -> Diagnostic {
        let mut diagnostic = Diagnostic::new(level, message, self.place.clone());
        diagnostic.snippet = Some(self.snippet.clone());
        diagnostic
    }
}

/// `FILE:LINE`.
impl std::fmt::Display for Spot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.place.fmt(f)
    }
}

/// `FILE:LINE`, or that it is the command line.
impl std::fmt::Display for SourcePosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::CommandLine => f.write_str("the command line"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
        }
    }
}

impl Snippet {
    /// Extracts the line of a word from a whole text. `start..end` are offsets of the word.
    pub(crate) fn cut(text: &[u8], start: usize, end: usize) -> Self {
        let start = start.min(text.len());
        let (before, after) = text.split_at(start);
        let line_start = before
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |at| at + 1);
        let line_len = after
            .iter()
            .position(|&byte| byte == b'\n')
            .unwrap_or(after.len());
        let line = text.get(line_start..start + line_len).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let number = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        // A word that begins in the line's end is marked after its last byte.
        let column = (start - line_start).min(line.len());
        let len_max = line.len() - column;
        Self {
            line: u32::try_from(number).unwrap_or(u32::MAX),
            text: Text::from(line),
            column,
            len: end.saturating_sub(start).min(len_max).max(1),
        }
    }

    fn render(&self, out: &mut String, label: Option<&str>) {
        let number = self.line.to_string();
        let blank = " ".repeat(number.len());
        // Long lines are cut around the word, so that the caret stays on the screen.
        let from = if self.column > WIDTH_MAX {
            self.column - WIDTH_MAX / 2
        } else {
            0
        };
        let shown = self.text.get(from..).unwrap_or_default();
        let shown = shown.get(..shown.len().min(2 * WIDTH_MAX)).unwrap_or(shown);
        let _ = writeln!(out, "  {number} | {}", printable(shown));
        let before = self.text.get(from..self.column).unwrap_or_default();
        let word = self
            .text
            .get(self.column..self.column + self.len)
            .unwrap_or_default();
        let padding: String = printable(before)
            .chars()
            .map(|character| if character == '\t' { '\t' } else { ' ' })
            .collect();
        let carets = "^".repeat(printable(word).chars().count().clamp(1, WIDTH_MAX));
        let label = label.map_or(String::new(), |label| format!(" {label}"));
        let _ = writeln!(out, "  {blank} | {padding}{carets}{label}");
    }
}

/// Columns of a source line that are shown before its beginning is cut: about a terminal's width.
const WIDTH_MAX: usize = 120;

/// Text that is safe on a terminal: control bytes become `?`, tabs stay.
fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .chars()
        .map(|character| match character {
            '\t' => '\t',
            character if character.is_control() => '?',
            character => character,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snippet_lies_in_its_line() {
        let check = |text: &str, start: usize, end: usize, expected: (u32, &str, usize, usize)| {
            let cut = Snippet::cut(text.as_bytes(), start, end);
            let shown = (cut.line, &*cut.text.display(), cut.column, cut.len);
            assert_eq!(shown, expected, "{text:?} {start}..{end}");
        };
        check("a\nbc d\n", 2, 4, (2, "bc d", 0, 2));
        check("a b\nc", 2, 5, (1, "a b", 2, 1));
        // The word `a\` CR LF `b`: the line's end is no part of what is shown.
        check("x a\\\r\nb;", 2, 6, (1, "x a\\", 2, 2));
        check("a\r\n", 1, 2, (1, "a", 1, 1));
        check("a", 1, 9, (1, "a", 1, 1));
        check("", 0, 0, (1, "", 0, 1));
        check("a\n", 2, 2, (2, "", 0, 1));
    }
}
