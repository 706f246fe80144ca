//! What a configuration says besides its meaning: warnings and notices.

use super::lexer::Term;
use crate::config::LogLevel;
use crate::diagnostic::Diagnostic;
use crate::resolve::draft::Origin;

/// In the order of the text.
#[derive(Default)]
pub(crate) struct Notes {
    pub(crate) remarks: Vec<Diagnostic>,
}

impl Notes {
    /// A directive, or a value of one, that has no meaning here, and why.
    pub(super) fn without_effect(&mut self, term: &Term, why: &str) {
        let message = format!("\"{}\" has no effect", term.display());
        self.remark(LogLevel::Notice, &term.origin, message, why);
    }

    /// Something that a user should know.
    pub(super) fn warn(&mut self, term: &Term, message: impl Into<String>, help: &str) {
        self.remark(LogLevel::Warn, &term.origin, message, help);
    }

    /// The same about less.
    pub(super) fn notice(&mut self, term: &Term, message: impl Into<String>, help: &str) {
        self.remark(LogLevel::Notice, &term.origin, message, help);
    }

    fn remark(&mut self, level: LogLevel, origin: &Origin, message: impl Into<String>, help: &str) {
        let mut remark = *origin.error(message);
        remark.level = level;
        remark.help = (!help.is_empty()).then(|| String::from(help));
        // What a vhost says is written for each way that leads to it.
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }
}
