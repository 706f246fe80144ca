//! The main file, in nginx's language or in Tempesta FW's.

use std::sync::Arc;

use super::{Applied, Extent, Resolver};
use crate::Text;
use crate::config::LogLevel;
use crate::diagnostic::{Diagnostic, SourcePosition};
use crate::lexer::{Lexer, SourceText, Token};
use crate::tempesta;

/// The language's name in messages.
const TEMPESTA: &str = "Tempesta FW";

impl Resolver<'_> {
    /// Parses the file of the options in its language.
    pub(super) fn main_file(&mut self, path: &[u8]) -> Applied {
        let bytes = self.content(path, None)?;
        if !self.options.is_tempesta {
            let Some(sign) = tempesta::sign(&bytes) else {
                return self.text(path, bytes, None);
            };
            let message = format!(
                "\"{}\" is a directive of {TEMPESTA}: the configuration is read in its language",
                sign.directive
            );
            let place = SourcePosition::File {
                path: Text::from(path),
                line: sign.line,
            };
            // A notice would not reach the terminal.
            self.remarks
                .push(Diagnostic::new(LogLevel::Warn, message, place));
        }
        let text = Arc::new(SourceText {
            path: Some(Text::from(path)),
            bytes,
        });
        let given = std::mem::take(&mut self.level.used);
        let translated = tempesta::translate(self.source, self.options, text, &given);
        self.level.used = given;
        self.remarks.extend(translated.notes.remarks);
        self.written = Some(translated.tokens?.into_iter());
        let parsed = self.statements(Extent::File);
        self.written = None;
        parsed
    }

    /// The next statement of a translation.
    pub(super) fn next_written(&mut self) -> Token {
        let next = self.written.as_mut().and_then(Iterator::next);
        let token = next.unwrap_or(Token::End);
        if let Token::Statement(statement) = &token {
            let end = statement.words.first().map_or(0, |word| word.span.end);
            self.lexer = Lexer::at(Arc::clone(&statement.text), end, statement.line);
        }
        token
    }
}
