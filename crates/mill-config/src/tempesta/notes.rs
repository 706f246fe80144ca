//! What a configuration says besides its meaning: warnings, notices, and what is not supported yet.

use std::sync::Arc;

use super::lexer::Term;
use crate::config::LogLevel;
use crate::diagnostic::Diagnostic;
use crate::resolve::draft::Origin;
use crate::resolve::unsupported::Feature;

/// In the order of the text.
#[derive(Default)]
pub(crate) struct Notes {
    pub(crate) remarks: Vec<Diagnostic>,
    pub(crate) features: Vec<(Feature, Origin)>,
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

    /// Something of Tempesta FW that there is not yet; `label` names it, `part` what it belongs to.
    pub(super) fn not_yet(&mut self, term: &Term, label: impl Into<String>, part: &str) {
        let label = label.into();
        let feature = Feature {
            subject: format!("\"{label}\" is"),
            note: String::from(part),
            help: format!(
                "it is part of Tempesta FW's {part}; docs/tempesta.md lists what there is"
            ),
            label,
        };
        let same = |(known, origin): &(Feature, Origin)| {
            let here = Arc::ptr_eq(&origin.text, &term.origin.text);
            known.label == feature.label && here && origin.span == term.origin.span
        };
        if self.features.iter().any(same) {
            return;
        }
        self.features.push((feature, term.origin.clone()));
    }
}
