//! A missing `;`: the next line's words become arguments, and the error, if there is one at all, is about something
//! else. It is recognised by a line inside a statement that begins with the name of a directive allowed there.

use crate::config::LogLevel;
use crate::diagnostic::Diagnostic;
use crate::directives;
use crate::lexer::{LexError, SourceText, Statement, Word};
use crate::resolve::{Resolver, place, snippet};

impl Resolver<'_> {
    /// The index of the word that begins a line and looks like the next directive.
    pub(crate) fn swallowed(&self, words: &[Word], text: &SourceText) -> Option<usize> {
        if self.entry_handler.is_some() || self.written.is_some() {
            return None;
        }
        let is_next = |word: &Word| {
            // A quoted word is an argument on purpose.
            let is_bare = text.bytes.get(word.span.clone()) == Some(word.bytes.as_slice());
            is_bare
                && begins_line(text, word)
                && directives::find(&word.bytes, self.context)
                    .is_some_and(|directive| directive.contexts.meets(self.context))
        };
        let found = words.iter().skip(1).position(is_next);
        found.map(|index| index + 1)
    }

    /// The error about a statement that should have ended before one of its words.
    pub(crate) fn unterminated(&self, statement: &Statement, next: usize) -> Box<Diagnostic> {
        self.missing(&statement.words, next, &statement.text, "")
    }

    /// The same where `}` or the end of the file ended it.
    pub(crate) fn unterminated_at(&self, error: &LexError, text: &SourceText) -> Box<Diagnostic> {
        let next = self.swallowed(&error.words, text);
        let next = next.unwrap_or(error.words.len());
        let found = match error.message.split_once(", expecting") {
            Some((found, _)) => found,
            None => &error.message,
        };
        self.missing(&error.words, next, text, &format!("{found}: "))
    }

    /// A warning if the statement is otherwise valid: names of servers, for example, may be any word.
    pub(crate) fn warn_of_swallowed(&mut self, statement: &Statement, next: usize) {
        let word = statement.arg(next);
        let message = format!(
            "\"{}\" at the beginning of a line is an argument of \"{}\"",
            word.display(),
            statement.name().display()
        );
        let mut warning = *self.diagnostic(LogLevel::Warn, statement, word, message);
        warning.help = Some(String::from(
            "is a \";\" missing at the end of the line before? Quotes say that none is",
        ));
        self.remarks.push(warning);
    }

    fn missing(
        &self,
        words: &[Word],
        next: usize,
        text: &SourceText,
        found: &str,
    ) -> Box<Diagnostic> {
        let kind = if self.entry_handler.is_some() {
            "entry"
        } else {
            "directive"
        };
        let name = words.first().map(Word::display).unwrap_or_default();
        let message = format!("{found}{kind} \"{name}\" is not terminated by \";\"");
        let last = words.get(next.saturating_sub(1)).or(words.last());
        let end = last.map_or(0, |word| word.span.end);
        let snippet = snippet(text, &(end..end + 1));
        let place = place(text, snippet.line);
        let mut error = Diagnostic::new(LogLevel::Emerg, message, place);
        error.snippet = Some(snippet);
        error.label = Some(String::from("\";\" is missing here"));
        Box::new(error)
    }
}

/// Whether a word is the first of its line.
fn begins_line(text: &SourceText, word: &Word) -> bool {
    let before = text.bytes.get(..word.span.start).unwrap_or_default();
    let line_start = before.iter().rposition(|&byte| byte == b'\n');
    let indent = line_start.and_then(|at| before.get(at + 1..));
    indent.is_some_and(|indent| indent.iter().all(u8::is_ascii_whitespace))
}
